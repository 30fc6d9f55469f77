"""A stand-in for CuPy over NumPy that is as strict as CuPy: it refuses to mix its arrays with NumPy's.

Kernels are compiled for the host by `machine`. Streams and graphs are those of `fake_streams`.

Environment variables:
    NN_EMULATION_OFFSET: 1: arrays begin one element behind an address that is good for the widest loads.
"""

import contextlib
import ctypes
import os
import sys
import types

import machine
import numpy as np
from fake_streams import CUDARuntimeError, Event, Graph, Stream, current_device, device_if_there, require_outside_capture


class _Memory:
    def __init__(self, pointer):
        self.ptr = pointer

    def copy_from_host_async(self, pointer, n_bytes, stream):
        require_outside_capture("a copy from the host")
        ctypes.memmove(self.ptr, pointer, n_bytes)


OFFSET = os.environ.get("NN_EMULATION_OFFSET") == "1"
#: New arrays of more bytes take no memory before something is written there.
MAX_POISONED_BYTES = 1 << 22
#: DLPack's numbers of the host and of CUDA.
HOST, CUDA = 1, 2
#: The stream 0, by the numbers of ``__cuda_array_interface__`` and DLPack.
LEGACY_STREAM = 1


def _place_of(capsule):
    """The two numbers of the device in a capsule of the first version with a number, to be changed in place."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return (ctypes.c_int32 * 2).from_address(pointer(capsule, b"dltensor_versioned") + 40)


class _OnHost:
    """A capsule as NumPy takes it."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack_device__(self):
        return HOST, 0

    def __dlpack__(self, **options):
        return self._capsule


def from_dlpack(source):
    """An array over memory of the device; the producer's stream is waited for."""
    assert source.__dlpack_device__()[0] == CUDA, "CPU arrays cannot be directly imported to CuPy"
    capsule = source.__dlpack__(stream=Stream.current.ptr or LEGACY_STREAM)
    place = _place_of(capsule)
    device_id, place[:] = place[1], (HOST, 0)
    array = np.from_dlpack(_OnHost(capsule)).view(FakeArray)
    array.device_id = device_id
    return array


class FakeArray(np.ndarray):
    """An array "on the device" that was current when it was made; kernels of another one cannot use it."""

    def __array_finalize__(self, source):
        self.device_id = source.device_id if isinstance(source, FakeArray) else device_if_there()

    @property
    def data(self):
        return _Memory(self.ctypes.data)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        for value in (*inputs, *(out or ())):
            _require_device(value)
        plain = [value.view(np.ndarray) if isinstance(value, FakeArray) else value for value in inputs]
        if out is None:
            return _new(lambda: getattr(ufunc, method)(*plain, **kwargs))
        kwargs["out"] = tuple(value.view(np.ndarray) for value in out)
        _in_place(lambda: getattr(ufunc, method)(*plain, **kwargs))
        return out[0] if len(out) == 1 else out

    def __setitem__(self, key, value):
        _require_device(value)
        key, value, array = _plain(key), _plain(value), self.view(np.ndarray)
        _in_place(lambda: array.__setitem__(key, value))

    def __getitem__(self, key):
        return _new(lambda: self.view(np.ndarray)[_plain(key)])

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def get(self):
        require_outside_capture("a copy to the host")
        return np.array(self.view(np.ndarray))

    def item(self):
        require_outside_capture("a copy to the host")
        return self.view(np.ndarray).item()

    def __bool__(self):
        return bool(self.item())

    def __int__(self):
        return int(self.item())

    __index__ = __int__

    def __float__(self):
        return float(self.item())

    def set(self, values):
        self.view(np.ndarray)[...] = values

    @property
    def __cuda_array_interface__(self):
        stream = Stream.current.ptr or LEGACY_STREAM
        return {**self.__array_interface__, "version": 3, "stream": stream, "strides": self.strides}

    def __dlpack_device__(self):
        return CUDA, current_device()

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        require_outside_capture("an event that another stream waits for")
        Stream.waited_for.append((stream, Stream.current))
        capsule = np.ndarray.__dlpack__(self.view(np.ndarray), max_version=(1, 0))
        _place_of(capsule)[:] = CUDA, current_device()
        return capsule


def _method(name):
    def call(self, *args, **kwargs):
        plain, args = self.view(np.ndarray), _plain(args)
        return _new(lambda: getattr(plain, name)(*args, **kwargs))

    return call


REDUCTIONS = ("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var")
for _name in (*REDUCTIONS, "argsort", "astype", "clip", "copy", "cumprod", "cumsum", "dot", "repeat", "take"):
    setattr(FakeArray, _name, _method(_name))


def _new(compute):
    """New arrays, or views, of the device; a recording computes them again at each replay."""
    with np.errstate(all="ignore"):  # a device does not warn
        result = wrapped(compute())
        if Graph.recording is not None:
            Graph.note(lambda: _refresh(result, compute()))
    return result


def _refresh(old, new):
    if isinstance(old, (tuple, list)):
        for one, other in zip(old, new, strict=True):
            _refresh(one, other)
    elif isinstance(old, FakeArray):
        target = old.view(np.ndarray)
        if not np.may_share_memory(target, new):
            with np.errstate(all="ignore"):
                target[...] = new


def _in_place(change):
    """Change an array now, or at each replay of what is recorded."""

    def quietly():
        with np.errstate(all="ignore"):
            change()

    Graph.note(quietly)


def _require_device(value):
    if isinstance(value, np.ndarray) and not isinstance(value, FakeArray):
        raise TypeError(f"Unsupported type {type(value)}")


def wrapped(value):
    """Arrays among the results become arrays on the device; NumPy's scalars become arrays without axes."""
    if isinstance(value, FakeArray):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value).view(FakeArray)
    if isinstance(value, (tuple, list)):
        return type(value)(wrapped(item) for item in value) if type(value) in (tuple, list) else tuple(map(wrapped, value))
    return value


def _plain(value):
    if isinstance(value, FakeArray):
        return value.view(np.ndarray)
    if isinstance(value, (tuple, list)):
        return type(value)(map(_plain, value))
    return value


def _lifted(function):
    def call(*args, **kwargs):
        for value in (*args, *kwargs.values()):
            _require_device(value)
        plain = {name: _plain(value) for name, value in kwargs.items()}
        return _new(lambda: function(*map(_plain, args), **plain))

    if isinstance(function, np.ufunc):
        for name in ("reduce", "accumulate"):
            setattr(call, name, _lifted(getattr(function, name)))
        call.at = lambda target, *operands: _in_place(lambda: _in_any_order(function, *map(_plain, (target, *operands))))
    return call


_ORDERS = np.random.default_rng(0)


def _in_any_order(function, target, places, values):
    """``function.at`` by atomic operations: in another order each time."""
    places = np.broadcast_arrays(*places) if isinstance(places, tuple) else [np.asarray(places)]
    block = target.shape[len(places) :]
    values = np.broadcast_to(values, (*places[0].shape, *block)).reshape(-1, *block)
    order = _ORDERS.permutation(places[0].size)
    function.at(target, tuple(place.reshape(-1)[order] for place in places), values[order])


class Module(types.ModuleType):
    """The namespace: NumPy's functions over device arrays, and what this package uses of CuPy."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(np, name)
        if isinstance(value, types.ModuleType):
            value = _Submodule(value)
        elif callable(value) and not isinstance(value, type):
            value = _lifted(value)
        setattr(self, name, value)
        return value


class _Submodule:
    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        value = getattr(self._module, name)
        return _lifted(value) if callable(value) and not isinstance(value, type) else value


class RawModule:
    def __init__(self, *, code, options=()):
        self._code = code

    def get_function(self, name):
        function = machine.compile_source(self._code, name)
        loaded = set()

        def launch(grid, block, arguments, *, shared_mem=0):
            own = current_device()
            if own not in loaded:
                require_outside_capture("loading a module")
                loaded.add(own)
            for argument in arguments:
                device_id = getattr(argument, "device_id", own)
                assert device_id == own, f"{name} on device {own} got an array of device {device_id}"
            Graph.note(lambda: function(grid, block, arguments, shared_mem=shared_mem))

        launch.compile = lambda: loaded.add(current_device())
        return launch


class MemoryPool:
    def malloc(self, size):
        raise NotImplementedError

    def free_all_blocks(self):
        return None

    def used_bytes(self):
        return 128

    def total_bytes(self):
        return 512


class UnownedMemory:
    """Memory that somebody else owns; where that is an object, it begins to hold no numbers."""

    def __init__(self, ptr, size, owner, device_id=-1):
        self.ptr, self.size, self.owner = ptr, size, owner
        if owner is not None and size <= MAX_POISONED_BYTES:
            ctypes.memset(ptr, 0xFF, size)


class _Bytes:
    """Memory as a buffer, which the constructor of arrays takes, with its owner."""

    def __new__(cls, memory, offset):
        size = memory.size - offset
        made = type("Bytes", (ctypes.c_char * size,), {}).from_address(memory.ptr + offset)
        made.memory = memory
        return made


class OutOfMemoryError(MemoryError):
    pass


def asarray(values, dtype=None, order=None):
    if isinstance(values, FakeArray):
        return values if dtype is None or values.dtype == dtype else values.astype(dtype)
    require_outside_capture("a copy from the host")
    plain = np.array(_plain(values), dtype=dtype, order=order or "K")
    if not plain.flags.c_contiguous:
        return plain.view(FakeArray)
    result = empty(plain.shape, plain.dtype)
    result.view(np.ndarray)[...] = plain
    return result


def array(values, dtype=None, order=None, copy=True):
    return values.copy() if isinstance(values, FakeArray) and dtype is None else asarray(values, dtype, order)


def empty(shape, dtype="float64", order="C"):
    """An array at a multiple of 512 bytes, as CuPy's pool gives it, or one element further on, where views may begin.

    Bytes are the workspaces of libraries, which ask for memory of their own and so are not moved. Values are no numbers,
    and no indices, until something is written there.
    """
    dtype, shape = np.dtype(dtype), (shape,) if isinstance(shape, int) else tuple(shape)
    n_bytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    memory = np.empty(n_bytes + 512 + dtype.itemsize, np.uint8)
    start = -memory.ctypes.data % 512 + (dtype.itemsize if OFFSET and dtype.itemsize > 1 else 0)
    if n_bytes <= MAX_POISONED_BYTES:
        memory[start : start + n_bytes] = 0xFF
    return np.ndarray(shape, dtype, memory, start, order=order).view(FakeArray)


class PinnedMemory(bytearray):
    @property
    def ptr(self):
        return ctypes.addressof((ctypes.c_char * len(self)).from_buffer(self))


def make():
    """A new module that can take the place of CuPy."""
    cupy = Module("cupy")
    cupy.ndarray = FakeArray
    cupy.asarray, cupy.array, cupy.from_dlpack, cupy.empty = asarray, array, from_dlpack, empty
    cupy.asnumpy = lambda values, **_: values.get() if isinstance(values, FakeArray) else np.array(values)
    cupy.RawModule = RawModule
    cupy.is_available = lambda: True
    pool = MemoryPool()
    cupy.get_default_memory_pool = lambda: pool
    cupy.get_default_pinned_memory_pool = lambda: pool
    runtime = types.SimpleNamespace(
        getDevice=lambda: Device.current,
        getDeviceCount=lambda: 2,
        getDeviceProperties=lambda number: {"name": f"Fake {number}".encode(), "multiProcessorCount": 4},
        deviceSynchronize=lambda: None,
        memGetInfo=lambda: (1000, 4000),
        CUDARuntimeError=CUDARuntimeError,
    )

    class Device:
        current = 0

        def __init__(self, number=None):
            self.id = Device.current if number is None else number

        def use(self):
            Device.current = self.id

        def __enter__(self):
            self._before, Device.current = Device.current, self.id
            return self

        def __exit__(self, *_):
            Device.current = self._before

    cupy.cuda = types.SimpleNamespace(
        runtime=runtime,
        Device=Device,
        Stream=Stream,
        Graph=Graph,
        MemoryPool=MemoryPool,
        MemoryPointer=_Bytes,
        UnownedMemory=UnownedMemory,
        Event=Event,
        alloc_pinned_memory=PinnedMemory,
        get_current_stream=lambda: Stream.current,
        nvtx=types.SimpleNamespace(RangePush=lambda name: None, RangePop=lambda: None),
        get_elapsed_time=lambda start, end: 1e3 * (end.time - start.time),
        set_allocator=lambda allocator=None: None,
        using_allocator=lambda allocator: contextlib.nullcontext(),
        memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    )
    return cupy


#: Modules of this package that hold CuPy.
HOLDERS = [
    *("nn_ext_cuda.backend", "nn_ext_cuda.device.devices", "nn_ext_cuda.device.runtime", "nn_ext_cuda.launch.capture"),
    *("nn_ext_cuda.launch.recurring", "nn_ext_cuda.memory.small_blocks", "nn_ext_cuda.memory.usage"),
]


def forget_plugins():
    """Ask anew whether there is a device, but not, as `PLUGINS.refresh` does, what is installed: that takes long."""
    from nn_core.engine.dispatch.plugin_manager import PLUGINS

    for name in ("cuda", "cudnn"):
        if name in PLUGINS._plugins:
            PLUGINS._unload(PLUGINS._plugins[name])
    PLUGINS.forget_prepared()


@contextlib.contextmanager
def installed():
    """CuPy is the stand-in inside the block, for modules of this package that are imported in it."""
    before = dict(sys.modules)
    for name in HOLDERS:
        _forget(name)
    sys.modules["cupy"] = make()
    try:
        yield sys.modules["cupy"]
    finally:
        for name in list(sys.modules):
            if name not in before or name in HOLDERS:
                _forget(name)
        sys.modules.pop("cupy", None)
        sys.modules.update(before)
        for name in HOLDERS:
            if name in before:
                setattr(sys.modules["nn_ext_cuda"], name.rpartition(".")[2], before[name])


def _forget(name):
    """Drop a module, also as an attribute of its package, where ``from package import module`` looks first."""
    sys.modules.pop(name, None)
    package, _, own = name.rpartition(".")
    if package in sys.modules:
        vars(sys.modules[package]).pop(own, None)
