"""One extension of every kind."""
