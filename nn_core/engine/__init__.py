"""The engine: arrays on devices, graphs and their passes, the choice of kernels, and what they run on.

Users meet it through `nn_core.Variable`, `nn_core.NdArray` and the functions; authors of plugins through `nn_core.ext`.
"""
