"""The text of the header and of the source of a program."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from nn_ext_c.loops import number
from nn_ext_c.memory import Plan, plan_memory
from nn_ext_c.program import C_TYPES, Argument, Array, Buffer, Program, Step, Value

#: Words that cannot name things in C or in C++, with the extensions of GNU: keywords, predefined macros,
#: types and functions that the source uses, and the names of its own arguments.
_KEYWORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """alignas alignof and and_eq asm atomic auto bitand bitor bool break case catch char class compl const constexpr
        const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern false float
        for friend goto if inline int int8_t int32_t long main mutable namespace new noexcept not not_eq nullptr operator
        or or_eq private protected public register reinterpret_cast restrict return short signed sizeof static
        static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename uint8_t
        union unsigned using virtual void volatile wchar_t while xor xor_eq
        char8_t char16_t char32_t co_await co_return co_yield concept consteval constinit requires typeof typeof_unqual
        linux unix i386 sun sparc mips hpux vax near far interrupt vector pixel complex imaginary I
        abs acosf acoshf asinf asinhf atan2f atanf atanhf ceilf cosf coshf erff expf expm1f fabsf floorf fmaxf fminf fmodf
        isfinite isinf isnan isnormal log1pf logf powf rintf roundf signbit sinf sinhf sqrtf tanf tanhf truncf
        memcpy memset int16_t uint16_t uint32_t int64_t uint64_t size_t errno
        context arena bytes words""",
    )
)
_PER_LINE: Final = 8


@dataclass(frozen=True, slots=True)
class SelfTest:
    """A sample and its results by name, in the types of inputs and outputs.

    Attributes:
        tolerance: of outputs in float32, relative to the largest magnitude that is expected, but to 1 at least.
    """

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    tolerance: float = 1e-5


#: Before the constants. GCC joins products and sums unless it is told not to (with -std=gnu..., as by default).
_HEAD: Final = """\
#ifndef {name}_CONSTANTS
#define {name}_CONSTANTS /* attributes of all constants, such as __attribute__((section(".flash"), aligned(16))) */
#endif
#ifndef {name}_CONTRACT /* without it each product is rounded before it is added, so that all compilers give the same bits */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#else
#pragma STDC FP_CONTRACT OFF
#endif
#endif"""


@dataclass(frozen=True, slots=True)
class Source:
    """The source that is written, and its requirements.

    Attributes:
        header: the text of the header.
        code: the text of the source.
        arena_bytes: memory of a context, for what a call computes.
        constant_bytes: memory of the constants.
        kept_bytes: memory of a context for the numbers that it keeps between calls, such as trained parameters.
    """

    header: str
    code: str
    arena_bytes: int
    constant_bytes: int
    kept_bytes: int = 0


def identifier(text: str) -> str:
    """Return a name of C for any text."""
    found = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or "unnamed"
    return f"_{found}".replace("_", "n_", 1) if found[0].isdigit() else found


def port_name(text: str) -> str:
    """Return the name of an input or an output in C: not in capitals alone, which macros have."""
    found = identifier(text)
    return found.lower() if found.isupper() else found


@dataclass(slots=True)
class Names:
    """Names of C that differ from each other and from keywords."""

    taken: set[str] = field(default_factory=set)

    def fresh(self, stem: str) -> str:
        """Return the stem, or with a number."""
        name, count = stem, 0
        while name.upper() in self.taken or name in _KEYWORDS:
            count += 1
            name = f"{stem}_{count}"
        self.taken.add(name.upper())
        return name


@dataclass(frozen=True, slots=True)
class Entry:
    """A function that the users of a source call.

    Attributes:
        name: what follows the stem of all names: "run", or "train".
        program: what it computes.
        macros: what the macros of its ports begin with, after the stem.
        test: a sample with which a function of C tests it.
    """

    name: str
    program: Program
    macros: str = ""
    test: SelfTest | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """Numbers that a context keeps between calls.

    Attributes:
        members: of the context, as lines of C.
        pointers: to each buffer, as expressions of C over `context`.
        initial: constants that the function reads which sets all of them, by what follows the stem of their names.
        reset: the statements of that function.
        size: in bytes.
    """

    members: Sequence[str] = ()
    pointers: Mapping[Buffer, str] = field(default_factory=dict)
    initial: Mapping[str, Array] = field(default_factory=dict)
    reset: Sequence[str] = ()
    size: int = 0


class EntryWriter:
    """Writes one function of the interface, and those that it calls."""

    def __init__(self, entry: Entry, stem: str, kept: Kept) -> None:
        self.entry, self.program, self.stem = entry, entry.program, stem
        self.plan: Plan = plan_memory(entry.program)
        ports = Names()
        self.inputs = {key: ports.fresh(port_name(key)) for key in self.program.inputs}
        self.outputs = {key: ports.fresh(port_name(key)) for key in self.program.outputs}
        self.taken = ports.taken
        self.pointers = dict(kept.pointers)
        self.pointers |= {self.program.inputs[key].buffer: port for key, port in self.inputs.items()}
        self.pointers |= {self.program.outputs[key].buffer: port for key, port in self.outputs.items()}

    def ports(self) -> Iterable[tuple[str, str, Value]]:
        """Yield the kind, the name and the array of each port."""
        for key, port in self.inputs.items():
            yield "INPUT", port, self.program.inputs[key]
        for key, port in self.outputs.items():
            yield "OUTPUT", port, self.program.outputs[key]

    def macro(self, kind: str, port: str) -> str:
        """Return what the macros of a port begin with."""
        return f"{self.stem.upper()}_{self.entry.macros}{kind}_{port.upper()}"

    def signature(self, function: str, kinds: Sequence[str] = ("INPUT", "OUTPUT")) -> str:
        """Return the head of a function over the ports of some kinds."""
        parameters = [f"{self.stem}_context *context"]
        for kind, port, value in self.ports():
            if kind in kinds:
                parameters.append(f"{'const ' if kind == 'INPUT' else ''}{C_TYPES[value.buffer.dtype]} *{port}")
        return f"int {self.stem}_{function}({', '.join(parameters)})"

    def macros(self) -> list[str]:
        """Return the lines that say how the arrays of the ports look."""
        lines = []
        for kind, port, value in self.ports():
            shape = ", ".join(map(str, value.shape)) or "1"
            macro = self.macro(kind, port)
            lines += [f"#define {macro}_SIZE {value.size}", f"#define {macro}_SHAPE {{{shape}}}"]
            scale, zero = self.program.scales.get(value.buffer, (None, 0))
            lines += [] if scale is None else [f"#define {macro}_SCALE {number(scale)}", f"#define {macro}_ZERO ({zero})"]
        return lines

    def example(self, prefix: str) -> list[str]:
        """Return the lines of a call, with arrays whose names begin with `prefix`."""
        ports = [
            (f"{prefix}{port}", self.macro(kind, port), C_TYPES[value.buffer.dtype]) for kind, port, value in self.ports()
        ]
        given = ", ".join(["&context", *(name for name, _, _ in ports)])
        return [
            *(f"static {kind} {name}[{macro}_SIZE];" for name, macro, kind in ports),
            f"if ({self.stem}_{self.entry.name}({given}) != 0) {{ handle_wrong_index(); }}",
        ]

    def prototypes(self) -> list[str]:
        """Return the declarations of the function, and of its test."""
        lines = [f"{self.signature(self.entry.name)};"]
        if self.entry.test is not None:
            lines += [
                "/* Runs a sample and returns 0, 1 as above, or 2 where the outputs, which it writes, are not as expected. */",
                f"{self.signature('self_test', ['OUTPUT'])};",
            ]
        return lines

    def code(self, names: Names, functions: dict[tuple[str, str, bool], str]) -> list[str]:
        """Return the function, after those that it calls and that are not in `functions` yet."""
        lines, calls = [], []
        for step in self.program.steps:
            key = (step.signature, step.body, step.can_fail)
            if key not in functions:
                functions[key] = names.fresh(f"{self.stem}_{_snake(step.title)}")
                lines.append(_function(functions[key], step))
            call = f"{functions[key]}({', '.join(self._pointer(argument) for argument in step.arguments)})"
            calls.append(f"    if ({call} != 0) {{ return 1; }}" if step.can_fail else f"    {call};")
        arenas = [f"    {C_TYPES[d]} *const {_ARENA_NAMES[d]} = context->{_MEMBERS[d]};" for d in self.plan.sizes]
        reads_context = any(b.kind == "kept" for step in self.program.steps for b in (*step.read, *step.written))
        return [
            *lines,
            self.signature(self.entry.name),
            "{",
            *(arenas or ([] if reads_context else ["    (void)context;"])),
            *(f"    (void){port};" for port in self._unread_inputs()),
            *calls,
            "    return 0;",
            "}",
            "",
            *([] if self.entry.test is None else self._self_test(self.entry.test, names)),
        ]

    def _self_test(self, test: SelfTest, names: Names) -> list[str]:
        """Return the lines of the function that runs a sample."""
        lines, inputs, checks = [], [], []
        for key, port in self.inputs.items():
            inputs.append(names.fresh(f"{self.stem}_sample_{port}"))
            lines.append(_array(self.stem, inputs[-1], self.program.inputs[key].buffer.dtype, test.inputs[key]))
        for key, port in self.outputs.items():
            buffer = self.program.outputs[key].buffer
            wanted = names.fresh(f"{self.stem}_expected_{port}")
            lines.append(_array(self.stem, wanted, buffer.dtype, test.outputs[key]))
            difference = f"{port}[i] - {wanted}[i]"
            limit = number(test.tolerance * max(1.0, float(np.abs(test.outputs[key]).max(initial=0.0))))
            is_off = f"!(fabsf({difference}) <= {limit})" if buffer.dtype == "float32" else f"{port}[i] != {wanted}[i]"
            checks += [
                f"    for (int32_t i = 0; i < {buffer.size}; ++i) {{",
                f"        if ({is_off}) {{ return 2; }}",
                "    }",
            ]
        given = ", ".join(["context", *inputs, *self.outputs.values()])
        run = f"    if ({self.stem}_{self.entry.name}({given}) != 0) {{ return 1; }}"
        return [*lines, self.signature("self_test", ["OUTPUT"]), "{", run, *checks, "    return 0;", "}", ""]

    def _unread_inputs(self) -> list[str]:
        read = {buffer for step in self.program.steps for buffer in step.read}
        return [port for key, port in self.inputs.items() if self.program.inputs[key].buffer not in read]

    def _pointer(self, argument: Argument) -> str:
        value = argument.value
        offset, buffer = value.offset, value.buffer
        name = self.pointers.get(buffer)
        if name is None:
            name = _ARENA_NAMES[buffer.dtype]
            offset += self.plan.offsets[buffer]
        return f"{name} + {offset}" if offset else name


class Writer:
    """Writes the functions of a source; see `written`."""

    def __init__(self, entries: Sequence[Entry], name: str, notes: Sequence[str], file: str, kept: Kept) -> None:
        self.name, self.notes, self.file, self.kept = name, notes, file, kept
        self.entries = [EntryWriter(entry, name, kept) for entry in entries]
        self.constants = list(dict.fromkeys(buffer for entry in entries for buffer in entry.program.constants()))
        words = ("run", "train", "reset", "self_test", "context", "constants", "contract", "h")
        self.globals = Names({f"{name}_{word}".upper() for word in words} | {name.upper()})
        for entry in self.entries:
            self.globals.taken |= entry.taken
        names = {buffer: self.globals.fresh(f"{name}_{identifier(buffer.name)}") for buffer in self.constants}
        for entry in self.entries:
            entry.pointers |= names
        self.names = names
        self.initial = {key: self.globals.fresh(f"{name}_{key}") for key in kept.initial}

    def source(self) -> Source:
        constants = sum(b.size * np.dtype(b.dtype).itemsize for b in self.constants)
        constants += sum(values.nbytes for values in self.kept.initial.values())
        arena = sum(size * np.dtype(dtype).itemsize for dtype, size in self._arenas().items())
        return Source(self._header(arena, constants), self._code(), arena, constants, self.kept.size)

    def _arenas(self) -> dict[str, int]:
        """Return the sizes of the arenas: those of the function that needs most."""
        sizes: dict[str, int] = {}
        for entry in self.entries:
            for dtype, size in entry.plan.sizes.items():
                sizes[dtype] = max(size, sizes.get(dtype, 0))
        return sizes or {"float32": 1}

    def _header(self, arena: int, constants: int) -> str:
        upper = self.name.upper()
        arenas = self._arenas()
        members = [f"{C_TYPES[d]} {_MEMBERS[d]}[{upper}_ARENA_{_MEMBERS[d].upper()}];" for d in arenas]
        sizes = [f"#define {upper}_ARENA_{_MEMBERS[d].upper()} {size}" for d, size in arenas.items()]
        is_one = len(self.entries) == 1
        functions, returns = ("The function uses", "It returns") if is_one else ("The functions use", "They return")
        reset = [f"void {self.name}_reset({self.name}_context *context);"] if self.kept.reset else []
        return "\n".join(
            [
                f"/* The network {self.name}, written by nn-ext-c; edits are lost.",
                " *",
                *(f" * {line}".rstrip() for line in self.notes),
                " *",
                f" * Memory: a context of {arena + self.kept.size} bytes, constants of {constants} bytes.",
                f" * {functions} no other memory that is written, and may run in several threads with a context each.",
                f" * Inputs, outputs and the context must not overlap. {returns} 0, or 1 where an input that is an index of a",
                " * table is outside of it.",
                " *",
                f" *     static {self.name}_context context;",
                *(f" *     {line}" for line in self._example()),
                " */",
                f"#ifndef {upper}_H",
                f"#define {upper}_H",
                "",
                "#include <stdint.h>",
                "",
                *(line for entry in self.entries for line in entry.macros()),
                *sizes,
                f"#define {upper}_CONTEXT_BYTES {arena + self.kept.size}",
                f"#define {upper}_CONSTANT_BYTES {constants}",
                "",
                "#ifdef __cplusplus",
                'extern "C" {',
                "#endif",
                "",
                "typedef struct {",
                *(f"    {line}" for line in (*members, *self.kept.members)),
                f"}} {self.name}_context;",
                "",
                *reset,
                *(line for entry in self.entries for line in entry.prototypes()),
                "",
                "#ifdef __cplusplus",
                "}",
                "#endif",
                "",
                "#endif",
                "",
            ]
        )

    def _example(self) -> Iterable[str]:
        """Yield the lines of a call of each function."""
        if self.kept.reset:
            yield f"{self.name}_reset(&context);"
        for entry in self.entries:
            yield from entry.example(f"{entry.entry.name}_" if len(self.entries) > 1 else "")

    def _code(self) -> str:
        functions: dict[tuple[str, str, bool], str] = {}
        return "\n".join(
            [
                f"/* The network {self.name}, written by nn-ext-c; edits are lost. */",
                f'#include "{self.file}.h"',
                "",
                "#include <math.h>",
                "",
                *_HEAD.format(name=self.name.upper()).splitlines(),
                "",
                *(_array(self.name, self.names[b], b.dtype, b.values) for b in self.constants if b.values is not None),
                *(_array(self.name, self.initial[key], str(v.dtype), v) for key, v in self.kept.initial.items()),
                *(self._reset() if self.kept.reset else []),
                *(line for entry in self.entries for line in entry.code(self.globals, functions)),
            ]
        )

    def _reset(self) -> list[str]:
        head = f"void {self.name}_reset({self.name}_context *context)"
        return [head, "{", *(f"    {line.format_map(self.initial)}" for line in self.kept.reset), "}", ""]


_MEMBERS: Final = {"float32": "floats", "int32": "words", "int8": "bytes"}
_ARENA_NAMES: Final = {"float32": "arena", "int32": "words", "int8": "bytes"}


def _function(name: str, step: Step) -> str:
    kind = "int" if step.can_fail else "void"
    lines = [f"    {line}" for line in step.body.split("\n")]
    end = ["    return 0;"] if step.can_fail else []
    return "\n".join([f"static {kind} {name}({step.signature})", "{", *lines, *end, "}", ""])


def _array(stem: str, name: str, dtype: str, values: Array) -> str:
    head = f"{stem.upper()}_CONSTANTS static const {C_TYPES[dtype]} {name}[{values.size}] = {{"
    return "\n".join([head, *_rows(values.reshape(-1)), "};", ""])


def _rows(values: Array) -> Iterable[str]:
    words = [number(v) for v in values] if values.dtype.kind == "f" else [str(int(v)) for v in values]
    per_line = _PER_LINE if values.dtype.kind == "f" else 2 * _PER_LINE
    for start in range(0, len(words), per_line):
        yield f"    {', '.join(words[start : start + per_line])},"


def _snake(title: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", identifier(title)).lower()


def written(entries: Sequence[Entry], name: str, notes: Sequence[str], file: str = "", kept: Kept | None = None) -> Source:
    """Return the header and the source of some programs.

    Args:
        entries: the functions that are written.
        name: the stem of all names, an identifier of C.
        notes: lines for the comment of the header.
        file: the stem of the files; the name by default.
        kept: numbers that a context keeps between calls.
    """
    return Writer(entries, name, notes, file or name, kept or Kept()).source()
