"""The preferred kind of array; kept apart from the modules that import CuPy."""

#: Whether arrays take their memory from a pool.
cached = True
