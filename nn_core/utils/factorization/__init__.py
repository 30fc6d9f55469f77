"""Decompositions of tensors."""
