"""Benchmarks: workloads timed beside other frameworks in one run. ``python -m benchmarks --help``."""
