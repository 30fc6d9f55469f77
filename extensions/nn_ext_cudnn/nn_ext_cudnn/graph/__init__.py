"""Operation graphs of cuDNN: what is to be computed, the engine that does it, and the plan that runs.

An operation graph is a tuple of frozen `operations`, and so is its own key in the cache of `plans`.
"""
