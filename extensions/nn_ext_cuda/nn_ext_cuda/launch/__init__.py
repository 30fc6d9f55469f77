"""Launches: programs of one function, those that wait for others, and CUDA graphs of them."""
