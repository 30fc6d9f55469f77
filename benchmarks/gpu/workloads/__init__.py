"""Workloads that are too large for a CPU; made as those of `benchmarks.workloads`, with `shrink` for a quick trial."""
