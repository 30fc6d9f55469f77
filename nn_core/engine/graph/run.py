"""Run one kernel at once: fetch the arrays that it reads, make those that it writes, call it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.arrays.leases import RELEASED, STRIDED
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import HOST, Key, Space, ready
from nn_core.engine.dispatch.given_dtypes import GivenDtypes, given_dtypes
from nn_core.engine.graph.call import PreparedKernel
from nn_core.engine.graph.failure import named_reading
from nn_core.engine.graph.infer import input_entries
from nn_core.engine.graph.memory import as_channels_last, is_contiguous
from nn_core.engine.graph.node import Value
from nn_core.engine.graph.tracing import LISTENERS, traced
from nn_core.errors import ArgumentError
from nn_core.operators.spec.model import FunctionSpec
from nn_core.typing import Array, Shape


def run(  # noqa: C901  # every call that is not traced
    kernel: PreparedKernel, inputs: Sequence[NdArray | None], outputs: Sequence[NdArray], key: Array | None = None
) -> None:
    """Compute a function on NdArrays; `key` has the numbers of a seeded one."""
    # Hot: what is not traced passes here with each call. The common cases are written out, all others are functions.
    flags = _channels_last(kernel, inputs) if kernel.images else None
    arrays: list[Array | None] = []
    copied_back: list[tuple[Array, Array]] = []
    for array, array_key, updated in zip(inputs, kernel.input_keys, kernel.updated, strict=True):
        if array is None or array_key is None:
            arrays.append(None)
            continue
        synced = array.synced
        if updated:
            arrays.append(_opened(kernel, array, array_key, copied_back))
        elif (
            synced.pending_fill is None
            and synced.lease is None
            and array_key in synced.valid
            and array._window is None
            and (synced.exported is None or synced.latest == array_key)
        ):
            # what `fetch` would find, for an array of the engine's own: those are in C order
            raw = synced.copies[array_key]
            arrays.append(raw if raw.shape == array._shape else raw.reshape(array._shape))
        elif flags is not None and flags[len(arrays)]:
            arrays.append(array.read(*array_key))
        else:
            try:
                arrays.append(fetch(array, array_key, True))
            except ArgumentError as error:
                raise named_reading(kernel.spec, len(arrays), error) from None
    if kernel.dynamic:
        _run_dynamic(kernel, arrays, outputs)
        return
    if flags is not None:
        flags += _made_channels_last(kernel, outputs)
    for position, shape in kernel.private:
        adopt_shape(outputs[position], shape)
    for array, array_key in zip(outputs, kernel.output_keys, strict=True):
        synced = array.synced
        if synced.latest is None and synced.lease is None and array._window is None:  # a result that was just made
            raw = kernel.empty(array._shape, array_key[1])
            synced.hold(array_key, raw)
            synced.pending_fill = None
            arrays.append(raw)
        else:
            arrays.append(_target(kernel, array, array_key, copied_back))
    if key is not None:
        arrays.append(key)
    compute(kernel, arrays, flags)
    for window, raw in copied_back:
        window[...] = raw


def compute(kernel: PreparedKernel, arrays: Sequence[Array | None], channels_last: tuple[bool, ...] | None = None) -> Any:
    """Call a kernel on raw arrays in the layout that it wants; a failure names the function that it comes from."""
    if kernel.space is not HOST:
        ready(kernel.space)
    # flags are worked out for kernels that take several layouts only
    runner = kernel.at_once if channels_last is None else kernel.forward_for(channels_last)
    try:
        if LISTENERS:
            return traced(runner, arrays, kernel.spec, kernel.args, kernel.backend, kernel.implementation)
        return runner(*arrays)
    except BaseException as error:
        kernel.note(error)
        raise


def fetch(array: NdArray, key: Key, exact: bool = False) -> Array:
    """Return the values of `array` as a raw array in C order; `exact`: see `SyncedArray.read`."""
    synced = array.synced
    if (
        array._shape is synced.shape
        and synced.lease is None
        and synced.pending_fill is None
        and key in synced.valid
        and (synced.exported is None or synced.latest == key)
    ):
        # what `read` would find; without a lease the memory is the array's own, and that is always in C order
        return synced.copies[key]
    raw = array.read(*key, exact)
    if is_contiguous(raw):
        return raw
    array.synced.make_contiguous(key)
    raw = array.read(*key)
    if is_contiguous(raw):
        return raw
    copy = key[0].empty(array.shape, key[1])  # of a narrowed array
    copy[...] = raw
    return copy


def value_of(value: Value, key: Key) -> Array:
    """Return the values of a variable, in C order, under `key`."""
    raw, node = value.lazy_array, value.trace_node  # in this order: the node says whether that is still its array
    if node is not None and raw is not RELEASED and node.output_key == key:
        return raw
    return fetch(value.storage.data, key, True)


def fetch_raw(array: Array, space: Space, dtype: str) -> Array:
    """`array` itself if it is in C order and holds `dtype`, else a copy that is and does."""
    if isinstance(array, np.generic):  # what arithmetic on arrays without axes gives
        return np.asarray(array, dtype_of(dtype))
    if str(getattr(array, "dtype", "")) == dtype and is_contiguous(array):
        return array
    result = space.empty(tuple(getattr(array, "shape", ())), dtype)
    result[...] = array
    return result


def _opened(kernel: PreparedKernel, array: NdArray, key: Key, copied_back: list[tuple[Array, Array]]) -> Array:
    """Return an input that the kernel rewrites; what is no single piece of memory is copied there and back."""
    raw = array.readwrite(*key)
    if is_contiguous(raw):
        return raw
    copy = kernel.empty(array.shape, key[1])
    copy[...] = raw
    copied_back.append((raw, copy))
    return copy


def _target(kernel: PreparedKernel, array: NdArray, key: Key, copied_back: list[tuple[Array, Array]]) -> Array:
    """Return an output that has memory already."""
    synced = array.synced
    if synced.lease is STRIDED and synced.latest == key:
        return synced.copies[key]
    raw = array.write(*key)  # ends a lease: a plan's memory must not be written to by others
    if not array.is_narrowed or is_contiguous(raw):
        return raw
    copy = kernel.empty(array.shape, key[1])
    copied_back.append((raw, copy))
    return copy


def _channels_last(kernel: PreparedKernel, inputs: Sequence[NdArray | None]) -> tuple[bool, ...] | None:
    """Return which inputs are channels-last, if the kernel takes them in that layout; None: it takes all in C order."""
    flags = []
    for array, key in zip(inputs, kernel.input_keys, strict=True):
        flags.append(array is not None and key is not None and _lies_channels_last(array, key))
    if kernel.layout == "any":
        shapes = {array.shape for array in inputs if array is not None}
        return tuple(flags) if all(flags) and len(shapes) == 1 else None
    if kernel.layout == "first" and not flags[0]:
        return None
    return tuple(flags)


def _lies_channels_last(array: NdArray, key: Key) -> bool:
    synced = array.synced
    # the memory of plans, and what is marked STRIDED: all else is in C order
    if synced.lease is None or array.is_narrowed or array.shape != synced.shape or key not in synced.valid:
        return False
    return not synced.copies[key].flags.c_contiguous


def _made_channels_last(kernel: PreparedKernel, outputs: Sequence[NdArray]) -> tuple[bool, ...]:
    """Allocate outputs that are images, and have no memory yet, channels-last; return which outputs have that layout."""
    flags = []
    for position, (array, key, make) in enumerate(zip(outputs, kernel.output_keys, kernel.makers, strict=True)):
        synced, shape = array.synced, array.shape
        is_image = 3 <= len(shape) <= 5 and (position == 0 or kernel.layout == "any")
        fresh = synced.latest is None and synced.lease is None and shape == synced.shape
        flag = is_image and fresh and 1 < shape[1] < array.size // max(shape[0], 1)
        if flag:
            synced.copies[key] = as_channels_last(make(), shape)
            synced.latest, synced.valid, synced.pending_fill, synced.lease = key, {key}, None, STRIDED
        flags.append(flag)
    return tuple(flags)


def _run_dynamic(kernel: PreparedKernel, arrays: list[Array | None], outputs: Sequence[NdArray]) -> None:
    results = compute(kernel, arrays)
    for array, dtype, result in zip(outputs, kernel.output_dtypes, results, strict=False):
        adopt_shape(array, tuple(result.shape))
        array.write(kernel.space, dtype)[...] = result


def adopt_shape(array: NdArray, shape: Shape) -> None:
    """Give `array` a shape that became known only when its function ran, or when its kernel was chosen."""
    if array.shape != shape:
        array.rest_as(NdArray.of_shape(shape))


def given_dtypes_of(spec: FunctionSpec, arrays: Sequence[NdArray | None]) -> GivenDtypes:
    """Return the dtype of each input that is taken as it is, None for the others."""
    held = [None if array is None else array.synced.dtype for array in arrays]
    return given_dtypes(input_entries(spec, len(arrays)), held)
