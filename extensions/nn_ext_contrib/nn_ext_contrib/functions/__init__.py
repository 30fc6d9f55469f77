"""Functions made of functions of nn_core, by topic."""
