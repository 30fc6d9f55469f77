"""Searches for faults; each records its figures for docs/reliability.md."""
