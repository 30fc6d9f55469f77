"""Files: parameters, states, networks."""
