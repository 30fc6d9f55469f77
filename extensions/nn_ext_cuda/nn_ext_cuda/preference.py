"""Which kind of array is preferred; kept apart from what imports CuPy."""

#: Whether arrays take their memory from a pool.
cached = True
