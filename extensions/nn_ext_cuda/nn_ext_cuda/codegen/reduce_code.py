"""The kernels of reductions, as CUDA C; `reduce` decides which blocks and threads run them.

Moments are the mean and the sum of squares of the distances from it, taken in one pass: a thread sums distances from the
first value that it reads, so that nothing large cancels, and results are merged by the formula of Chan, Golub and LeVeque
(1983). What is merged are means of distances from one origin, because means themselves would be rounded in proportion to
their size.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from nn_ext_cuda.codegen.code import Code, generated, in_real, length_parameters, unravelled
from nn_ext_cuda.codegen.operand import Operand
from nn_ext_cuda.launch.program import THREADS, Argument

#: The code that combines two values, and the value that it starts from.
COMBINE: Final[Mapping[str, tuple[str, str]]] = {
    "sum": ("a + b", "R(0)"),
    "product": ("a * b", "R(1)"),
    "maximum": ("larger(a, b)", "-R(infinity())"),
    "minimum": ("smaller(a, b)", "R(infinity())"),
}
#: The way of combining that has one expression and several results: a number of values, the mean of their distances from
#: the origin, the sum of squares of the distances from the mean, and the origin, which is the first value of all. In the
#: loop of a thread the first three are its first value, and the sums of distances from that and of the squares of these.
MOMENTS: Final = "moments"
MOMENT_NAMES: Final = ("number", "average", "squares", "origin")
_MERGED: Final = """\
__device__ __forceinline__ void merge_moments(R& n, R& average, R& squares, R n_b, R average_b, R squares_b) {
  const R part = n + n_b > 0 ? n_b / (n + n_b) : R(0), distance = average_b - average;
  squares += squares_b + distance * distance * n * part;
  average += distance * part;
  n += n_b;
}
"""
#: Merged lengths of a group of axes, and the strides of each array on them.
Plan: TypeAlias = tuple[Sequence[int], Sequence[Sequence[int]]]


@dataclass(frozen=True, slots=True)
class Reduction:
    """Describes a reduction: the expressions that are reduced, and the results that are made of them.

    Attributes:
        kernel: Name of the kernel.
        summands: The expressions that are reduced, in the names of what is read and of the numbers. `results` name each
            by its key; for moments there is one, whose results are called as in MOMENT_NAMES.
        read: Arrays that they name; each has the rank of the frame and broadcasts to it.
        results: The arrays that are written, with their values, in the names of the reduced expressions, of `kept` and of
            the numbers. All have one shape and are C-contiguous over the kept axes.
        kept: Arrays of the same shape that the results name.
        numbers: Further names of expressions, and their values.
        combine: A key of COMBINE, or MOMENTS.
        stored: Arrays of the shape of the frame that are written on the way, with their values, in the names of what is read.
    """

    kernel: str
    summands: Mapping[str, str]
    read: Sequence[Operand]
    results: Sequence[tuple[Operand, str]]
    kept: Sequence[Operand] = ()
    numbers: Sequence[tuple[str, Argument]] = ()
    combine: str = "sum"
    stored: Sequence[tuple[Operand, str]] = ()

    @property
    def walked(self) -> list[Operand]:
        """The arrays over whose elements threads walk."""
        return [*self.read, *(target for target, _ in self.stored)]

    @property
    def states(self) -> tuple[str, ...]:
        """Names of what each block has of each kept element."""
        return MOMENT_NAMES if self.combine == MOMENTS else tuple(self.summands)


def reduction_code(
    wanted: Reduction, real_name: str, plans: Sequence[Plan], *, by_rows: bool, pack: int, merges: bool
) -> Code:
    """Return the kernel.

    Args:
        wanted: What it reduces.
        real_name: The C type of sums.
        plans: The merged axes and strides of the kept and of the reduced elements.
        by_rows: Neighbouring threads share a kept element.
        pack: Elements that a thread takes at once.
        merges: What is read are partial results, in the order of their names.
    """
    kept, reduced = ("y", "x") if by_rows else ("x", "y")
    columns, step = (1, pack) if by_rows else (pack, 1)
    walk = _Walk(wanted, plans, by_rows=by_rows, pack=pack)
    taken = _merging(wanted) if merges else _taking(wanted, columns, step)
    states, starts = wanted.states, _starts(wanted.combine)
    started = " ".join(f"sums[{k}][column_] = {starts[k % len(starts)]};" for k in range(len(states)))
    each = f"#pragma unroll\n  for (int column_ = 0; column_ < {columns}; ++column_)"
    body = f"""\
  extern __shared__ R shared_[];
  const uint32 k = (blockIdx.x * blockDim.{kept} + threadIdx.{kept}) * {columns};
  const uint32 lane = threadIdx.{reduced}, lanes = blockDim.{reduced};
  const uint32 first_ = blockIdx.y * chunk + lane * {step}, end = min(n_reduced, (blockIdx.y + 1) * chunk);
  R sums[{len(states)}][{columns}];
{each} {{ {started} }}
  if (k < n_kept) {{
    {walk.kept}
{walk.loops(taken)}
  }}
{_joined_rows(wanted) if by_rows else _joined_columns(wanted, columns)}
  if (lane == 0 && k < n_kept) {{
{each} {{
{_finished(wanted)}
    }}
  }}"""
    functions = _MERGED if wanted.combine == MOMENTS else ""
    return generated(wanted.kernel, walk.parameters, body, real_name, functions)


def _starts(combine: str) -> Sequence[str]:
    return ["R(0)"] * len(MOMENT_NAMES) if combine == MOMENTS else [COMBINE[combine][1]]


@dataclass(frozen=True, slots=True)
class _Taken:
    """Statements that take elements in, on `column_`: a column of a thread, or an element of a pack.

    Attributes:
        each: For each element.
        before: For some elements before the loop, by the index of the reduced element; they come again in the loop.
        last: After the last element.
    """

    each: str
    before: Mapping[str, str] = field(default_factory=dict)
    last: str = ""


def _taking(wanted: Reduction, columns: int, step: int) -> _Taken:
    """Return the statements for summands."""
    column = "column_" if columns > 1 else "0"
    values = [f"R({in_real(text)})" for text in wanted.summands.values()]
    if wanted.combine != MOMENTS:
        return _Taken(_combined(wanted.combine, column, values))
    (value,), (number, average, squares, origin) = values, _own(4, column)
    each = f"const R d_ = {value} - {number}; {average} += d_; {squares} += d_ * d_;"
    last = f"""\
    const R taken_ = first_ < end ? R((end - first_ + lanes * {step} - 1) / (lanes * {step}) * {step}) : R(0);
    for (int column_ = 0; column_ < {columns} && taken_ > 0; ++column_) {{
      const R distance_ = {average} / taken_;
      {squares} = larger({squares} - {average} * distance_, R(0));
      {average} = {number} - {origin} + distance_;
      {number} = taken_;
    }}"""
    return _Taken(each, {"0": f"{origin} = {value};", "first_": f"{number} = {value};"}, last)


def _merging(wanted: Reduction) -> _Taken:
    """Return the statements for partial results."""
    parts = [part.name for part in wanted.read]
    if wanted.combine != MOMENTS:
        return _Taken(_combined(wanted.combine, "0", parts))
    *own, origin = _own(4, "0")
    return _Taken(f"merge_moments({', '.join([*own, *parts[:3]])}); if ({parts[0]} > 0) {origin} = {parts[3]};")


def _combined(combine: str, column: str, values: Sequence[str]) -> str:
    """Statements that combine what a thread has with `values`."""
    text = COMBINE[combine][0]
    lines = [f"{{ R& a = sums[{k}][{column}]; const R b = {value}; a = {text}; }}" for k, value in enumerate(values)]
    return "\n        ".join(lines)


def _own(n_states: int, column: str) -> list[str]:
    return [f"sums[{k}][{column}]" for k in range(n_states)]


class _Walk:
    """The statements by which a thread finds and reads elements.

    Attributes:
        parameters: The parameters of the kernel.
        kept: Statements that find a kept element, and read what is the same for all reduced elements.
    """

    def __init__(self, wanted: Reduction, plans: Sequence[Plan], *, by_rows: bool, pack: int) -> None:
        self._arrays, self._pack, self._by_rows = wanted.walked, pack, by_rows
        self._values = {target.name: value for target, value in wanted.stored}
        (kept_lengths, kept), (reduced_lengths, reduced) = plans
        self._ranks = {"k": len(kept_lengths), "r": len(reduced_lengths)}
        self._inner = [int(bool(own) and own[-1] == 1) for own in (reduced if by_rows else kept)]
        n_read = len(wanted.read)
        self._is_held = [number < n_read and not any(own) for number, own in enumerate(reduced)]
        self.parameters = ["const uint32 n_kept", "const uint32 n_reduced", "const uint32 chunk", *_arrays(wanted)]
        for letter, rank in self._ranks.items():
            self.parameters += length_parameters(f"{letter}n", rank)
            self.parameters += [f"const uint32 {operand.name}_{letter}{k}" for operand in self._arrays for k in range(rank)]
        self.kept = "\n    ".join([unravelled("k", "kn", len(kept_lengths)), *self._holds()])

    def _place(self, number: int, letters: str) -> str:
        """Return the index of an element of an array."""
        name = self._arrays[number].name
        parts = [f"{letter}{k} * {name}_{letter}{k}" for letter in letters for k in range(self._ranks[letter])]
        return " + ".join(parts) or "0"

    def _holds(self) -> Iterator[str]:
        columns, step = (1, 0) if self._by_rows else (self._pack, 1)
        for number, operand in enumerate(self._arrays):
            if self._is_held[number]:
                place = f"{self._place(number, 'k')} + column_ * {step * self._inner[number]}"
                yield f"R {operand.name}_held[{columns}];"
                value = f"R(load({operand.name}_[{place}]))"
                yield f"for (int column_ = 0; column_ < {columns}; ++column_) {operand.name}_held[column_] = {value};"

    def loops(self, taken: _Taken) -> str:
        """Return the loop over the reduced elements of a thread; where packs are aligned, one that reads these at once."""
        text = self._loop(taken.each, packed=False)
        packs = [f"(uint64({self._arrays[k].name}_) & (sizeof({self._pack_type(k)}) - 1))" for k in self._packs()]
        if self._pack > 1 and packs:
            packed = self._loop(taken.each, packed=True)
            text = f"    if (({' | '.join(packs)}) == 0) {{\n{packed}\n    }} else {{\n{text}\n    }}"
        turns = 1 if self._by_rows else self._pack
        for index, statements in taken.before.items():
            first = self._element(statements, packed=False, turns=turns)
            text = f"    if (first_ < end) {{\n      const uint32 r = {index};\n{first}\n    }}\n{text}"
        return f"{text}\n{taken.last}"

    def _packs(self) -> list[int]:
        """Return the numbers of arrays whose elements a thread reads in packs."""
        return [k for k in range(len(self._arrays)) if not self._is_held[k] and self._inner[k]]

    def _pack_type(self, number: int) -> str:
        return f"Pack<{self._arrays[number].c_type}, {self._pack}>"

    def _loop(self, statements: str, *, packed: bool) -> str:
        step = self._pack if self._by_rows else 1
        head = f"#pragma unroll 2\n    for (uint32 r = first_; r < end; r += lanes * {step}) {{"
        return f"{head}\n{self._element(statements, packed=packed, turns=self._pack)}\n    }}"

    def _element(self, statements: str, *, packed: bool, turns: int) -> str:
        """Read what is at the reduced index r, and run `statements` on each of `turns` columns, or neighbours in a row."""
        packs = self._packs() if packed else []
        lines, reads, last = [unravelled("r", "rn", self._ranks["r"])], [], []
        for number, operand in enumerate(self._arrays):
            name, place = operand.name, self._place(number, "kr")
            element = f"{name}_[{place} + column_ * {self._inner[number]}]"
            pack, kind = f"({name}_ + ({place}))", self._pack_type(number)
            if name in self._values:
                if number in packs:
                    lines.append(f"{kind} {name}_pack;")
                    last.append(f"*({kind}*){pack} = {name}_pack;")
                    element = f"{name}_pack.item[column_]"
                statements += f"\n        store({element}, R({in_real(self._values[name])}));"
                continue
            value = f"R(load({element}))"
            if self._is_held[number]:
                value = f"{name}_held[{'0' if self._by_rows else 'column_'}]"
            elif number in packs:
                lines.append(f"const {kind} {name}_pack = *(const {kind}*){pack};")
                value = f"R(load({name}_pack.item[column_]))"
            reads.append(f"const R {name} = {value};")
        head, text = "\n      ".join(filter(None, lines)), "\n        ".join([*reads, statements])
        loop = f"#pragma unroll\n      for (int column_ = 0; column_ < {turns}; ++column_)"
        return f"      {head}\n{loop} {{\n        {text}\n      }}\n      {' '.join(last)}"


def _arrays(wanted: Reduction) -> list[str]:
    """Return the parameters for arrays."""
    read = [f"const {operand.c_type}* {operand.name}_" for operand in wanted.read]
    read += [f"{target.c_type}* {target.name}_" for target, _ in wanted.stored]
    kept = [f"const {operand.c_type}* {operand.name}_kept" for operand in wanted.kept]
    written = [f"{target.c_type}* reduced_{number}" for number, (target, _) in enumerate(wanted.results)]
    return [*read, *kept, *written, *(f"const R {name}" for name, _ in wanted.numbers)]


def _finished(wanted: Reduction) -> str:
    """Statements that store the results of a kept element; everything is read before anything is written."""
    lines = ["const int64 at = blockIdx.y * int64(n_kept) + k + column_;"]
    lines += [f"const R {name} = sums[{number}][column_];" for number, name in enumerate(wanted.states)]
    lines += [f"const R {operand.name} = R(load({operand.name}_kept[at]));" for operand in wanted.kept]
    lines += [f"store(reduced_{number}[at], R({in_real(text)}));" for number, (_, text) in enumerate(wanted.results)]
    return "      " + "\n      ".join(lines)


def n_merged(wanted: Reduction) -> int:
    """Return how many of the states differ between the lanes of a kept element: the first ones, all but the origin of
    moments.
    """
    return len(wanted.states) - (wanted.combine == MOMENTS)


def _merged_states(wanted: Reduction, column: str) -> str:
    """Statements that combine what a thread has with `others`, what another one has."""
    others = [f"others_[{k}]" for k in range(n_merged(wanted))]
    if wanted.combine == MOMENTS:
        return f"merge_moments({', '.join([*_own(3, column), *others])});"
    return _combined(wanted.combine, column, others)


def _joined_columns(wanted: Reduction, columns: int) -> str:
    """Statements that combine what the lanes of columns have, for the first lane."""
    n, each = n_merged(wanted), f"#pragma unroll\n    for (int column_ = 0; column_ < {columns}; ++column_)"
    kept = " ".join(f"own[({k} * {columns} + column_) * {THREADS}] = sums[{k}][column_];" for k in range(n))
    others = ", ".join(f"own[({k} * {columns} + column_) * {THREADS} + half * blockDim.x]" for k in range(n))
    return f"""\
  R* own = shared_ + lane * blockDim.x + threadIdx.x;
  if (lanes > 1) {{
{each} {{ {kept} }}
  }}
  for (uint32 half = lanes / 2; half > 0; half /= 2) {{
    __syncthreads();
    if (lane < half) {{
{each} {{
        const R others_[{n}] = {{{others}}};
        {_merged_states(wanted, "column_")}
        {kept}
      }}
    }}
  }}"""


def _joined_rows(wanted: Reduction) -> str:
    """Statements that combine what the lanes of a row have, for the first lane.

    Lanes that are neighbours are whole warps, which exchange values without memory.
    """
    n, merged = n_merged(wanted), _merged_states(wanted, "0")
    exchanged = ", ".join(f"__shfl_xor_sync(0xffffffffu, sums[{k}][0], by)" for k in range(n))
    kept = " ".join(f"own[{k} * {THREADS // 32} + lane / 32] = sums[{k}][0];" for k in range(n))
    others = ", ".join(f"own[{k} * {THREADS // 32} + warp]" for k in range(n))
    return f"""\
  for (int by = 16; by > 0; by /= 2) {{
    const R others_[{n}] = {{{exchanged}}};
    {merged}
  }}
  R* own = shared_ + threadIdx.y * (lanes / 32);
  if (lanes > 32) {{
    if (lane % 32 == 0) {{ {kept} }}
    __syncthreads();
    for (uint32 warp = 1; lane == 0 && warp < lanes / 32; ++warp) {{
      const R others_[{n}] = {{{others}}};
      {merged}
    }}
  }}"""
