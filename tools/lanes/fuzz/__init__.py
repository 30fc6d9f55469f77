"""Two fuzzers: hostile calls of every public callable, and random programs against a slow truth; see ``--help``."""
