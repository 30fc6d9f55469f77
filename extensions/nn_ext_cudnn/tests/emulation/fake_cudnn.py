"""A stand-in for libcudnn on memory of the host.

Its functions are C function pointers, so that arguments are converted as for the true library. Parts of the library are
objects with a method for each function and a ``TABLE`` of the C types of their arguments; see `Handles` for an example.
"""

import ctypes
import sys
import traceback


class RefusedError(Exception):
    """The exception of a method that gives a status other than success, with the text of the last error."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def require(condition, text, status=2000):
    """Refuse a call unless `condition` holds."""
    if not condition:
        raise RefusedError(status, text)


class FakeCudnn:
    """Functions of all parts. What a part raises becomes a status, and the text of the last error."""

    def __init__(self, *parts, version=92800):
        self.parts = parts
        self.calls = []
        self._version = version
        self._text = b""

    def __getattr__(self, name):
        part = next((part for part in self.parts if name in part.TABLE), None)
        if part is None:
            raise AttributeError(name)
        method = getattr(part, name)

        def call(*arguments):
            self.calls.append(name)
            try:
                self._require_device(arguments[:1])
                method(*arguments)
            except RefusedError as error:
                self._text = str(error).encode()
                return error.status
            except BaseException:  # C cannot pass it on
                self._text = traceback.format_exc().encode()
                return 4000
            return 0

        function = ctypes.CFUNCTYPE(ctypes.c_int, *part.TABLE[name])(call)
        setattr(self, name, function)
        return function

    def _require_device(self, first):
        """Refuse a handle, which is the first argument of most functions, on another device than it was made for."""
        for value in first:
            device_id = self.parts[0].devices.get(value) if isinstance(value, int) else None
            if device_id is not None:
                own = sys.modules["cupy"].cuda.runtime.getDevice()
                require(device_id == own, f"a handle of device {device_id} was used on device {own}")

    @property
    def cudnnGetVersion(self):
        return ctypes.CFUNCTYPE(ctypes.c_size_t)(lambda: self._version)

    @property
    def cudnnGetLastErrorString(self):
        def write(buffer, size):
            ctypes.memmove(buffer, self._text[: size - 1] + b"\0", min(len(self._text), size - 1) + 1)
            self._text = b""

        return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)(write)


class Handles:
    """Handles with a stream."""

    def __init__(self):
        from nn_ext_cudnn import library

        self.TABLE = library.HANDLES
        self.streams, self.devices = {}, {}

    def cudnnCreate(self, handle):
        number = 0x1000 + len(self.streams)
        self.streams[number] = None
        self.devices[number] = sys.modules["cupy"].cuda.runtime.getDevice()
        handle[0] = number

    def cudnnSetStream(self, handle, stream):
        require(handle in self.streams, "the handle was not made by cudnnCreate")
        self.streams[handle] = stream


def make():
    """A library with all parts."""
    from fake_graph import Graphs
    from legacy_adv import Adv
    from legacy_norms import Norms
    from legacy_ops import Ops

    handles, ops = Handles(), Ops()
    return FakeCudnn(handles, ops, Norms(ops), Adv(ops), Graphs(handles))
