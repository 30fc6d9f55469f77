"""The workloads, written as a user of each framework would; ``programs(package, sizes)`` of a module returns them."""
