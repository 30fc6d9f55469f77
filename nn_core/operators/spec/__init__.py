"""Specifications of functions, their reader, and the code generator."""
