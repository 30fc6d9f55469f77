"""What a backend has to pass: one module for each kind of check, one function for each test."""
