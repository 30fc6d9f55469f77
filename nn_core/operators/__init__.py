"""The operators: their specification, the rules of their shapes and gradients, and their reference kernels.

``function_spec.yaml`` describes them; `nn_core.functions` is generated from it.
"""
