"""Arrays: their memory in several spaces, and the methods that make Variables and NdArrays behave as arrays."""
