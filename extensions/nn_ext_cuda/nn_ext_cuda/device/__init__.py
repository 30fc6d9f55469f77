"""Devices as such: driver, toolkit, errors, and CuPy for the modules that run something."""
