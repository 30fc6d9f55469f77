"""Functions of a plan that become one: sums and ReLUs with the normalization before or after them."""
