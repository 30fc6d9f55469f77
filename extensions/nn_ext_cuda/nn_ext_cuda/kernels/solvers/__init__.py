"""Updates of all parameters of a solver in one or two launches."""
