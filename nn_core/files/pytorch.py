"""Tensors of files that ``torch.save`` has written: their pickle is read as data, and nothing in it is called.

A file is an archive with a pickle, ``data.pkl``, and a member for each storage. The pickle is a program; the instructions that
``torch.save`` needs for dictionaries of tensors are followed here, with records in the place of every class and function that
it names. Other instructions are refused.
"""

import pickletools
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final, Literal

import numpy as np

from nn_core.errors import FileFormatError, quoted
from nn_core.files.budgets import budget
from nn_core.files.entries import Array, Entries, Entry
from nn_core.files.safetensors import widened

#: dtypes by the names of classes of storages, and by those of dtypes of PyTorch; texts in capitals are names of safetensors.
_STORAGES: Final = {
    "BoolStorage": "bool",
    "ByteStorage": "uint8",
    "CharStorage": "int8",
    "ShortStorage": "int16",
    "IntStorage": "int32",
    "LongStorage": "int64",
    "HalfStorage": "float16",
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "BFloat16Storage": "BF16",
    "UntypedStorage": "uint8",
}
_DTYPES: Final = {
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
}
#: Keys under which checkpoints have the weights of their model, beside other things.
_MODELS: Final = ("state_dict", "model_state_dict", "model", "module")
_WIDTHS: Final = {"BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1}


@dataclass(frozen=True, slots=True)
class _Named:
    """A class or a function that the pickle names."""

    name: str


@dataclass(frozen=True, slots=True)
class _Other:
    """An object that is none of those that are read."""

    kind: str


@dataclass(frozen=True, slots=True)
class _Storage:
    dtype: str
    key: str
    size: int


@dataclass(frozen=True, slots=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


def read_pytorch(file: IO[bytes]) -> Entries:
    """Read the tensors of a dictionary, those in dictionaries inside by names with dots; of a checkpoint those of its model.

    Raises:
        FileFormatError: when the file is damaged, is older than PyTorch 1.6, or holds something else.
    """
    if not zipfile.is_zipfile(file):
        raise FileFormatError("the file must be an archive, as torch.save of PyTorch 1.6 and later writes it, got another")
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        budget().require("members", len(archive.infolist()), "the archive")
        program = next((info for info in archive.infolist() if info.filename.endswith("/data.pkl")), None)
        if program is None:
            raise FileFormatError("the archive must have the member data.pkl, got none")
        budget().require("text_bytes", program.file_size, "data.pkl")
        folder = program.filename.removesuffix("data.pkl")
        content = _Machine().run(archive.read(program))
        return _Storages(archive, folder).entries(_weights(content))


def _weights(content: Any) -> Mapping[Any, Any]:
    """Return the dictionary with the weights."""
    if not isinstance(content, dict):
        got = content.kind if isinstance(content, _Other) else type(content).__name__.strip("_").lower()
        raise FileFormatError(f"the file must hold a dictionary of tensors, such as model.state_dict(), got {quoted(got)}")
    inner = next((content[key] for key in _MODELS if isinstance(content.get(key), dict)), None)
    has_tensors = any(isinstance(value, _Tensor) for value in content.values())
    return content if inner is None or has_tensors else inner


class _Storages:
    """Arrays of an archive, each of which is read once."""

    def __init__(self, archive: zipfile.ZipFile, folder: str) -> None:
        self._archive, self._folder = archive, folder
        self._arrays: dict[tuple[str, str], Array] = {}
        names = set(archive.namelist())
        order = archive.read(f"{folder}byteorder").strip() if f"{folder}byteorder" in names else b"little"
        if order not in (b"little", b"big"):
            raise FileFormatError(f"byteorder must be little or big, got {quoted(order.decode('ascii', 'replace'))}")
        self._order: Literal["<", ">"] = "<" if order == b"little" else ">"

    def entries(self, tensors: Mapping[Any, Any]) -> Entries:
        found: Entries = {}
        for name, tensor in _flat(tensors):
            if name in found:
                raise FileFormatError(f"tensors must have names of their own, got {quoted(name)} twice")
            found[name] = Entry(self._view(name, tensor))
        return found

    def _view(self, name: str, tensor: _Tensor) -> Array:
        whole = self._whole(tensor)
        sizes = (*tensor.shape, *tensor.strides, tensor.offset)
        if len(tensor.shape) != len(tensor.strides) or not all(type(size) is int and size >= 0 for size in sizes):
            raise FileFormatError(f"tensor {quoted(name)} must have lengths and strides of at least 0, got {quoted(tensor)}")
        count = int(np.prod(tensor.shape, dtype=object))
        last = tensor.offset + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.strides, strict=True))
        if count > whole.size or (count and last >= whole.size):
            raise FileFormatError(f"tensor {quoted(name)} must be within its {whole.size} elements, got shape {tensor.shape}")
        if not count:
            return np.zeros(tensor.shape, whole.dtype)
        strides = [stride * whole.itemsize for stride in tensor.strides]
        return np.lib.stride_tricks.as_strided(whole[tensor.offset :], tensor.shape, strides, writeable=False)

    def _whole(self, tensor: _Tensor) -> Array:
        """Return all elements of a storage."""
        key = tensor.storage.key, tensor.dtype
        if key not in self._arrays:
            info = self._archive.getinfo(f"{self._folder}data/{tensor.storage.key}")
            growth = -(-info.file_size // max(info.compress_size, 1))
            budget().require("expansion", growth, f"bytes of storage {quoted(tensor.storage.key)} for each that is stored")
            width = _WIDTHS.get(tensor.dtype)
            dtype = np.dtype(f"uint{8 * width}" if width else tensor.dtype).newbyteorder(self._order)
            content = self._archive.read(info)
            elements = np.frombuffer(content, dtype, count=len(content) // dtype.itemsize)
            elements = elements.astype(dtype.newbyteorder("="), copy=False)
            self._arrays[key] = widened(elements, tensor.dtype) if width else elements
        return self._arrays[key]


def _flat(content: Mapping[Any, Any]) -> Iterator[tuple[str, _Tensor]]:
    """Yield the tensors of dictionaries inside each other; other values are no weights."""
    waiting: list[tuple[str, int, Any]] = [("", 0, content)]
    n_seen = 0
    while waiting:
        name, depth, value = waiting.pop()
        n_seen += 1
        budget().require("nodes", n_seen, "the number of values")
        budget().require("depth", depth, "dictionaries inside each other")
        if isinstance(value, _Tensor):
            yield name, value
        elif isinstance(value, dict):
            prefix = f"{name}." if name else ""
            waiting += [(f"{prefix}{key}", depth + 1, inner) for key, inner in reversed(value.items())]


def _rebuilt(storage: Any, offset: Any, shape: Any, strides: Any, *others: Any) -> _Tensor:
    if not isinstance(storage, _Storage) or not isinstance(shape, tuple) or not isinstance(strides, tuple):
        raise FileFormatError("tensors must be made of a storage, a shape and strides, got something else")
    return _Tensor(storage, offset, shape, strides, storage.dtype)


def _rebuilt_as(
    storage: Any, offset: Any, shape: Any, strides: Any, need_grad: Any, hooks: Any, dtype: Any, *others: Any
) -> _Tensor:
    made = _rebuilt(storage, offset, shape, strides)
    name = dtype.name.removeprefix("torch.") if isinstance(dtype, _Named) else ""
    if name not in _DTYPES:
        raise FileFormatError(f"tensors must have one of the dtypes {', '.join(_DTYPES)}, got {quoted(name)}")
    return _Tensor(made.storage, offset, shape, strides, _DTYPES[name])


#: Stand-ins for functions that the pickle calls.
_CALLS: Final[Mapping[str, Callable[..., Any]]] = {
    "collections.OrderedDict": lambda *pairs: dict(pairs[0]) if pairs else {},
    "torch._utils._rebuild_tensor": _rebuilt,
    "torch._utils._rebuild_tensor_v2": _rebuilt,
    "torch._utils._rebuild_tensor_v3": _rebuilt_as,
    "torch._utils._rebuild_parameter": lambda tensor, *others: tensor,
    "torch._utils._rebuild_parameter_with_state": lambda tensor, *others: tensor,
    "torch.Size": lambda lengths: lengths,
}
_REBUILDING: Final = "torch._utils._rebuild_"


@dataclass(slots=True)
class _Machine:
    """An interpreter of the instructions of a pickle: a stack, marks in it, and values that are remembered."""

    stack: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def run(self, program: bytes) -> Any:
        """Return what the program makes."""
        for instruction, argument, _ in pickletools.genops(program):
            if instruction.name == "STOP":
                return self.stack.pop()
            if instruction.name in _CONSTANTS:
                self.stack.append(argument)
                continue
            follow = _INSTRUCTIONS.get(instruction.name)
            if follow is None:
                raise FileFormatError(
                    f"data.pkl must have the instructions of dictionaries of tensors, got {instruction.name}"
                )
            follow(self, argument)
        raise FileFormatError("data.pkl must have an end, got none")

    def since_mark(self) -> list[Any]:
        """Take everything above the last mark."""
        start = self.marks.pop()
        found = self.stack[start:]
        del self.stack[start:]
        return found

    def put(self, argument: Any) -> None:
        self.memo[len(self.memo) if argument is None else argument] = self.stack[-1]

    def take(self, count: int) -> tuple[Any, ...]:
        found = tuple(self.stack[len(self.stack) - count :])
        if len(found) < count:
            raise FileFormatError("data.pkl must take what it has put, got more taken")
        del self.stack[len(self.stack) - count :]
        return found

    def set_items(self, pairs: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, dict):
            target.update(zip(pairs[::2], pairs[1::2], strict=True))

    def append_all(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, list):
            target.extend(values)

    def call(self) -> None:
        function, arguments = self.take(2)
        name = function.name if isinstance(function, _Named) else "object"
        stand_in = _CALLS.get(name)
        if stand_in is None and name.startswith(_REBUILDING):
            raise FileFormatError(f"tensors must be dense and plain, got one of {name.removeprefix(_REBUILDING)}")
        self.stack.append(_Other(name) if stand_in is None else stand_in(*arguments))

    def made_new(self) -> None:
        kind, _ = self.take(2)
        self.stack.append(_Other(kind.name if isinstance(kind, _Named) else "object"))

    def storage(self) -> None:
        what, kind, key, _, size = self.stack.pop()
        name = kind.name.rpartition(".")[2] if isinstance(kind, _Named) else ""
        if what != "storage" or name not in _STORAGES or type(key) is not str:
            raise FileFormatError(f"storages must be of one of the classes {', '.join(_STORAGES)}, got {quoted(name)}")
        self.stack.append(_Storage(_STORAGES[name], key, size))

    def name_of_stack(self) -> None:
        module, name = self.take(2)
        self.stack.append(_Named(f"{module}.{name}"))


#: Instructions that put their argument on the stack.
_CONSTANTS: Final = frozenset(
    {
        *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE"),
        *("BINBYTES", "SHORT_BINBYTES", "BINSTRING", "SHORT_BINSTRING"),
    }
)
_INSTRUCTIONS: Final[Mapping[str, Callable[[_Machine, Any], Any]]] = {
    "NONE": lambda machine, argument: machine.stack.append(None),
    "NEWTRUE": lambda machine, argument: machine.stack.append(True),
    "NEWFALSE": lambda machine, argument: machine.stack.append(False),
    "EMPTY_DICT": lambda machine, argument: machine.stack.append({}),
    "EMPTY_LIST": lambda machine, argument: machine.stack.append([]),
    "EMPTY_TUPLE": lambda machine, argument: machine.stack.append(()),
    "EMPTY_SET": lambda machine, argument: machine.stack.append(_Other("set")),
    "PROTO": lambda machine, argument: None,
    "FRAME": lambda machine, argument: None,
    "MARK": lambda machine, argument: machine.marks.append(len(machine.stack)),
    "GLOBAL": lambda machine, argument: machine.stack.append(_Named(argument.replace(" ", "."))),
    "STACK_GLOBAL": lambda machine, argument: machine.name_of_stack(),
    "BINPERSID": lambda machine, argument: machine.storage(),
    "TUPLE": lambda machine, argument: machine.stack.append(tuple(machine.since_mark())),
    "TUPLE1": lambda machine, argument: machine.stack.append(machine.take(1)),
    "TUPLE2": lambda machine, argument: machine.stack.append(machine.take(2)),
    "TUPLE3": lambda machine, argument: machine.stack.append(machine.take(3)),
    "REDUCE": lambda machine, argument: machine.call(),
    "NEWOBJ": lambda machine, argument: machine.made_new(),
    "BUILD": lambda machine, argument: machine.take(1),
    "SETITEM": lambda machine, argument: machine.set_items(list(machine.take(2))),
    "SETITEMS": lambda machine, argument: machine.set_items(machine.since_mark()),
    "APPEND": lambda machine, argument: machine.append_all(list(machine.take(1))),
    "APPENDS": lambda machine, argument: machine.append_all(machine.since_mark()),
    "ADDITEMS": lambda machine, argument: machine.since_mark(),
    "BINPUT": lambda machine, argument: machine.put(argument),
    "LONG_BINPUT": lambda machine, argument: machine.put(argument),
    "MEMOIZE": lambda machine, argument: machine.put(argument),
    "BINGET": lambda machine, argument: machine.stack.append(machine.memo[argument]),
    "LONG_BINGET": lambda machine, argument: machine.stack.append(machine.memo[argument]),
}
