"""Kernels of this package on the emulated device, run on arrays of NumPy."""

import numpy as np

import nn_core as nn
from nn_core.dispatch.registry import spec_of
from nn_core.ext import ArrayDesc, Call
from nn_core.graph.infer import infer, input_entries, made_outputs
from nn_core.rules.arguments import resolve_args
from nn_ext_cuda.dtypes import STATISTICS


def call_of(name, inputs, dtype="float32", **args):
    """The call of a function for these arrays."""
    spec = spec_of(name)
    shapes = tuple(None if array is None else array.shape for array in inputs)
    args = resolve_args(spec, args, shapes)
    kinds = {"float": dtype, "parameter": dtype, "statistic": STATISTICS.get(dtype, dtype), "index": "int64"}
    descs = tuple(
        None if array is None else ArrayDesc(array.shape, kinds.get(entry.dtype) or str(array.dtype))
        for entry, array in zip(input_entries(spec, len(inputs)), inputs, strict=True)
    )
    outputs = made_outputs(spec, infer(spec, args, shapes))
    same = next((str(array.dtype) for array in inputs if array is not None), dtype)
    return Call(spec, args, descs, tuple(ArrayDesc(shape, kinds.get(entry.dtype) or same) for entry, shape in outputs), dtype)


def forward(cupy, kernel, call, inputs):
    """The results of a kernel, as NumPy arrays."""
    arrays = [None if array is None else cupy.asarray(array) for array in inputs]
    outputs = [cupy.asarray(np.full(desc.shape, -7, desc.dtype)) for desc in call.outputs]
    kernel.forward(call)(*arrays, *outputs)
    return [output.get() for output in outputs]


def backward(cupy, kernel, call, inputs, dy, outputs=None):
    """The gradients of all floating inputs that a kernel computes, as NumPy arrays; None where there is none."""
    wanted = [desc is not None and desc.dtype == call.dtype for desc in call.inputs]
    needs = call.spec.backward.needs
    names = [entry.name for entry in input_entries(call.spec, len(inputs))]
    arrays = [cupy.asarray(a) if a is not None and name in needs else None for name, a in zip(names, inputs, strict=True)]
    for k, entry in enumerate(call.spec.outputs[: len(call.outputs)]):
        arrays.append(cupy.asarray(outputs[k]) if outputs is not None and entry.name in needs else None)
    gradients = [
        cupy.asarray(np.full(desc.shape, -7, desc.dtype)) if want else None
        for desc, want in zip(call.inputs, wanted, strict=True)
    ]
    kernel.backward(call, wanted)(*arrays, cupy.asarray(dy), *gradients)
    return [None if gradient is None else gradient.get() for gradient in gradients]


def check_recorded(y, x=None):
    """Passes over `y`, forward and, for the gradient of `x`, backward, become CUDA graphs that leave no function out."""
    from nn_ext_cuda import graph_report

    before = graph_report()
    for _ in range(4):
        y.forward()
        if x is not None:
            x.grad.zero()
            y.backward()
    after = graph_report()
    assert after.n_graphs == before.n_graphs + (1 if x is None else 2)
    assert sum(after.apart.values()) == sum(before.apart.values())
    assert not nn.fallback_report()
