"""One module a workload; in it one function a framework, which builds the network and returns a step to be timed.

The functions import their framework themselves, so that a worker needs only the one that it measures.
"""
