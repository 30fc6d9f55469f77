"""Code that several workloads need for the same peer: training steps for JAX, networks as ONNX models."""
