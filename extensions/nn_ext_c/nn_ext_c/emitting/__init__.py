"""Steps of C from functions of nn_core: one small emitter for each, grouped by topic."""
