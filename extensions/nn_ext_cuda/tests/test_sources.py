"""Every CUDA source of this package is compiled for the architectures that are in use; no device is needed."""

import itertools
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import compilers
import sources

from nn_ext_cuda.codegen import words
from nn_ext_cuda.kernels import KERNELS
from nn_ext_cuda.kernels.solvers import updates
from nn_ext_cuda.kernels.solvers.layerwise import layerwise_code
from nn_ext_cuda.kernels.solvers.rescale import rescale_code
from nn_ext_cuda.kernels.solvers.rules import LAYERWISE_RULES, RULES

DTYPES = ("float32", "float64", "float16", "bfloat16")
#: A generated kernel, and kernels from files; with those of the engine they take a second or two.
QUICK = ("Sum", "Softmax", "Dropout")


def engine_codes():
    """The kernels that solvers launch, and those that bring numbers to the device."""
    for dtype in ("float32", "float64"):
        for resident in (False, True):
            for name in RULES:
                yield updates.update_code(name, dtype, resident=resident)
            yield updates.update_code("Adam", dtype, resident=resident, guarded=True)
            yield from layerwise_codes(dtype, resident)
            yield updates.norm_code(dtype, scales=True, resident=resident)
        yield updates.norm_code(dtype, scales=False)
    yield from (rescale_code(scales=False), rescale_code(scales=True), rescale_code(scales=True, resident=True))
    for n in (2, 4, 8, 16, words.MAX_WORDS):
        yield words.set_words_code(n)
        yield words.put_words_code(n)


def layerwise_codes(dtype, resident):
    """Norms and steps of rules that depend on them, with and without a guard."""
    for name, rule in LAYERWISE_RULES.items():
        for steps, guarded in itertools.product((False, True), repeat=2):
            yield layerwise_code(name, rule, dtype, steps=steps, resident=resident, guarded=guarded)


def check(compiler, pieces, architecture):
    """Compile many sources at once; if that fails, name the one that is to blame."""
    if compiler.complaints(sources.together(pieces), architecture):
        wrong = {code.name: said for code in pieces if (said := compiler.complaints(code.source, architecture))}
        assert wrong == {}
        pytest.fail("the sources are fine one by one, and not together")


def test_a_source_of_each_kind_compiles(compiler):
    pieces = [sources.codes(sources.programs(KERNELS, [name], ["float32"]))[0] for name in QUICK]
    pieces += [updates.update_code("Adam", "float32", guarded=True), rescale_code(scales=True), words.set_words_code(2)]
    check(compiler, pieces, "sm_90")


def test_the_compiler_finds_mistakes(compiler):
    code = words.put_words_code(2)
    said = compiler.complaints(code.source.replace("threadIdx.x", "thread.x"), "sm_90")
    assert "thread" in said


_KERNEL = re.compile(r"__global__ void [^(]*\b(\w+)\((.*?)\) \{\n(.*?)\n\}\n", re.DOTALL)
_DECLARED = re.compile(
    r"\b(?:u?int(?:32|64)?|bool|float|double|R|T|Best|Pack<[^>]*>)\s*[*&]?\s*(?:const )?(\w+)\s*(?:=[^=]|;|\[)"
)


def hidden_parameters(text):
    """Parameters of kernels that a variable of the same name hides: an expression that names one would get the variable."""
    for name, parameters, body in _KERNEL.findall(text):
        given = {found[1] for each in parameters.split(",") if (found := re.search(r"(\w+)\s*$", each))}
        yield from (f"{name}: {one}" for one in sorted(given & set(_DECLARED.findall(body))))


def test_no_variable_hides_a_parameter():
    texts = {code.text for code in engine_codes()}
    texts |= {code.text for code in sources.codes(sources.programs(KERNELS, sorted(KERNELS), DTYPES))}
    assert [found for text in texts for found in hidden_parameters(text)] == []
    shadowed = 'extern "C" __global__ void f(const R* x_, const R p) {\n  for (int64 p = 0; p < 3; ++p) {}\n}\n'
    assert list(hidden_parameters(shadowed)) == ["f: p"]


@pytest.mark.slow
@pytest.mark.parametrize("architecture", compilers.ARCHITECTURES)
def test_the_sources_of_the_engine_compile(compiler, architecture):
    check(compiler, list(engine_codes()), architecture)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", compilers.ARCHITECTURES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sources_of_all_functions_compile(compiler, dtype, architecture):
    found = sources.codes(sources.programs(KERNELS, sorted(KERNELS), [dtype]))
    check(compiler, sources.different(found), architecture)
