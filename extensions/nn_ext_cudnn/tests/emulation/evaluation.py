"""An operation graph of the stand-in for libcudnn, checked and computed."""

import ctypes
import itertools

import chained
import convolving
import numpy as np
from fake_cudnn import require

_RESULTS = {10: "narrow", 11: "filter", 12: "wide"}
_DTYPES = {0: "float32", 1: "float64", 2: "float16", 4: "int32", 9: "bfloat16", 11: "bool"}
_NOISE = itertools.count(1)


def dtype_of(number):
    """The dtype of a cudnnDataType_t."""
    name = _DTYPES[number]
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


class Evaluation:
    """A graph on arrays.

    Args:
        operations: Descriptors of the operations.
        engine: The engine that runs it.
        pointers: Address of each tensor that has memory, by uid.
        workspace: Address of the scratch memory.
    """

    def __init__(self, operations, engine, pointers, workspace):
        self._operations = operations
        self._engine = engine
        self._workspace = workspace or 0
        self._arrays = {}
        for operation in operations:
            inputs, output = self.tensors(operation)
            for tensor in (*inputs, output):
                values = tensor.values
                if not getattr(values, "is_virtual", False):
                    require(pointers.get(values.uid), f"the variant pack has no tensor {values.uid}", 2002)
                    self._arrays[values.uid] = _view(values, pointers[values.uid])
        require(set(pointers) == set(self._arrays), "the variant pack has tensors that the graph does not have")
        require(not engine.workspace or self._workspace, "the engine needs scratch memory", 2006)

    @staticmethod
    def tensors(operation):
        """(what an operation reads, what it writes)."""
        values = operation.values
        if operation.kind == 13:
            inputs = (values.x, getattr(values, "b", None), getattr(values, "condition", None))
            return [tensor for tensor in inputs if tensor is not None], values.y
        if operation.kind in chained.TENSORS:
            *inputs, output = (getattr(values, name) for name in chained.TENSORS[operation.kind])
            return inputs, output
        by_name = {"narrow": values.narrow, "filter": values.filters, "wide": values.wide}
        result = by_name.pop(_RESULTS[operation.kind])
        return list(by_name.values()), result

    @staticmethod
    def check_convolution(result, values):
        """Refuse a convolution whose sizes and types do not fit."""
        wide, filters, narrow = (tensor.values for tensor in (values.wide, values.filters, values.narrow))
        window = values.convolution.values
        n = window.spatial_dims
        require(all(len(each.shape) == n + 2 for each in (wide, filters, narrow)), "ranks fit the convolution", 2008)
        require(wide.shape[0] == narrow.shape[0], "both images have one batch", 2008)
        require(filters.shape[0] == narrow.shape[1], "one filter for each channel of the result", 2008)
        groups, rest = divmod(wide.shape[1], filters.shape[1])
        require(rest == 0 and filters.shape[0] % groups == 0, "channels are a multiple of the groups", 2008)
        for axis in range(n):
            length = wide.shape[2 + axis] + window.pre_paddings[axis] + window.post_paddings[axis]
            length -= window.dilations[axis] * (filters.shape[2 + axis] - 1) + 1
            places = length // window.strides[axis] + 1
            require(narrow.shape[2 + axis] == places, f"{places} places on axis {axis}, got {narrow.shape}", 2008)
        written = {"narrow": narrow, "filter": filters, "wide": wide}[result]
        kinds = {each.dtype for each in (wide, filters, narrow) if each is not written}
        require(len(kinds) == 1, "what is read is of one type", 3003)
        wanted = {window.compute} if getattr(written, "is_virtual", False) else kinds
        require(written.dtype in wanted, "what is written has the type of what is read, or of sums", 3003)
        require(window.compute == (1 if kinds == {1} else 0), "sums are in float, for double in double", 3003)
        require(values.alpha == 1.0 and values.beta in (0.0, 1.0), "results are not scaled, and added to all or nothing")
        is_virtual = getattr(written, "is_virtual", False)
        require(not (is_virtual and values.beta), "there is something to add to")

    @staticmethod
    def check_pointwise(values):
        """Refuse an element-wise operation whose sizes do not fit."""
        x, y = values.x.values, values.y.values
        require(x.shape == y.shape, "the result has the shape of the first input", 2008)
        mode = values.pointwise.values.mode
        require(mode in chained.POINTWISE, f"there is no mode {mode} here", 3000)
        _, n_inputs = chained.POINTWISE[mode]
        n_given = sum(hasattr(values, name) for name in ("x", "b", "condition"))
        require(n_given == n_inputs, f"mode {mode} has {n_inputs} inputs, got {n_given}")
        require(hasattr(values.pointwise.values, "axis") == (mode == 501), "an axis is for indices")
        if hasattr(values, "condition"):
            require(values.condition.values.dtype == 11, "a condition is boolean", 3003)
        if hasattr(values, "b"):
            pairs = zip(values.b.values.shape, x.shape, strict=True)
            require(all(own in (1, whole) for own, whole in pairs), "the second input broadcasts", 2008)

    def run(self):
        """Compute, the way the engine notes."""
        if self._engine.workspace:
            ctypes.memset(self._workspace, 0xFF, self._engine.workspace)
        values = dict(self._arrays)
        for operation in self._operations:
            _, output = self.tensors(operation)
            result = self._computed(operation, values)
            uid = output.values.uid
            if uid in self._arrays:
                with np.errstate(all="ignore"):
                    self._arrays[uid][...] = result
            else:
                values[uid] = result.astype(dtype_of(output.values.dtype))

    def _computed(self, operation, values):
        if operation.kind in chained.COMPUTED:
            inputs, output = self.tensors(operation)
            read = [values[tensor.values.uid] for tensor in inputs]
            with np.errstate(all="ignore"):
                return chained.COMPUTED[operation.kind](operation.values, read, output.values)
        return self._convolve(operation, values)

    def _convolve(self, operation, arrays):
        values, result = operation.values, _RESULTS[operation.kind]
        window = values.convolution.values
        given = {}
        for name in ("wide", "filters", "narrow"):
            tensor = getattr(values, name).values
            given[name] = self._rounded(arrays[tensor.uid]) if tensor.uid in arrays else np.zeros(tensor.shape)
            if name == "filters":
                _require_readable(tensor)
        settings = window.strides, window.dilations, window.pre_paddings
        with np.errstate(all="ignore"):
            found = convolving.solved(result, *given.values(), settings).astype(dtype_of(window.compute))
            found = self._perturbed(found)
            if not values.beta:
                return found
            _, output = self.tensors(operation)
            return found + arrays[output.values.uid].astype(found.dtype)

    def _rounded(self, array):
        """The operands, rounded to 10 bits where an engine does that to float32."""
        if 0 in self._engine.notes and array.dtype == np.float32:
            bits = np.ascontiguousarray(array).view(np.uint32)
            return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
        return array

    def _perturbed(self, found):
        """The result with the errors that the notes tell of."""
        if 2 in self._engine.notes:
            found = found.astype(np.float16).astype(found.dtype)
        if 6 in self._engine.notes:
            found = found * found.dtype.type(1 + 2.0**-6)
        if 4 in self._engine.notes:
            found = found * found.dtype.type(1 + 2.0**-8 * next(_NOISE))
        return found


def _require_readable(filters):
    """Refuse filters of one channel in another order than C's: cuDNN 9.19 reads them in that, whatever their strides say."""
    steps = [step for step, length in zip(filters.strides, filters.shape, strict=True) if length > 1]
    if filters.shape[1] == 1:
        require(steps == sorted(steps, reverse=True), "filters of one channel are in C order")


def _view(values, pointer):
    """The memory of a tensor as an array."""
    require(pointer % values.alignment == 0, f"the address of tensor {values.uid} is a multiple of {values.alignment}", 2003)
    dtype = dtype_of(values.dtype)
    extent = 1 + sum((n - 1) * step for n, step in zip(values.shape, values.strides, strict=True))
    memory = (ctypes.c_char * (extent * dtype.itemsize)).from_address(pointer)
    flat = np.frombuffer(memory, dtype, extent)
    strides = tuple(step * dtype.itemsize for step in values.strides)
    return np.lib.stride_tricks.as_strided(flat, values.shape, strides)
