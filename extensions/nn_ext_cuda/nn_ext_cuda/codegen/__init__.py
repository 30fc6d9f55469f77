"""CUDA C from expressions: texts of kernels, and what their arrays, dtypes and layouts mean for them."""
