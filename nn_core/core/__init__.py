"""Networks as objects: modules that own their parameters."""
