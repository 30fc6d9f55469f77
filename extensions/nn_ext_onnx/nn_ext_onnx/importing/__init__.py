"""Graphs of nn_core from models of ONNX: a registry of operators, keyed by domain, name and version."""
