"""ONNX models from graphs of nn_core: one small converter for each function, grouped by topic."""
