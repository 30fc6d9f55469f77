"""Write networks as C source that calls the functions of NNabla's C runtime.

The names of files, functions and macros are those of ``nnabla_cli convert -O CSRC``, so that a program written for its source
is compiled with this one. The functions of the runtime are called in the same order with the same settings.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from nn_core.ext import ArgumentError
from nn_ext_nnp.document import Document
from nn_ext_nnp.nnb.binary import StoredFunction
from nn_ext_nnp.nnb.codes import choices_of
from nn_ext_nnp.nnb.functions import by_number
from nn_ext_nnp.nnb.options import NnbOptions
from nn_ext_nnp.nnb.writing import RuntimeNetwork, missing_in_runtime, runtime_network
from nn_ext_nnp.schema import functions
from nn_ext_nnp.settings import spec_of

_PER_LINE: Final = 6


def c_source(document: Document, options: NnbOptions) -> dict[str, str]:
    """Return the texts of the files with the network of an executor, by the names of the files.

    Args:
        document: has the network.
        options: batch size, executor and API level; numbers are float32.

    Raises:
        ArgumentError: when there is no such executor, or something that the runtime does not take; functions are all named.
    """
    network = runtime_network(document, replace(options, version=2))
    absent = missing_in_runtime(network.stored)
    if absent:
        raise ArgumentError(f"C runtime: functions must be those that the runtime has, got {', '.join(absent)}")
    return _Source(network).files()


def _kind(function: StoredFunction) -> str:
    return by_number()[function.number].name


def snake_name(kind: str) -> str:
    """Return the name of a function within the names of the runtime: "batch_normalization"."""
    field = functions()[kind].field
    return spec_of(kind).api if field is None else field.removesuffix("_param")


def setting_texts(function: StoredFunction) -> dict[str, str | list[int]]:
    """Return the settings of a function by name, as C has them; lists stay lists."""
    kind = _kind(function)
    found: dict[str, str | list[int]] = {}
    for (name, code), value in zip(functions()[kind].settings.items(), function.settings, strict=False):
        if isinstance(value, list):
            found[name] = value
        elif code == "s":
            choice = choices_of(kind, name)[int(value)]
            found[name] = f"{snake_name(kind)}_{name}_{choice}".upper()
        else:
            found[name] = number(value) if isinstance(value, float) else str(int(value))
    return found


def number(value: float) -> str:
    """Return a number of type float in C, to its last bit."""
    with np.errstate(over="ignore"):  # beyond float32 is infinite, as it is when it is stored
        value = float(np.float32(value))
    if not np.isfinite(value):
        return "NAN" if np.isnan(value) else "-INFINITY" if value < 0 else "INFINITY"
    text = f"{value:.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


class _Source:
    """The text of one network."""

    def __init__(self, network: RuntimeNetwork) -> None:
        self.network, self.stored = network, network.stored
        self.stem = re.sub(r"[^A-Za-z0-9_]", "_", network.name)  # part of names of files and of C
        self.lower, self.upper = f"nnablart_{self.stem.lower()}", f"NNABLART_{self.stem.upper()}"
        self.parameters = [n for n, variable in enumerate(self.stored.variables) if variable.data is not None]

    def files(self) -> dict[str, str]:
        """All files; that with parameters only when there are any."""
        made = {
            f"{self.stem}_inference.h": self._header(),
            f"{self.stem}_inference.c": self._inference(),
            f"{self.stem}_example.c": self._example(),
            "GNUmakefile": self._makefile(),
        }
        if self.parameters:
            made[f"{self.stem}_parameters.h"] = self._guarded("PARAMETERS", [f"extern void *{self._pointers};"])
            made[f"{self.stem}_parameters.c"] = self._parameter_values()
        return made

    @property
    def _pointers(self) -> str:
        return f"{self.stem}_parameters[{len(self.parameters)}]"

    def _comment(self, text: str) -> str:
        """Return a comment to the end of the line, which no name can continue."""
        return "// " + re.sub(r"[^\w /@.:\[\]{}()+-]", "_", text)

    def _size(self, variable: int) -> int:
        return int(np.prod(self.stored.variables[variable].shape, dtype=np.int64))

    def _lengths(self, parts: Iterable[int], kind: str) -> list[str]:
        return [f"#define {self.upper}_{kind}{n}_SIZE ({self._size(part)})" for n, part in enumerate(parts)]

    def _guarded(self, part: str, lines: Iterable[str]) -> str:
        guard = f"H_{self.stem.upper()}_{part}_H__"
        head = [f"#ifndef {guard}", f"#define {guard}", "", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
        return _text([*head, *lines, "", "#ifdef __cplusplus", "}", "#endif", "", "#endif"])

    def _header(self) -> str:
        name, stored = self.lower, self.stored
        lines = [
            "/* A context holds the memory of one inference; it is null when there is no memory for it. Parameters are",
            f" * the arrays of {self.stem}_parameters, which the context does not copy. With null the context allocates them,",
            " * to be filled through the pointers below. */",
            f"void *{name}_allocate_context(void **params);",
            f"int {name}_free_context(void *context);",
            "",
        ]
        parts = (("input", stored.inputs), ("output", stored.outputs), ("param", self.parameters))
        for kind, numbers in parts:
            if kind == "param" and not numbers:
                continue
            lines += [f"#define {self.upper}_NUM_OF_{kind.upper()}_BUFFERS ({len(numbers)})"]
            lines += [*self._lengths(numbers, kind.upper()), f"float *{name}_{kind}_buffer(void *context, int index);", ""]
        lines += [
            "/* Compute the outputs. Inputs must be set before each call, because other results may take their memory.",
            " * Return NN_ERROR_CODE_NOERROR, or the code of the function that failed. */",
            f"int {name}_inference(void *context);",
        ]
        return self._guarded("INFERENCE", lines)

    def _parameter_values(self) -> str:
        lines = [f'#include "{self.stem}_parameters.h"', "", "#include <math.h>"]
        for n in self.parameters:
            values = [number(value) for value in np.frombuffer(self.stored.variables[n].data or b"", "<f4").tolist()]
            lines += [
                "",
                self._comment(self.network.names[n]),
                f"static float parameter{n}[] = {{",
                *_rows(values or ["0"]),
                "};",
            ]
        pointers = [f"parameter{n}" for n in self.parameters]
        return _text([*lines, "", f"void *{self._pointers} = {{", *_rows(pointers), "};"])

    def _inference(self) -> str:
        return _text([
            f'#include "{self.stem}_inference.h"', "", "#include <math.h>", "#include <nnablart/functions.h>",
            "#include <stdlib.h>", "#include <string.h>", "",
            *_ALLOCATORS, "", *self._context(), "", *self._tables(), "",
            *self._variables(), "", *self._set_up(), "", *self._release(), "", *self._allocation(), "", *self._accessors(),
            *self._run(),
        ])  # fmt: skip

    def _context(self) -> list[str]:
        """Return the structure with all that an inference needs. Arrays have a member too many, for those that would have
        none.
        """
        stored = self.stored
        arguments = sum(len(f.inputs) + len(f.outputs) for f in stored.functions)
        return [
            "typedef struct {",
            f"    float *buffers[{len(stored.buffers) + 1}];",
            f"    float *parameters[{len(self.parameters) + 1}];",
            "    int owns_parameters;",
            f"    rt_variable_t variables[{len(stored.variables)}];",
            f"    rt_variable_t *arguments[{arguments + 1}];",
            f"    rt_function_t functions[{len(stored.functions) + 1}];",
            "    int n_ready;",
            "} network_t;",
        ]

    def _tables(self) -> Iterator[str]:
        """Numbers that all contexts share; the runtime takes lists by pointers that are not const."""
        stored = self.stored
        yield _array("static const size_t buffer_sizes", stored.buffers or [0])
        yield _array("static const size_t parameter_sizes", [self._size(n) for n in self.parameters] or [0])
        for n, variable in enumerate(stored.variables):
            if variable.shape:
                yield _array(f"static int shape{n}", variable.shape)
        for n, function in enumerate(stored.functions):
            for name, value in setting_texts(function).items():
                if isinstance(value, list) and value:
                    yield _array(f"static int f{n}_{name}", value)

    def _variables(self) -> Iterator[str]:
        places = {n: place for place, n in enumerate(self.parameters)}
        yield "static const struct {"
        yield "    int *shape;"
        yield "    int n_axes, is_parameter, place;"
        yield "} variables[] = {"
        for n, (name, variable) in enumerate(zip(self.network.names, self.stored.variables, strict=True)):
            shape = f"shape{n}" if variable.shape else "0"
            place = places.get(n, variable.buffer)
            yield f"    {{{shape}, {len(variable.shape)}, {int(n in places)}, {place}}}, {self._comment(name)}"
        yield "};"
        yield from f"""
static void set_variables(network_t *c)
{{
    for (int i = 0; i < {len(self.stored.variables)}; i++) {{
        c->variables[i].type = NN_DATA_TYPE_FLOAT;
        c->variables[i].shape.size = variables[i].n_axes;
        c->variables[i].shape.data = variables[i].shape;
        c->variables[i].data = (variables[i].is_parameter ? c->parameters : c->buffers)[variables[i].place];
    }}
}}""".splitlines()

    def _set_up(self) -> Iterator[str]:
        first = 0
        for n, function in enumerate(self.stored.functions):
            yield from self._one_function(n, function, first)
            yield ""
            first += len(function.inputs) + len(function.outputs)
        yield "static int set_functions(network_t *c)"
        yield "{"
        yield "    (void)c;"
        yield from (f"    if (set_function{n}(c)) return -1;" for n in range(len(self.stored.functions)))
        yield "    return 0;"
        yield "}"

    def _one_function(self, n: int, function: StoredFunction, first: int) -> Iterator[str]:
        kind, name = _kind(function), snake_name(_kind(function))
        settings = setting_texts(function)
        yield f"static int set_function{n}(network_t *c) {self._comment(kind)}"
        yield "{"
        yield f"    rt_function_t *f = &c->functions[{n}];"
        if settings:
            yield f"    {name}_local_context_t *local = rt_malloc_func(sizeof(*local));"
            yield "    if (!local) return -1;"
            yield "    memset(local, 0, sizeof(*local));"
        for place, variable in enumerate((*function.inputs, *function.outputs), first):
            yield f"    c->arguments[{place}] = &c->variables[{variable}];"
        yield f"    f->num_of_inputs = {len(function.inputs)};"
        yield f"    f->inputs = &c->arguments[{first}];"
        yield f"    f->num_of_outputs = {len(function.outputs)};"
        yield f"    f->outputs = &c->arguments[{first + len(function.inputs)}];"
        for setting, value in settings.items():
            if isinstance(value, list):
                yield f"    local->{setting}.size = {len(value)};"
                yield f"    local->{setting}.data = {f'f{n}_{setting}' if value else '0'};"
            else:
                yield f"    local->{setting} = {value};"
        yield f"    f->local_context = {'local' if settings else '0'};"
        yield f"    if (allocate_{name}_local_context(f)) {{"
        yield "        if (f->local_context) rt_free_func(f->local_context);"
        yield "        return -1;"
        yield "    }"
        yield "    c->n_ready++;"
        yield "    return 0;"
        yield "}"

    def _release(self) -> Iterator[str]:
        yield "static void free_function(rt_function_t *f)"
        yield "{"
        yield "    if (f->local_context) rt_free_func(f->local_context);"
        yield "    f->local_context = 0;"
        yield "}"
        yield ""
        yield f"int {self.lower}_free_context(void *context)"
        yield "{"
        yield "    network_t *c = context;"
        for n, function in enumerate(self.stored.functions):
            yield f"    if (c->n_ready > {n}) {{"
            yield f"        free_{snake_name(_kind(function))}_local_context(&c->functions[{n}]);"
            yield f"        free_function(&c->functions[{n}]);"
            yield "    }"
        yield f"    for (int i = 0; i < {len(self.stored.buffers)}; i++) free(c->buffers[i]);"
        yield f"    for (int i = 0; c->owns_parameters && i < {len(self.parameters)}; i++) free(c->parameters[i]);"
        yield "    free(c);"
        yield "    return NN_ERROR_CODE_NOERROR;"
        yield "}"

    def _allocation(self) -> Iterator[str]:
        yield from f"""static int set_memory(network_t *c, void **params)
{{
    for (int i = 0; i < {len(self.stored.buffers)}; i++) {{
        c->buffers[i] = calloc(buffer_sizes[i] ? buffer_sizes[i] : 1, sizeof(float));
        if (!c->buffers[i]) return -1;
    }}
    c->owns_parameters = !params;
    for (int i = 0; i < {len(self.parameters)}; i++) {{
        c->parameters[i] = params ? params[i] : calloc(parameter_sizes[i] ? parameter_sizes[i] : 1, sizeof(float));
        if (!c->parameters[i]) return -1;
    }}
    return 0;
}}

void *{self.lower}_allocate_context(void **params)
{{
    network_t *c = calloc(1, sizeof(network_t));
    if (!c) return 0;
    if (set_memory(c, params)) goto failed;
    set_variables(c);
    if (set_functions(c)) goto failed;
    return c;
failed:
    {self.lower}_free_context(c);
    return 0;
}}""".splitlines()

    def _accessors(self) -> Iterator[str]:
        stored = self.stored
        for kind, numbers in (("input", stored.inputs), ("output", stored.outputs), ("param", self.parameters)):
            if kind == "param" and not numbers:
                continue
            yield f"float *{self.lower}_{kind}_buffer(void *context, int index)"
            yield "{"
            yield "    network_t *c = context;"
            yield "    switch (index) {"
            yield from (f"        case {n}: return c->variables[{variable}].data;" for n, variable in enumerate(numbers))
            yield "        default: (void)c; return 0;"
            yield "    }"
            yield "}"
            yield ""

    def _run(self) -> Iterator[str]:
        yield f"int {self.lower}_inference(void *context)"
        yield "{"
        yield "    network_t *c = context;"
        yield "    int code = NN_ERROR_CODE_NOERROR;"
        yield "    (void)c;"
        for n, function in enumerate(self.stored.functions):
            yield f"    if ((code = (int)exec_{snake_name(_kind(function))}(&c->functions[{n}]))) return code;"
        yield "    return code;"
        yield "}"

    def _example(self) -> str:
        """Return a program that reads inputs from files of float32 and writes each output to one."""
        n_inputs, n_outputs = len(self.stored.inputs), len(self.stored.outputs)
        include = [f'#include "{self.stem}_parameters.h"'] if self.parameters else []
        sizes = {
            kind: ", ".join(f"{self.upper}_{kind}{n}_SIZE" for n in range(count)) or "0"
            for kind, count in (("INPUT", n_inputs), ("OUTPUT", n_outputs))
        }
        return _text([f'#include "{self.stem}_inference.h"', *include, _EXAMPLE.format(
            n_inputs=n_inputs, n_outputs=n_outputs, input_sizes=sizes["INPUT"], output_sizes=sizes["OUTPUT"],
            parameters=f"{self.stem}_parameters" if self.parameters else "0", prefix=self.lower,
        )])  # fmt: skip

    def _makefile(self) -> str:
        parts = ["example", "inference", *(["parameters"] if self.parameters else [])]
        program = f"{self.stem}_example"
        sources = " ".join(f"{self.stem}_{part}.c" for part in parts)
        return f"all: {program}\n\n{program}: {sources}\n\t$(CC) -O2 $(CFLAGS) $^ -o $@ $(LDFLAGS) -lnnablart_functions -lm\n"


def _text(lines: Iterable[str]) -> str:
    return "\n".join(("/* Written by nn-core; changes are lost when it is written again. */", *lines, ""))


def _rows(words: list[str]) -> list[str]:
    return [f"    {', '.join(words[at : at + _PER_LINE])}," for at in range(0, len(words), _PER_LINE)]


def _array(head: str, values: Iterable[Any]) -> str:
    listed = ", ".join(map(str, values))
    return f"{head}[] = {{{listed}}};"


#: The runtime allocates memory by these; a program with several networks has them once.
_ALLOCATORS: Final = """#if defined(__GNUC__)
#define SHARED __attribute__((weak))
#else
#define SHARED
#endif

SHARED void *(*rt_variable_malloc_func)(size_t size) = malloc;
SHARED void (*rt_variable_free_func)(void *ptr) = free;
SHARED void *(*rt_malloc_func)(size_t size) = malloc;
SHARED void (*rt_free_func)(void *ptr) = free;""".splitlines()

_EXAMPLE: Final = """
#include <stdio.h>
#include <stdlib.h>

static const size_t input_sizes[] = {{{input_sizes}}};
static const size_t output_sizes[] = {{{output_sizes}}};

static int read_input(const char *path, float *data, size_t size)
{{
    FILE *file = fopen(path, "rb");
    if (!file) return -1;
    size_t n = fread(data, sizeof(float), size, file);
    fclose(file);
    return n == size ? 0 : -1;
}}

static int write_output(const char *prefix, int index, const float *data, size_t size)
{{
    char path[4096];
    snprintf(path, sizeof(path), "%s_%d.bin", prefix, index);
    FILE *file = fopen(path, "wb");
    if (!file) return -1;
    size_t n = fwrite(data, sizeof(float), size, file);
    return fclose(file) == 0 && n == size ? 0 : -1;
}}

int main(int argc, char *argv[])
{{
    if (argc != {n_inputs} + 2) {{
        fprintf(stderr, "usage: %s {n_inputs} files of inputs, and how names of results begin\\n", argv[0]);
        return 2;
    }}
    void *context = {prefix}_allocate_context({parameters});
    if (!context) {{
        fprintf(stderr, "there must be memory for the network\\n");
        return 1;
    }}
    int status = 0;
    for (int i = 0; i < {n_inputs} && !status; i++) {{
        status = read_input(argv[1 + i], {prefix}_input_buffer(context, i), input_sizes[i]);
        if (status) fprintf(stderr, "%s must be a file of %zu float32 numbers\\n", argv[1 + i], input_sizes[i]);
    }}
    if (!status) status = {prefix}_inference(context);
    for (int i = 0; i < {n_outputs} && !status; i++) {{
        status = write_output(argv[argc - 1], i, {prefix}_output_buffer(context, i), output_sizes[i]);
        if (status) fprintf(stderr, "%s_%d.bin must be a file that can be written\\n", argv[argc - 1], i);
    }}
    {prefix}_free_context(context);
    return status ? 1 : 0;
}}"""
