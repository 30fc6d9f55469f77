"""Checks of backends: one module for each kind of check, one function for each test."""
