"""Comparisons with NNabla, which runs as a black box in an environment of its own."""
