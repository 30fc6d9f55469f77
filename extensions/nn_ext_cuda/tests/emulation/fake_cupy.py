"""A stand-in for CuPy over NumPy that is as strict as CuPy: it refuses to mix its arrays with NumPy's.

Kernels are compiled for the host by `machine`. Streams and graphs are recorded, not run in parallel.
"""

import contextlib
import sys
import types

import machine
import numpy as np


class _Memory:
    def __init__(self, pointer):
        self.ptr = pointer


class FakeArray(np.ndarray):
    """An array "on the device"."""

    @property
    def data(self):
        return _Memory(self.ctypes.data)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        for value in (*inputs, *(out or ())):
            _require_device(value)
        plain = [value.view(np.ndarray) if isinstance(value, FakeArray) else value for value in inputs]
        if out is not None:
            kwargs["out"] = tuple(value.view(np.ndarray) for value in out)
        with np.errstate(all="ignore"):  # a device does not warn
            return wrapped(getattr(ufunc, method)(*plain, **kwargs))

    def __setitem__(self, key, value):
        _require_device(value)
        super().__setitem__(key, value)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def get(self):
        return np.array(self.view(np.ndarray))

    def set(self, values):
        self.view(np.ndarray)[...] = values


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
        with np.errstate(all="ignore"):
            return wrapped(function(*map(_plain, args), **plain))

    if isinstance(function, np.ufunc):
        for name in ("reduce", "accumulate"):
            setattr(call, name, _lifted(getattr(function, name)))
        call.at = lambda target, *operands: function.at(target.view(np.ndarray), *map(_plain, operands))
    return call


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

        def launch(grid, block, arguments, *, shared_mem=0):
            Graph.note(lambda: function(grid, block, arguments, shared_mem=shared_mem))

        return launch


class Graph:
    """Launches that were recorded while a stream was capturing."""

    recording = None
    fails_with = None

    def __init__(self, calls):
        self.calls = calls
        self.replays = 0

    @classmethod
    def note(cls, call):
        if cls.recording is None:
            call()
        else:
            if cls.fails_with is not None:
                raise cls.fails_with
            cls.recording.append(call)

    def launch(self, stream=None):
        self.replays += 1
        for call in self.calls:
            call()


class Stream:
    ptr = 0

    def __init__(self, *, non_blocking=False, null=False):
        self.non_blocking = non_blocking

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def begin_capture(self, mode=None):
        assert Graph.recording is None
        Graph.recording = []

    def end_capture(self):
        calls, Graph.recording = Graph.recording, None
        return Graph(calls)

    def is_capturing(self):
        return Graph.recording is not None

    def synchronize(self):
        assert Graph.recording is None, "synchronize while capturing"


class MemoryPool:
    def malloc(self, size):
        raise NotImplementedError

    def free_all_blocks(self):
        return None

    def used_bytes(self):
        return 128

    def total_bytes(self):
        return 512


class OutOfMemoryError(MemoryError):
    pass


class CUDARuntimeError(RuntimeError):
    pass


def asarray(values, dtype=None, order=None):
    return np.array(_plain(values), dtype=dtype, order=order or "K").view(FakeArray)


def make():
    """A new module that can take the place of CuPy."""
    cupy = Module("cupy")
    cupy.ndarray = FakeArray
    cupy.asarray = cupy.array = asarray
    cupy.asnumpy = lambda values, **_: np.array(_plain(values))
    cupy.RawModule = RawModule
    cupy.is_available = lambda: True
    pool = MemoryPool()
    cupy.get_default_memory_pool = lambda: pool
    cupy.get_default_pinned_memory_pool = lambda: pool
    runtime = types.SimpleNamespace(
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
        get_current_stream=Stream,
        set_allocator=lambda allocator=None: None,
        using_allocator=lambda allocator: contextlib.nullcontext(),
        memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    )
    return cupy


@contextlib.contextmanager
def installed():
    """CuPy is the stand-in inside the block, for modules of this package that are imported in it."""
    before = dict(sys.modules)
    sys.modules["cupy"] = make()
    try:
        yield sys.modules["cupy"]
    finally:
        for name in list(sys.modules):
            if name not in before:
                del sys.modules[name]
                parent, _, child = name.rpartition(".")
                if parent in before:
                    vars(before[parent]).pop(child, None)  # or `from parent import child` finds it again
        sys.modules.pop("cupy", None)
        sys.modules.update(before)
