"""Programs for the maintainers; see the README of this folder."""
