"""Errors of public functions: what must hold, what was given, and which name was meant."""
