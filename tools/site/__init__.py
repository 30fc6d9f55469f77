"""Pages of the site that are made from examples, tutorials and docstrings."""
