"""Networks in integers: ranges from a calibration set, a reference in NumPy that says the bits, and C that has them."""
