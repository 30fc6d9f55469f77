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
        arena_bytes: memory of a context.
        constant_bytes: memory of the constants.
    """

    header: str
    code: str
    arena_bytes: int
    constant_bytes: int


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


class Writer:
    """Writes a program; see `written`."""

    def __init__(self, program: Program, name: str, notes: Sequence[str], file: str, test: SelfTest | None) -> None:
        self.program, self.name, self.notes, self.file, self.test = program, name, notes, file, test
        self.plan: Plan = plan_memory(program)
        ports = Names()
        self.inputs = {key: ports.fresh(port_name(key)) for key in program.inputs}
        self.outputs = {key: ports.fresh(port_name(key)) for key in program.outputs}
        self.buffers = {program.inputs[key].buffer: port for key, port in self.inputs.items()}
        self.buffers |= {program.outputs[key].buffer: port for key, port in self.outputs.items()}
        self.globals = Names(
            {f"{name}_{word}".upper() for word in ("run", "self_test", "context", "constants", "contract", "h")}
            | {name.upper()}
            | ports.taken
        )
        for buffer in program.constants():
            self.buffers[buffer] = self.globals.fresh(f"{name}_{identifier(buffer.name)}")

    def source(self) -> Source:
        constants = sum(b.size * np.dtype(b.dtype).itemsize for b in self.program.constants())
        arena = sum(size * np.dtype(dtype).itemsize for dtype, size in self._arenas().items())
        return Source(self._header(arena, constants), self._code(), arena, constants)

    def _arenas(self) -> dict[str, int]:
        return self.plan.sizes or {"float32": 1}

    def _ports(self) -> Iterable[tuple[str, str, Value]]:
        for key, port in self.inputs.items():
            yield "INPUT", port, self.program.inputs[key]
        for key, port in self.outputs.items():
            yield "OUTPUT", port, self.program.outputs[key]

    def _signature(self, function: str = "run", kinds: Sequence[str] = ("INPUT", "OUTPUT")) -> str:
        parameters = [f"{self.name}_context *context"]
        for kind, port, value in self._ports():
            if kind in kinds:
                parameters.append(f"{'const ' if kind == 'INPUT' else ''}{C_TYPES[value.buffer.dtype]} *{port}")
        return f"int {self.name}_{function}({', '.join(parameters)})"

    def _test_signatures(self) -> list[str]:
        """Return the prototype of the self-test, where there is one."""
        if self.test is None:
            return []
        comment = (
            "/* Runs a sample and returns 0, 1 as above, or 2 where the outputs, which are written, are not as expected. */"
        )
        return [comment, f"{self._signature('self_test', ['OUTPUT'])};"]

    def _header(self, arena: int, constants: int) -> str:
        upper = self.name.upper()
        macros = []
        for kind, port, value in self._ports():
            stem = f"{upper}_{kind}_{port.upper()}"
            shape = ", ".join(map(str, value.shape)) or "1"
            macros += [f"#define {stem}_SIZE {value.size}", f"#define {stem}_SHAPE {{{shape}}}"]
            scale, zero = self.program.scales.get(value.buffer, (None, 0))
            macros += [] if scale is None else [f"#define {stem}_SCALE {number(scale)}", f"#define {stem}_ZERO ({zero})"]
        members = [f"    {C_TYPES[d]} {_MEMBERS[d]}[{upper}_ARENA_{_MEMBERS[d].upper()}];" for d in self._arenas()]
        sizes = [f"#define {upper}_ARENA_{_MEMBERS[d].upper()} {size}" for d, size in self._arenas().items()]
        buffers = [
            f"static {C_TYPES[value.buffer.dtype]} {port}[{upper}_{kind}_{port.upper()}_SIZE];"
            for kind, port, value in self._ports()
        ]
        given = ", ".join(["&context", *(port for _, port, _ in self._ports())])
        return "\n".join(
            [
                f"/* The network {self.name}, written by nn-ext-c; edits are lost.",
                " *",
                *(f" * {line}".rstrip() for line in self.notes),
                " *",
                f" * Memory: a context of {arena} bytes, constants of {constants} bytes.",
                " * The function uses no other memory that is written, and may run in several threads with a context each.",
                " * Inputs, outputs and the context must not overlap. It returns 0, or 1 where an input that is an index of a",
                " * table is outside of it.",
                " *",
                f" *     static {self.name}_context context;",
                *(f" *     {line}" for line in buffers),
                f" *     if ({self.name}_run({given}) != 0) {{ handle_wrong_index(); }}",
                " */",
                f"#ifndef {upper}_H",
                f"#define {upper}_H",
                "",
                "#include <stdint.h>",
                "",
                *macros,
                *sizes,
                f"#define {upper}_CONTEXT_BYTES {arena}",
                f"#define {upper}_CONSTANT_BYTES {constants}",
                "",
                "#ifdef __cplusplus",
                'extern "C" {',
                "#endif",
                "",
                "typedef struct {",
                *members,
                f"}} {self.name}_context;",
                "",
                f"{self._signature()};",
                *self._test_signatures(),
                "",
                "#ifdef __cplusplus",
                "}",
                "#endif",
                "",
                "#endif",
                "",
            ]
        )

    def _code(self) -> str:
        functions, calls = self._steps()
        arenas = [f"    {C_TYPES[d]} *const {_ARENA_NAMES[d]} = context->{_MEMBERS[d]};" for d in self.plan.sizes]
        return "\n".join(
            [
                f"/* The network {self.name}, written by nn-ext-c; edits are lost. */",
                f'#include "{self.file}.h"',
                "",
                "#include <math.h>",
                "",
                *_HEAD.format(name=self.name.upper()).splitlines(),
                "",
                *(self._constant(buffer) for buffer in self.program.constants()),
                *functions,
                self._signature(),
                "{",
                *(arenas or ["    (void)context;"]),
                *(f"    (void){port};" for port in self._unread_inputs()),
                *calls,
                "    return 0;",
                "}",
                "",
                *([] if self.test is None else self._self_test(self.test)),
            ]
        )

    def _self_test(self, test: SelfTest) -> list[str]:
        """Return the lines of the function that runs a sample."""
        lines, inputs, checks = [], [], []
        for key, port in self.inputs.items():
            inputs.append(self.globals.fresh(f"{self.name}_sample_{port}"))
            lines.append(self._array(inputs[-1], self.program.inputs[key].buffer.dtype, test.inputs[key]))
        for key, port in self.outputs.items():
            buffer = self.program.outputs[key].buffer
            wanted = self.globals.fresh(f"{self.name}_expected_{port}")
            lines.append(self._array(wanted, buffer.dtype, test.outputs[key]))
            difference = f"{port}[i] - {wanted}[i]"
            limit = number(test.tolerance * max(1.0, float(np.abs(test.outputs[key]).max(initial=0.0))))
            is_off = f"!(fabsf({difference}) <= {limit})" if buffer.dtype == "float32" else f"{port}[i] != {wanted}[i]"
            checks += [
                f"    for (int32_t i = 0; i < {buffer.size}; ++i) {{",
                f"        if ({is_off}) {{ return 2; }}",
                "    }",
            ]
        given = ", ".join(["context", *inputs, *self.outputs.values()])
        run = f"    if ({self.name}_run({given}) != 0) {{ return 1; }}"
        return [*lines, self._signature("self_test", ["OUTPUT"]), "{", run, *checks, "    return 0;", "}", ""]

    def _unread_inputs(self) -> list[str]:
        read = {buffer for step in self.program.steps for buffer in step.read}
        return [port for key, port in self.inputs.items() if self.program.inputs[key].buffer not in read]

    def _constant(self, buffer: Buffer) -> str:
        assert buffer.values is not None
        return self._array(self.buffers[buffer], buffer.dtype, buffer.values)

    def _array(self, name: str, dtype: str, values: Array) -> str:
        head = f"{self.name.upper()}_CONSTANTS static const {C_TYPES[dtype]} {name}[{values.size}] = {{"
        return "\n".join([head, *_rows(values.reshape(-1)), "};", ""])

    def _steps(self) -> tuple[list[str], list[str]]:
        """Return the functions, each once, and the calls."""
        names: dict[tuple[str, str, bool], str] = {}
        functions, calls = [], []
        for step in self.program.steps:
            key = (step.signature, step.body, step.can_fail)
            if key not in names:
                names[key] = self.globals.fresh(f"{self.name}_{_snake(step.title)}")
                functions.append(_function(names[key], step))
            call = f"{names[key]}({', '.join(self._pointer(argument) for argument in step.arguments)})"
            calls.append(f"    if ({call} != 0) {{ return 1; }}" if step.can_fail else f"    {call};")
        return functions, calls

    def _pointer(self, argument: Argument) -> str:
        value = argument.value
        offset, buffer = value.offset, value.buffer
        name = self.buffers.get(buffer)
        if name is None:
            name = _ARENA_NAMES[buffer.dtype]
            offset += self.plan.offsets[buffer]
        return f"{name} + {offset}" if offset else name


_MEMBERS: Final = {"float32": "floats", "int32": "words", "int8": "bytes"}
_ARENA_NAMES: Final = {"float32": "arena", "int32": "words", "int8": "bytes"}


def _function(name: str, step: Step) -> str:
    kind = "int" if step.can_fail else "void"
    lines = [f"    {line}" for line in step.body.split("\n")]
    end = ["    return 0;"] if step.can_fail else []
    return "\n".join([f"static {kind} {name}({step.signature})", "{", *lines, *end, "}", ""])


def _rows(values: Array) -> Iterable[str]:
    words = [number(v) for v in values] if values.dtype.kind == "f" else [str(int(v)) for v in values]
    per_line = _PER_LINE if values.dtype.kind == "f" else 2 * _PER_LINE
    for start in range(0, len(words), per_line):
        yield f"    {', '.join(words[start : start + per_line])},"


def _snake(title: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", identifier(title)).lower()


def written(program: Program, name: str, notes: Sequence[str], file: str = "", test: SelfTest | None = None) -> Source:
    """Return the header and the source of a program.

    Args:
        program: what is written.
        name: the stem of all names, an identifier of C.
        notes: lines for the comment of the header.
        file: the stem of the files; the name by default.
        test: a sample with which a function of C tests itself.
    """
    return Writer(program, name, notes, file or name, test).source()
