"""Functions put together from generated kernels: element-wise expressions and reductions over named arrays.

All arrays of a composition broadcast to one frame. An expression names arrays and numbers; it is computed either for each
element of a target (`compute`), or for each element of the frame and then reduced to the target (`reduce`).
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Refusal, Shape
from nn_ext_cuda.codegen.code import Code, generated, in_real, length_parameters, unravelled
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES, real, real_dtype, real_type, refuse_dtypes
from nn_ext_cuda.codegen.layout import aligned, broadcast_strides, length_arguments, merged, reduced_axes
from nn_ext_cuda.codegen.operand import Operand, uses
from nn_ext_cuda.codegen.reduce import reduction
from nn_ext_cuda.codegen.reduce_code import MOMENTS, Reduction
from nn_ext_cuda.launch.program import Argument, Launch, Program, flat

#: Arrays with as many elements are left to the reference: indices of broadcast arrays have 32 bits.
LIMIT: Final = 2**31


class Composition:
    """Launches over the arrays of a call, and over scratch arrays.

    Args:
        call: The call; its floating dtype says what is computed in, its arguments are numbers of expressions.
        arrays: Descriptions of all arrays of the program, None where absent.
        names: Their names.
        frame: Lengths of the axes that everything broadcasts to.
        shapes: Shapes of arrays in the frame, where they are not the frame itself.
        numbers: Further numbers of expressions.
    """

    def __init__(
        self,
        call: Call,
        arrays: Sequence[ArrayDesc | None],
        names: Sequence[str],
        frame: Shape,
        shapes: Mapping[str, Shape] | None = None,
        numbers: Mapping[str, float] | None = None,
    ) -> None:
        self._call = call
        self._frame = tuple(frame)
        self._n_arrays = len(arrays)
        self._scratch: list[tuple[Shape, str]] = []
        self._launches: list[Launch] = []
        self._numbers: dict[str, object] = {**call.args, **(numbers or {})}
        given = shapes or {}
        self._operands = {
            name: Operand(name, place, desc.dtype, aligned(tuple(given.get(name, self._frame)), len(self._frame)))
            for place, (name, desc) in enumerate(zip(names, arrays, strict=True))
            if desc is not None
        }

    def has(self, name: str) -> bool:
        """Return whether there is an array of that name."""
        return name in self._operands

    def scratch(self, name: str, shape: Shape) -> None:
        """Add an array for intermediate values, in the precision of sums."""
        dtype = real_dtype(self._call.dtype)
        place = self._n_arrays + len(self._scratch)
        self._operands[name] = Operand(name, place, dtype, aligned(tuple(shape), len(self._frame)))
        self._scratch.append((tuple(shape), dtype))

    def add(self, launch: Launch) -> None:
        """Add a launch of another kernel, whose arguments count the scratch arrays after those of the program."""
        self._launches.append(launch)

    def compute(self, kernel: str, outputs: Mapping[str, str]) -> None:
        """Store the value of an expression in each target; all targets have one shape, to which the rest broadcasts."""
        written = [self._operands[name] for name in outputs]
        frame = written[0].shape
        n = math.prod(frame)
        if n == 0:
            return
        text = " ".join(outputs.values())
        read = self._read(text, outputs)
        numbers = self._used_numbers(text)
        names = [name for name, _ in numbers]
        code, dims = elementwise_code(kernel, real_type(self._call.dtype), read, written, outputs, names, frame)
        places = [operand.place for operand in (*read, *written)]
        arguments = [np.int64(n), *places, *[value for _, value in numbers], *dims]
        self._launches.append(flat(code, -(-n // pack_of(read, written, frame)), arguments))

    def reduce(self, kernel: str, target: str, expression: str, *, combine: str = "sum", finish: str = "a") -> None:
        """Reduce an expression over the axes of the frame on which `target` has length 1, and store `finish` of the result a.

        `combine` is a key of `reduce_code.COMBINE`.
        """
        self._reduce(kernel, {"a": expression}, {target: finish}, combine)

    def sums(
        self,
        kernel: str,
        summands: Mapping[str, str],
        results: Mapping[str, str],
        stored: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Sum expressions, and store what `results` make of the sums, which have the names of the expressions there.

        All targets have one shape. What the expressions name is read once; the results may name arrays of the targets' shape.
        On the way, values for each element are written to the arrays `stored`.
        """
        self._reduce(kernel, summands, results, "sum", stored)

    def moments(self, kernel: str, expression: str, results: Mapping[str, str]) -> None:
        """Take the mean of an expression and the sum of squares of the distances from it, in one pass.

        They are called average, which is a distance from origin, and squares in the results; see `sums`.
        """
        self._reduce(kernel, {"moments": expression}, results, MOMENTS)

    def _reduce(
        self,
        kernel: str,
        summands: Mapping[str, str],
        results: Mapping[str, str],
        combine: str,
        stored: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        targets, written = ([(self._operands[name], text) for name, text in made.items()] for made in (results, stored))
        text, finish = " ".join([*summands.values(), *stored.values()]), " ".join(results.values())
        shape = targets[0][0].shape
        wanted = Reduction(
            kernel,
            summands,
            [read for name, read in self._operands.items() if uses(text, name)],
            targets,
            [kept for name, kept in self._operands.items() if name not in summands and uses(finish, name)],
            self._used_numbers(f"{text} {finish}"),
            combine,
            written,
        )
        place = self._n_arrays + len(self._scratch)
        launches, scratch = reduction(wanted, self._call.dtype, self._frame, reduced_axes(shape, self._frame), place)
        self._launches += launches
        self._scratch += scratch

    def _read(self, text: str, outputs: Mapping[str, str]) -> list[Operand]:
        """Return the arrays that expressions name, those last that are changed in place."""
        read = [operand for name, operand in self._operands.items() if name not in outputs and uses(text, name)]
        return [*read, *(self._operands[name] for name in outputs if uses(text, name))]

    def program(self) -> Program:
        """All launches so far."""
        return Program(self._launches, self._n_arrays, self._scratch)

    def _used_numbers(self, text: str) -> list[tuple[str, Argument]]:
        return [(name, real(self._call.dtype, value)) for name, value in self._numbers.items() if uses(text, name)]


def refuse_sizes(arrays: Sequence[ArrayDesc | None]) -> Refusal | None:
    """Refuse arrays that 32 bits cannot index; one axis is too long for them also where another has no elements."""
    largest = max((n for desc in arrays if desc is not None for n in (desc.size, *desc.shape)), default=0)
    return Refusal(f"takes arrays of less than {LIMIT} elements, got {largest}") if largest >= LIMIT else None


def refuse_images(images: ArrayDesc | None, call: Call) -> Refusal | None:
    """Refuse images without elements, arrays that 32 bits cannot index, and dtypes that are not computed in."""
    assert images is not None
    if images.size == 0:
        return Refusal("takes images with at least one element")
    return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)


def elementwise_code(
    kernel: str,
    real_name: str,
    read: Sequence[Operand],
    written: Sequence[Operand],
    outputs: Mapping[str, str],
    numbers: Sequence[str],
    frame: Shape,
) -> tuple[Code, list[Argument]]:
    """Return the kernel that computes `outputs` from what is `read`, and the numbers that follow its other arguments.

    Where something is broadcast these are the lengths of the merged axes but the first, with what divides by them, then
    the strides of each broadcast array. A thread reads and writes 16 bytes at a time where `pack_of` says so.
    """
    bent = [operand for operand in read if operand.shape != tuple(frame)]
    lengths, strides = _walk(bent, frame)
    targets, pack = _targets(read, written), pack_of(read, written, frame)
    parameters = ["const int64 n", *[f"const {operand.c_type}* {operand.name}_" for operand in read]]
    parameters += [f"{operand.c_type}* {targets[operand.name]}" for operand in written]
    parameters += [f"const R {name}" for name in numbers]
    parameters += _walk_parameters(bent, len(lengths))
    coordinates = unravelled("i", "n", len(lengths))
    places = {operand.name: _place(operand, len(lengths)) for operand in bent}
    single = _single(coordinates, read, places, targets, outputs)
    first, start = "", "blockIdx.x * int64(blockDim.x) + threadIdx.x"
    if pack > 1:
        inner = {own.name: (places[own.name], steps[-1]) for own, steps in zip(bent, strides, strict=True)}
        first, start = _packed(read, written, targets, outputs, coordinates, inner, pack), f"packs * {pack} + {start}"
    loop = f"for (int64 i = {start}; i < n; i += int64(gridDim.x) * blockDim.x)"
    dims: list[Argument] = [*length_arguments(lengths)]
    dims += [np.uint32(stride) for own in strides for stride in own]
    return generated(kernel, parameters, f"{first}  {loop} {single}", real_name), dims


def _targets(read: Sequence[Operand], written: Sequence[Operand]) -> dict[str, str]:
    """Return the parameter of each array that is written, another one than that of reading."""
    both = {operand.name for operand in written} & {operand.name for operand in read}
    return {operand.name: f"{operand.name}_{'out' * (operand.name in both)}" for operand in written}


def _walk(bent: Sequence[Operand], frame: Shape) -> tuple[Sequence[int], Sequence[Sequence[int]]]:
    """Return the merged axes of the frame, and the strides of the broadcast arrays on them; nothing where none is
    broadcast.
    """
    return merged(frame, [broadcast_strides(operand.shape, frame) for operand in bent]) if bent else ((), [])


def _walk_parameters(bent: Sequence[Operand], rank: int) -> list[str]:
    """Return the parameters of a walk over `rank` axes."""
    strides = [f"const uint32 {operand.name}_{axis}" for operand in bent for axis in range(rank)]
    return [*length_parameters("n", rank), *strides]


def _place(operand: Operand, rank: int) -> str:
    """Return the index of an element of a broadcast array."""
    return " + ".join(f"i{axis} * {operand.name}_{axis}" for axis in range(rank)) or "0"


def _single(
    coordinates: str,
    read: Sequence[Operand],
    places: Mapping[str, str],
    targets: Mapping[str, str],
    outputs: Mapping[str, str],
) -> str:
    """Return the block that computes one element; `places` are the indices of arrays that are broadcast."""
    loads = [f"const R {own.name} = R(load({own.name}_[{places.get(own.name, 'i')}]));" for own in read]
    stores = [f"store({targets[name]}[i], R({in_real(text)}));" for name, text in outputs.items()]
    return "{\n    " + "\n    ".join(line for line in (coordinates, *loads, *stores) if line) + "\n  }"


def pack_of(read: Sequence[Operand], written: Sequence[Operand], frame: Shape) -> int:
    """Return number of elements that a thread takes at once: 16 bytes of the widest array that is not broadcast.

    1 where packs would extend over the end of the innermost axis of one that is.
    """
    frame = tuple(frame)
    bent = [operand for operand in read if operand.shape != frame]
    whole = [operand for operand in (*read, *written) if operand not in bent]
    pack = 16 // max(ITEM_BYTES[operand.dtype] for operand in whole)
    lengths, _ = _walk(bent, frame)
    return pack if not bent or (lengths and lengths[-1] % pack == 0) else 1


def _packed(
    read: Sequence[Operand],
    written: Sequence[Operand],
    targets: Mapping[str, str],
    outputs: Mapping[str, str],
    coordinates: str,
    bent: Mapping[str, tuple[str, int]],
    pack: int,
) -> str:
    """Return the loop over packs of elements; there are none where an array is not aligned to its packs.

    `bent` has the index and the innermost stride, which is 0 or 1, of each array that is broadcast.
    """
    repeated = [operand for operand in read if bent.get(operand.name, ("", 1))[1] == 0]
    packs = [(operand, f"{operand.name}_") for operand in read if operand not in repeated]
    results = [(operand, targets[operand.name]) for operand in written]
    lines = [f"const int64 packs = ({_misaligned([*packs, *results], pack)}) == 0 ? n / {pack} : 0;"]
    start, step = "blockIdx.x * int64(blockDim.x) + threadIdx.x", "int64(gridDim.x) * blockDim.x"
    lines.append(f"for (int64 pack_ = {start}; pack_ < packs; pack_ += {step}) {{")
    lines += [f"  const int64 i = pack_ * {pack}; {coordinates}"] * bool(bent)
    for operand, name in packs:
        kind, place = f"Pack<{operand.c_type}, {pack}>", bent.get(operand.name, (f"pack_ * {pack}", 1))[0]
        lines.append(f"  const {kind} {operand.name}_pack = *(const {kind}*)({name} + ({place}));")
    lines += [f"  const R {operand.name} = R(load({operand.name}_[{bent[operand.name][0]}]));" for operand in repeated]
    lines += [f"  Pack<{operand.c_type}, {pack}> {operand.name}_made;" for operand in written]
    lines += _unrolled(packs, outputs, pack)
    lines += [f"  ((Pack<{own.c_type}, {pack}>*){target})[pack_] = {own.name}_made;" for own, target in results]
    return "".join(f"  {line}\n" if line[0] != "#" else f"{line}\n" for line in (*lines, "}"))


def _misaligned(pointers: Sequence[tuple[Operand, str]], pack: int) -> str:
    """Return the expression of the bits of addresses that packs do not have."""
    return " | ".join(f"(uint64({name}) & {max(pack * ITEM_BYTES[own.dtype], 16) - 1})" for own, name in pointers)


def _unrolled(packs: Sequence[tuple[Operand, str]], outputs: Mapping[str, str], pack: int) -> list[str]:
    """Return the loop over the elements of a pack."""
    lines = ["#pragma unroll", f"  for (int item_ = 0; item_ < {pack}; ++item_) {{"]
    lines += [f"    const R {operand.name} = R(load({operand.name}_pack.item[item_]));" for operand, _ in packs]
    lines += [f"    store({name}_made.item[item_], R({in_real(text)}));" for name, text in outputs.items()]
    return [*lines, "  }"]
