"""CUDA C sources: texts of this package, and texts made from expressions; compiled when they are first run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from nn_ext_cuda.device.errors import not_compiled

FOLDER: Final = Path(__file__).parents[1] / "kernels" / "cuda"
OPTIONS: Final = ("-std=c++17",)

#: A number with a point or an exponent, which C would take for double.
_LITERAL: Final = re.compile(r"(?<![\w.])(\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.])")


@dataclass(frozen=True, slots=True)
class Code:
    """One function of CUDA C.

    Attributes:
        name: Name of the function.
        text: The source after the prelude.
        real: The C type called R in it.
    """

    name: str
    text: str
    real: str = "float"

    @property
    def source(self) -> str:
        """The whole source."""
        return f"{part('prelude.cuh')}\ntypedef {self.real} R;\n{part('functions.cuh')}\n{self.text}"


@lru_cache(maxsize=64)
def part(name: str) -> str:
    """Return the text of a file of this package."""
    return (FOLDER / name).read_text()


def from_file(name: str, function: str, real: str, *, before: Sequence[str] = (), **types: str) -> Code:
    """Return a function of a file of this package, with the files `before` it; `types` are names that it leaves open, such as
    T.
    """
    header = "".join(f"typedef {c_type} {alias};\n" for alias, c_type in types.items())
    return Code(function, header + "".join(map(part, (*before, name))), real)


def generated(name: str, parameters: Sequence[str], body: str, real: str, functions: str = "") -> Code:
    """Return a function made of its parameters and its body; its name gets a suffix that tells different ones apart.

    `functions` are device functions that the body calls.
    """
    text = f"({', '.join(parameters)}) {{\n{body}\n}}\n"
    full_name = f"{name}_{crc32((functions + text + real).encode()):08x}"
    return Code(full_name, f'{functions}extern "C" __global__ void {full_name}{text}', real)


def in_real(expression: str) -> str:
    """`expression` with its decimal numbers in the type R."""
    return _LITERAL.sub(r"R(\1)", expression)


def unravelled(index: str, lengths: str, rank: int) -> str:
    """Statements that take the running `index`, below 2^31, apart into one for each axis, ``<index>0`` outermost.

    ``<lengths>1``, ``<lengths>2``, ... are the lengths of the axes but the first; see `length_parameters`.
    """
    if rank == 0:
        return ""
    parts = []
    for axis in range(rank - 1, 0, -1):
        length, above = f"{lengths}{axis}", f"{index}{axis}_above"
        parts.append(f"const uint32 {above} = divided({index}_rest, {length}_factor, {length}_shift);")
        parts.append(f"const uint32 {index}{axis} = {index}_rest - {above} * {length}; {index}_rest = {above};")
    return " ".join([f"uint32 {index}_rest = uint32({index});", *parts, f"const uint32 {index}0 = {index}_rest;"])


def length_parameters(lengths: str, rank: int) -> list[str]:
    """Return the parameters that `unravelled` needs; `layout.length_arguments` are their values."""
    parts = ("", "_factor", "_shift")
    return [f"const uint32 {lengths}{axis}{part}" for axis in range(1, rank) for part in parts]


def compiled(code: Code) -> Any:
    """Return the function, ready to be launched on the current device as ``function(grid, block, arguments,
    shared_mem=...)``.
    """
    from nn_ext_cuda.device.runtime import cupy  # sources can be made without CuPy

    return compiled_for(code, int(cupy.cuda.runtime.getDevice()))


@lru_cache(maxsize=4096)
def compiled_for(code: Code, device_id: int) -> Any:
    """Return the function for a device, which is the current one."""
    from nn_ext_cuda.device.runtime import cupy  # see compiled

    try:
        function = cupy.RawModule(code=code.source, options=OPTIONS).get_function(code.name)
        function.compile()  # now, and not at the first launch on the device, which may be part of a recording
    except Exception as error:  # missing libraries, compilers and devices each have exceptions of their own
        raise not_compiled(code.name, error) from error
    return function
