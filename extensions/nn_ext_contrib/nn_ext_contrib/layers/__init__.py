"""Parametric functions, by topic."""
