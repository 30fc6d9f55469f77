"""Fourier transforms of whole signals and of short frames; see ``kernels/cuda/fourier.cu``."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from nn_core.ext import Array, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.code import Code, part
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.constants import Constant, with_constants
from nn_ext_cuda.codegen.dtypes import C_TYPES, ITEM_BYTES, real, real_dtype, real_type, refuse_dtypes
from nn_ext_cuda.codegen.layout import divider
from nn_ext_cuda.launch.program import Argument, Launch, Program, flat
from nn_ext_cuda.memory.workspace import with_workspace

#: Shared memory that a block gets on every device.
_SHARED_BYTES: Final = 48 * 1024
#: Numbers that a block transforms together, in bytes: as many as threads hold in registers.
_BLOCK_BYTES: Final = 32 * 1024
#: Radices that are computed in registers, those that are used first in front.
_RADICES: Final = (8, 4, 2, 3, 5, 7, 11, 13)
#: Each number is a sum of as many terms for a prime factor.
LARGEST_FACTOR: Final = 127
#: Blocks that keep all multiprocessors of a large device busy.
_ENOUGH_BLOCKS: Final = 264
#: Numbers of the longest line that is transformed as a matrix; its roots of unity are a table.
_LONGEST: Final = 1 << 20
_NULL: Final = np.uint64(0)
#: Neighbouring numbers that are read together where lines are not neighbours in memory.
_NEIGHBOURS: Final = 8


def largest_length(dtype: str) -> int:
    """Return the longest line that fits into shared memory, with its gaps."""
    n = _SHARED_BYTES // (2 * ITEM_BYTES[real_dtype(dtype)])
    return n * 16 // 17


@lru_cache(maxsize=256)
def _factors(length: int) -> tuple[int, ...]:
    """Radices whose product is `length`; the last ones are prime factors that have no radix of their own."""
    found, rest = [], length
    for factor in (*_RADICES, *range(_RADICES[-1] + 2, LARGEST_FACTOR + 1, 2)):
        while rest % factor == 0:
            found.append(factor)
            rest //= factor
    return (*found, rest) if rest > 1 else tuple(found)


@lru_cache(maxsize=256)
def _matrix(length: int, dtype: str) -> tuple[int, int] | None:
    """Rows and columns of the matrix as which a long line is transformed; None if there is none that fits."""
    if length > _LONGEST:
        return None
    rows = next((n for n in range(math.isqrt(length), 1, -1) if length % n == 0), 1)
    return (rows, length // rows) if length // rows <= largest_length(dtype) else None


def _refuse(call: Call, lengths: Sequence[int], *, whole: bool) -> Refusal | None:
    """Refuse dtypes that are not computed in, very large arrays, and lengths that take too much memory or time.

    `whole` lines have to fit into shared memory.
    """
    refusal = refuse_dtypes(call) or refuse_sizes(call.inputs) or refuse_sizes(call.outputs)
    if refusal is not None:
        return refusal
    most = largest_length(call.dtype)
    for length in lengths:
        if max(_factors(length), default=1) > LARGEST_FACTOR:
            return Refusal(f"takes lengths with prime factors of at most {LARGEST_FACTOR}, got {length}")
        if length > most and (whole or _matrix(length, call.dtype) is None):
            more = "" if whole else f", and up to {_LONGEST} products of two such lengths"
            return Refusal(f"takes lengths of at most {most} in {call.dtype}{more}, got {length}")
    return None


@dataclass(frozen=True, slots=True)
class _Lines:
    """How lines of one length are transformed: by blocks of `threads` threads that take `lines` lines each.

    Attributes:
        length: Numbers of a line.
        n_lines: How many lines there are.
        dtype: The dtype of the call.
        inverse: Transform back.
        strided: Lines are neighbours in memory, instead of the numbers of a line.
        split: The half of the transform of longer lines that this is, 1 or 2; 0: it is whole.
    """

    length: int
    n_lines: int
    dtype: str
    inverse: bool
    strided: bool = False
    split: int = 0

    @property
    def lines(self) -> int:
        """A power of two: as many as fit, but fewer if there were not enough blocks."""
        numbers = _BLOCK_BYTES // (2 * ITEM_BYTES[real_dtype(self.dtype)])
        lines = _power_of_two(max(numbers // self.length, 1))
        least = _NEIGHBOURS if self.strided or self.split else max(512 // self.length, 1)
        while lines > least and lines * _ENOUGH_BLOCKS > self.n_lines:
            lines //= 2
        return lines

    @property
    def threads(self) -> int:
        """A thread for some eight numbers."""
        return min(max(_power_of_two(self.lines * self.length // 8), 32), 256)

    def launch(self, function: str, types: Mapping[str, str], arguments: Sequence[Argument]) -> Launch:
        """Return the launch of a function of fourier.cu over all lines."""
        pitch = self.length + self.length // 16
        shared_bytes = self.lines * pitch * 2 * ITEM_BYTES[real_dtype(self.dtype)]
        grid = (-(-self.n_lines // self.lines),)
        return Launch(self.code(function, types), grid, (self.threads,), tuple(arguments), shared_bytes)

    def code(self, function: str, types: Mapping[str, str]) -> Code:
        """Return a function of fourier.cu for these lines."""
        defines = {"N": self.length, "LINES": self.lines, "THREADS": self.threads, "SIGN": -1 if self.inverse else 1}
        defines |= {"STRIDED": int(self.strided), "SPLIT": self.split}
        header = "".join(f"#define {name} {value}\n" for name, value in defines.items())
        header += f"#define PASSES {_passes(self.length)}\n"
        header += "".join(f"typedef {C_TYPES[own]} {name};\n" for name, own in types.items())
        return Code(function, header + part("fourier.cu"), real_type(self.dtype))


def _passes(length: int) -> str:
    """Return the statements that transform the lines in shared memory."""
    statements, done = [], 1
    for radix in _factors(length):
        kind = "radix_pass" if radix in _RADICES else "direct_pass"
        statements.append(f"{kind}<{radix}, {done}>(lines, roots);")
        done *= radix
    return " ".join(statements)


def _power_of_two(n: int) -> int:
    """Return the largest power of two up to `n`."""
    return 1 << max(n.bit_length() - 1, 0)


def roots_of_unity(length: int, dtype: str) -> Array:
    """exp(-2 pi j k / length) for each k; whole quarters of a turn are taken off first, so that these are exact."""
    quarters, rest = np.divmod(4 * np.arange(length), length)
    values = np.exp(-0.5j * np.pi / length * rest) * np.array([1, -1j, -1, 1j])[quarters]
    return np.stack([values.real, values.imag], axis=-1).astype(real_dtype(dtype))


class Transform:
    """The transform of the last axes, one after the other; its gradient is the other one.

    Args:
        inverse: Transform back.
    """

    def __init__(self, *, inverse: bool) -> None:
        self._inverse = inverse

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what ``_refuse`` does."""
        return _refuse(call, _signal_lengths(call), whole=False)

    def forward(self, call: Call) -> Runner:
        """Return a launch for each axis, two for those that are too long for shared memory."""
        return self._runner(call, 0, 1, 2, inverse=self._inverse)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the conjugate transpose, which has the factor of the transform."""
        return self._runner(call, 2, 3, 4, inverse=not self._inverse)

    def _runner(self, call: Call, source: int, target: int, n_arrays: int, *, inverse: bool) -> Runner:
        """Return the launches from one array to another; in 16 bits the values between are kept in the precision of sums."""
        shape, wide = call.outputs[0].shape, real_dtype(call.dtype)
        if math.prod(shape) == 0:
            return Program([], n_arrays)
        stages = [stage for axis in _transformed_axes(call) for stage in _stages(shape, axis, call.dtype, inverse)]
        tables = list(dict.fromkeys(table for stage in stages for table in stage.tables(wide)))
        n_known, keeps = n_arrays + len(tables), wide != call.dtype and len(stages) > 1
        written = _written(stages, n_known if keeps else target, n_known + keeps)
        places = [source, *written[:-1], target]
        dtypes = [call.dtype, *[wide] * (len(stages) - 1), call.dtype]
        launches: list[Launch] = []
        for number, stage in enumerate(stages):
            scale = real(call.dtype, self._scale(call) if number == len(stages) - 1 else 1)
            read = [n_arrays + tables.index(table) for table in stage.tables(wide)]
            arguments = [*stage.numbers(), scale, places[number], places[number + 1], *read, *[_NULL] * (2 - len(read))]
            types = {"S": dtypes[number], "T": dtypes[number + 1]}
            launches.append(stage.lines.launch("fourier", types, arguments))
        n_memories = keeps + (n_known + keeps in written)
        return _with_memory(launches, n_arrays, tables, [math.prod(shape) * ITEM_BYTES[wide]] * n_memories)

    def _scale(self, call: Call) -> float:
        """Return the factor of the transform, and of its transpose."""
        n = math.prod(_signal_lengths(call))
        if call.args["normalized"]:
            return float(n**-0.5)
        return 1 / n if self._inverse else 1.0


def _transformed_axes(call: Call) -> list[int]:
    """Return the axes that are transformed, the last one first; of signals of one number that alone, to copy it."""
    shape = call.outputs[0].shape
    last = len(shape) - 2
    axes = [axis for axis in range(last, last - len(_signal_lengths(call)), -1) if shape[axis] > 1]
    return axes or [last]


@dataclass(frozen=True, slots=True)
class _Stage:
    """A launch of a transform.

    Attributes:
        lines: The lines.
        inner: Distance of the numbers of a line.
        part: Of a half of the transform of longer lines: the distance of their numbers, or rows of their matrix.
        whole: The length of these.
    """

    lines: _Lines
    inner: int
    part: int = 1
    whole: int = 0

    def tables(self, dtype: str) -> list[Constant]:
        """Roots of unity for the lines, and those of longer lines for the first half of their transform."""
        lengths = [self.lines.length, *([self.whole] if self.lines.split == 1 else [])]
        return [Constant(roots_of_unity, (length, dtype)) for length in lengths]

    def numbers(self) -> list[np.generic]:
        """Numbers of the launch."""
        return [np.int64(self.lines.n_lines), *_dividing(self.inner), np.uint32(self.part)]


def _written(stages: Sequence[_Stage], between: int, halves: int) -> list[int]:
    """Return the array that each launch writes to: that of the first half of a transform is read by the second half."""
    return [halves if stage.lines.split == 1 else between for stage in stages]


def _stages(shape: Shape, axis: int, dtype: str, inverse: bool) -> list[_Stage]:
    """Return the launches for an axis."""
    length, inner = shape[axis], math.prod(shape[axis + 1 : -1])
    n_lines = math.prod(shape[:axis]) * inner
    if length <= largest_length(dtype):
        return [_Stage(_Lines(length, n_lines, dtype, inverse, strided=inner > 1), inner)]
    matrix = _matrix(length, dtype)
    assert matrix is not None
    rows, columns = matrix
    first = _Lines(rows, n_lines * columns, dtype, inverse, strided=True, split=1)
    second = _Lines(columns, n_lines * rows, dtype, inverse, strided=inner > 1, split=2)
    return [_Stage(first, columns * inner, inner, length), _Stage(second, inner, rows, length)]


def _signal_lengths(call: Call) -> Shape:
    shape, n_axes = call.outputs[0].shape, call.args["signal_ndim"]
    assert isinstance(n_axes, int)
    return tuple(shape[len(shape) - 1 - n_axes : -1])


def _dividing(length: int) -> list[np.generic]:
    """Return a length, and how to divide by it."""
    return [np.uint32(number) for number in (length, *divider(length))]


def _with_memory(launches: Sequence[Launch], n_arrays: int, constants: Sequence[Constant], n_bytes: Sequence[int]) -> Runner:
    """Return launches over the arrays of a call, then tables, then memory for what is in between."""
    n_known = n_arrays + len(constants)
    program = Program(launches, n_known + len(n_bytes))
    return with_constants(with_workspace(program, n_known, n_bytes) if n_bytes else program, n_arrays, constants)


#: Constant and cosine part of the windows.
_WINDOWS: Final = {"hanning": (0.5, 0.5), "hamming": (0.54, 0.46), "rectangular": (1.0, 0.0)}


def window(size: int, length: int, kind: str, dtype: str) -> Array:
    """Return the periodic window of `length` samples, centred in `size` zeros."""
    constant, cosine = _WINDOWS[kind]
    left = (size - length) // 2
    values = constant - cosine * np.cos(2 * np.pi / length * np.arange(length))
    return np.pad(values, (left, size - length - left)).astype(real_dtype(dtype))


@dataclass(frozen=True, slots=True)
class _Frames:
    """Sizes of a call of stft or istft, or of the transpose of one.

    Attributes:
        call: The call.
        signal: The shape (batch, samples) of the signals.
        n_frames: Frames of each signal.
        transposed: The function called is the transpose of the other one.
    """

    call: Call
    signal: Shape
    n_frames: int
    transposed: bool

    @property
    def size(self) -> int:
        """Length of a frame."""
        return _integer(self.call, "fft_size")

    @property
    def margin(self) -> int:
        """Samples that are added at both ends."""
        return self.size // 2 if self.call.args["center"] else 0

    @property
    def reflects(self) -> bool:
        """Whether these are mirrored."""
        return self.margin > 0 and self.call.args["pad_mode"] == "reflect"

    @property
    def covered(self) -> int:
        """Samples up to the end of the last frame, without the margins."""
        return (self.n_frames - 1) * _integer(self.call, "stride") + self.size - 2 * self.margin

    def analysed(self, signal: int, spectrum: tuple[int | None, int | None], n_arrays: int, *, divides: bool) -> Runner:
        """Spectra from signals; with `divides` by the transpose of istft, otherwise by stft itself."""
        lines = self._lines(inverse=False)
        if lines.n_lines == 0:
            return Program([], n_arrays)
        n_samples = self.signal[1]
        end = min(self.covered, n_samples) if divides else n_samples
        reflects = self.reflects and not divides
        numbers = [n_samples, end, _integer(self.call, "stride"), self.margin, reflects, divides]
        gains = (1 / self.size, 2 / self.size) if divides else (1, 1)
        arguments = [np.int64(lines.n_lines), *_dividing(self.n_frames), *map(np.int64, numbers), *self._reals(gains)]
        targets: list[Argument] = [_NULL if place is None else place for place in spectrum]
        arguments += [signal, *targets, n_arrays, n_arrays + 1]
        types = {"S": self.call.dtype, "T": self.call.dtype}
        return _with_memory([lines.launch("frames_transformed", types, arguments)], n_arrays, self._tables(), [])

    def added(self, spectrum: tuple[int, int], signal: int, n_arrays: int, *, divides: bool) -> Runner:
        """Signals from spectra; with `divides` by istft itself, otherwise by the transpose of stft."""
        lines, n = self._lines(inverse=True), math.prod(self.signal)
        if n == 0:
            return Program([], n_arrays)
        dtype, (roots, windows, frames) = self.call.dtype, range(n_arrays, n_arrays + 3)
        gains = (1 / self.size, 1 / self.size) if divides else (1, 0.5)
        head = [np.int64(lines.n_lines), *_dividing(self.n_frames), *self._reals(gains)]
        types = {"S": dtype, "T": dtype}
        restored = lines.launch("frames_restored", types, [*head, *spectrum, frames, roots, windows])
        end = min(self.covered, self.signal[1]) if divides else self.signal[1]
        fold = self.reflects and not divides
        numbers = [n, self.signal[1], end, self.n_frames, _integer(self.call, "stride"), self.margin, fold, divides]
        adding = flat(lines.code("overlap_added", types), n, [*map(np.int64, numbers), frames, windows, signal])
        n_bytes = lines.n_lines * self.size * ITEM_BYTES[real_dtype(dtype)]
        return _with_memory([restored, adding], n_arrays, self._tables(), [n_bytes])

    def _lines(self, *, inverse: bool) -> _Lines:
        return _Lines(self.size, self.signal[0] * self.n_frames, self.call.dtype, inverse)

    def _reals(self, numbers: Sequence[float]) -> list[np.generic]:
        return [real(self.call.dtype, number) for number in numbers]

    def _tables(self) -> list[Constant]:
        """Roots of unity, and the window."""
        length, kind = _integer(self.call, "window_size"), str(self.call.args["window_type"])
        dtype = real_dtype(self.call.dtype)
        return [Constant(roots_of_unity, (self.size, dtype)), Constant(window, (self.size, length, kind, dtype))]


def _integer(call: Call, name: str) -> int:
    number = call.args[name]
    assert isinstance(number, int)
    return number


class ShortTime:
    """Spectra of the windowed frames of signals; or with ``as_istft_backward`` the transpose of `Overlap`."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what ``_refuse`` does."""
        return _refuse(call, [_integer(call, "fft_size")], whole=True)

    def forward(self, call: Call) -> Runner:
        """One launch."""
        frames = _frames_of(call)
        return frames.analysed(0, (1, 2), 3, divides=frames.transposed)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return a launch for the frames, and one that adds them up; padding is added to what it was reflected from."""
        frames = _frames_of(call)
        return frames.added((3, 4), 5, 6, divides=frames.transposed)


class Overlap:
    """Signals from spectra of frames; or with ``as_stft_backward`` the transpose of `ShortTime`."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what ``_refuse`` does."""
        return _refuse(call, [_integer(call, "fft_size")], whole=True)

    def forward(self, call: Call) -> Runner:
        """Return a launch for the frames, and one that adds them up."""
        frames = _frames_of(call)
        return frames.added((0, 1), 2, 3, divides=not frames.transposed)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch."""
        frames = _frames_of(call)
        d_real, d_imaginary = (place if want else None for place, want in zip((4, 5), wanted, strict=True))
        return frames.analysed(3, (d_real, d_imaginary), 6, divides=not frames.transposed)


def _frames_of(call: Call) -> _Frames:
    """Return the sizes of a call of either function."""
    is_inverse = len(call.outputs) == 1
    spectrum, signal = (call.inputs[0], call.outputs[0]) if is_inverse else (call.outputs[0], call.inputs[0])
    assert spectrum is not None and signal is not None
    transposed = bool(call.args["as_stft_backward" if is_inverse else "as_istft_backward"])
    return _Frames(call, signal.shape, spectrum.shape[2], transposed)


FOURIER: Final[Mapping[str, Kernel]] = {
    "FFT": Transform(inverse=False),
    "IFFT": Transform(inverse=True),
    "STFT": ShortTime(),
    "ISTFT": Overlap(),
}
