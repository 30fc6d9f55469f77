"""Recurrent networks of the stand-in for libcudnn: descriptors, and what it demands of each call."""

import ctypes
import hashlib
from dataclasses import dataclass, field

import numpy as np
from fake_cudnn import require
from legacy_cells import GATES, Run
from legacy_memory import NOT_SUPPORTED, Registry, Tensor, dtype_of, launched, wide_of

#: Elements between two matrices in the weight space: nobody may rely on them being adjacent.
GAP = 5
MAGIC = 0x1234567890


@dataclass
class Dropout:
    probability: float | None = None


@dataclass
class Steps:
    kind: int | None = None
    dims: tuple = ()


@dataclass
class Network:
    """A descriptor, and the places of its weights."""

    settings: tuple = ()
    places: dict = field(default_factory=dict)
    size: int = 0

    @property
    def form(self):
        """(kind, cell, bias mode, directions, inputs, hidden, layers)."""
        _, cell, bias, directions, _, kind, _, _, inputs, hidden, _, layers, _, _ = self.settings
        return kind, cell, bias, directions + 1, inputs, hidden, layers

    def plan(self):
        """Lay matrices and biases out in the weight space."""
        _, cell, bias, directions, inputs, hidden, layers = self.form
        self.places, at = {}, GAP
        gates = GATES[cell]
        for pseudo in range(layers * directions):
            n_inputs = inputs if pseudo < directions else directions * hidden
            for number in range(2 * gates):
                columns = n_inputs if number < gates else hidden
                self.places[pseudo, number, "matrix"] = (at, (hidden, columns))
                at += hidden * columns + GAP
        for pseudo in range(layers * directions):
            for number in range(2 * gates):
                if bias == 2 or (bias == 1 and number < gates) or (bias == 3 and number >= gates):
                    self.places[pseudo, number, "bias"] = (at, (hidden,))
                    at += hidden
        self.size = at

    def view(self, address, *what):
        """A matrix or a bias in memory; None where there is none."""
        if what not in self.places:
            return None
        at, shape = self.places[what]
        dtype = dtype_of(self.form[0])
        return memory(address + at * dtype.itemsize, dtype, shape)


def memory(address, dtype, shape):
    """An array at an address."""
    require(address, "null pointer", 2002)
    n = int(np.prod(shape))
    return np.frombuffer((ctypes.c_char * (n * dtype.itemsize)).from_address(address), dtype, n).reshape(shape)


class Adv:
    """The content of libcudnn_adv; `missing` plays an installation without it, `unsupported` refuses a data type."""

    def __init__(self, ops):
        from nn_ext_cudnn.legacy import api

        self.TABLE = api.ADV
        self.tensors = ops.registry
        self.registry = Registry()
        self.missing = False
        self.unsupported = None
        self.runs = {}

    def cudnnAdvVersionCheck(self):
        require(not self.missing, "", 3009)

    # -- descriptors -----------------------------------------------------------------------------------------------

    def cudnnCreateDropoutDescriptor(self, result):
        self.registry.make(result, Dropout())

    def cudnnDestroyDropoutDescriptor(self, number):
        self.registry.destroy(number, Dropout)

    def cudnnSetDropoutDescriptor(self, number, handle, probability, states, n_bytes, seed):
        require(handle, "handle")
        require(probability == 0 and not states and not n_bytes, "dropout")
        self.registry.get(number, Dropout).probability = probability

    def cudnnCreateRNNDescriptor(self, result):
        self.registry.make(result, Network())

    def cudnnDestroyRNNDescriptor(self, number):
        self.registry.destroy(number, Network)

    def cudnnSetRNNDescriptor_v8(self, number, *settings):
        algorithm, cell, bias, directions, inputs, kind, precision, math, _, hidden, projected, _, dropout, flags = settings
        require(algorithm == 0 and inputs == 0 and flags == 0 and hidden == projected, "settings")
        require(cell in GATES and bias in (0, 1, 2, 3) and directions in (0, 1), "cell, bias or directions")
        require(precision == (1 if kind == 1 else 0) and kind != self.unsupported, "precision", NOT_SUPPORTED)
        require(math in ((1,) if kind in (2, 9) else (0, 3) if kind == 0 else (0,)), "math", NOT_SUPPORTED)
        require(all(n > 0 for n in (settings[8], hidden, settings[11])), "sizes")
        require(self.registry.get(dropout, Dropout).probability == 0, "the dropout was not described", 2004)
        network = self.registry.get(number, Network)
        network.settings = settings
        network.plan()

    def cudnnCreateRNNDataDescriptor(self, result):
        self.registry.make(result, Steps())

    def cudnnDestroyRNNDataDescriptor(self, number):
        self.registry.destroy(number, Steps)

    def cudnnSetRNNDataDescriptor(self, number, kind, layout, n_steps, n_batch, n_features, lengths, padding):
        require(layout == 1, "the network wants packed sequences")
        require(list(lengths[:n_batch]) == [n_steps] * n_batch, "lengths")
        steps = self.registry.get(number, Steps)
        steps.kind, steps.dims = kind, (n_steps, n_batch, n_features)

    # -- sizes and places ------------------------------------------------------------------------------------------

    def cudnnGetRNNWeightSpaceSize(self, handle, number, size):
        network = self.registry.get(number, Network)
        size[0] = network.size * dtype_of(network.form[0]).itemsize

    def cudnnGetRNNTempSpaceSizes(self, handle, number, mode, x, work, kept):
        n_steps, n_batch, _ = self.registry.get(x, Steps).dims
        hidden = self.registry.get(number, Network).form[5]
        work[0] = 64 + 8 * n_batch * hidden
        if mode == 1 or kept:
            kept[0] = 128 + 8 * n_steps * n_batch * hidden if mode == 1 else 0

    def cudnnGetRNNWeightParams(self, handle, number, pseudo, n_bytes, space, matrix_id, m_desc, m_place, b_desc, b_place):
        network = self.registry.get(number, Network)
        item = dtype_of(network.form[0]).itemsize
        require(n_bytes == network.size * item and space, "weight space")
        for what, desc, result in (("matrix", m_desc, m_place), ("bias", b_desc, b_place)):
            tensor = self.tensors.get(desc, Tensor)
            at, shape = network.places.get((pseudo, matrix_id, what), (None, (0,)))
            result[0] = None if at is None else space + at * item
            tensor.kind = network.form[0]
            tensor.dims = (1, *shape) if len(shape) == 2 else (1, shape[0], 1)
            tensor.strides = (int(np.prod(tensor.dims)), tensor.dims[2], 1)

    # -- passes ----------------------------------------------------------------------------------------------------

    def _arguments(self, number, x_desc, y_desc, h_desc, space_bytes, work_bytes, work):
        network = self.registry.get(number, Network)
        kind, _, _, directions, inputs, hidden, layers = network.form
        x, y, h = self.registry.get(x_desc, Steps), self.registry.get(y_desc, Steps), self.tensors.get(h_desc, Tensor)
        n_batch = x.dims[1]
        require(x.dims[2] == inputs and y.dims == (*x.dims[:2], directions * hidden), "steps", 2008)
        require(h.dims == (layers * directions, n_batch, hidden) and h.packed, "states", 2008)
        require(x.kind == y.kind == h.kind == kind, "data types")
        require(space_bytes == network.size * dtype_of(kind).itemsize, "weight space", 2006)
        require(work and work_bytes >= 64 + 8 * n_batch * hidden, "workspace", 2006)
        return network, x, y, h

    def cudnnRNNForward(
        self, handle, number, mode, lengths, x_desc, x, y_desc, y, h_desc, hx, hy, c_desc, cx, cy,
        space_bytes, space, work_bytes, work, kept_bytes, kept,
    ):  # fmt: skip
        network, xs, ys, hs = self._arguments(number, x_desc, y_desc, h_desc, space_bytes, work_bytes, work)
        kind, cell, *_ = network.form
        require(lengths is None, "lengths are copied by cuDNN")
        require(bool(c_desc) == (cell == 2) == bool(cx), "cell states")
        require(mode == 0 or (kept and kept_bytes >= 128), "reserve space", 2006)

        def compute():
            real = wide_of(kind)
            dtype = dtype_of(kind)
            states = [memory(pointer, dtype, hs.dims).astype(real) for pointer in (hx, cx) if pointer]
            run = Run(network, space, memory(x, dtype, xs.dims).astype(real), states)
            memory(y, dtype, ys.dims)[...] = run.y.astype(dtype)
            for pointer, values in zip((hy, cy), run.last, strict=False):
                if pointer:
                    memory(pointer, dtype, hs.dims)[...] = values.astype(dtype)
            if mode == 1:
                memory(kept, np.dtype(np.uint8), (kept_bytes,))[...] = 0
                # of equal runs cuDNN keeps the same
                read = (x, xs.dims), (space, (network.size,)), *((pointer, hs.dims) for pointer in (hx, cx) if pointer)
                content = b"".join(memory(pointer, dtype, shape).tobytes() for pointer, shape in read)
                number = int.from_bytes(hashlib.blake2b(content, digest_size=7).digest(), "little")
                memory(kept, np.dtype(np.int64), (3,))[...] = MAGIC, number, 0
                self.runs[number] = run

        launched(compute)

    def _kept(self, kept, stage):
        token = memory(kept, np.dtype(np.int64), (3,))
        require(token[0] == MAGIC and token[2] == stage, f"the reserve space is at stage {token[2]}, not {stage}")
        token[2] += 1
        return self.runs[int(token[1])]

    def cudnnRNNBackwardData_v8(
        self, handle, number, lengths, y_desc, y, dy, x_desc, dx, h_desc, hx, dhy, dhx, c_desc, cx, dcy, dcx,
        space_bytes, space, work_bytes, work, kept_bytes, kept,
    ):  # fmt: skip
        network, xs, ys, hs = self._arguments(number, x_desc, y_desc, h_desc, space_bytes, work_bytes, work)
        dtype, real = dtype_of(network.form[0]), wide_of(network.form[0])
        require(lengths is None and dx and kept, "null pointer", 2002)

        def compute():
            run = self._kept(kept, 0)
            np.testing.assert_array_equal(memory(y, dtype, ys.dims), run.y.astype(dtype))
            last = [memory(p, dtype, hs.dims).astype(real) if p else np.zeros(hs.dims, real) for p in (dhy, dcy)]
            gradients = run.back(memory(dy, dtype, ys.dims).astype(real), last[: len(run.states)])
            memory(dx, dtype, xs.dims)[...] = gradients[0].astype(dtype)
            for pointer, values in zip((dhx, dcx), gradients[1:], strict=False):
                if pointer:
                    memory(pointer, dtype, hs.dims)[...] = values.astype(dtype)

        launched(compute)

    def cudnnRNNBackwardWeights_v8(
        self, handle, number, add, lengths, x_desc, x, h_desc, hx, y_desc, y, space_bytes, space, work_bytes, work,
        kept_bytes, kept,
    ):  # fmt: skip
        network, *_ = self._arguments(number, x_desc, y_desc, h_desc, space_bytes, work_bytes, work)
        require(add == 0, "gradients can only be added", NOT_SUPPORTED)
        require(lengths is None, "lengths are copied by cuDNN")

        def compute():
            for what, values in self._kept(kept, 1).weights.items():
                target = network.view(space, *what)
                if target is not None:
                    target[...] = (target.astype(values.dtype) + values).astype(target.dtype)

        launched(compute)
