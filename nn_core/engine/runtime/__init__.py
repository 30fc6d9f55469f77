"""The ground that the engine stands on while it runs: ambient settings, locks, caches, and what is installed."""
