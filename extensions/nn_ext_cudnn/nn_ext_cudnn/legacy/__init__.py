"""cuDNN's functions over descriptors ("legacy" API): what its graphs do not offer.

One function call computes one function of the framework. Descriptors, sizes of scratch memory and places of weights are
found once, when a call is prepared; running it is that function, and small kernels of nn_ext_cuda where cuDNN wants its
arrays in another form. All of it can be recorded as part of a CUDA graph.
"""
