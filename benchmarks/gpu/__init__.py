"""Training and inference on a device beside PyTorch: ``python -m benchmarks.gpu --help``."""
