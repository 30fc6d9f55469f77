"""Every launch is one that devices take, by what its kernel needs; no device is needed to know."""

import itertools
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import compilers
import launches
import sources
from test_sources import DTYPES, engine_codes

from nn_ext_cuda.codegen.code import Code
from nn_ext_cuda.kernels import KERNELS
from nn_ext_cuda.launch.program import THREADS, Launch

QUICK = ("Softmax", "Dropout", "Sum")


def samples(names, dtypes):
    """The launches for the samples of the conformance kit."""
    for *_, program in sources.programs(KERNELS, names, dtypes):
        yield from getattr(program, "launches", ())


def longer(dtype, n_elements):
    """The launches for samples with one length multiplied."""
    for name in sorted(KERNELS):
        for _, call in sources.scaled_calls(name, dtype, n_elements):
            for _, program in sources.runners(KERNELS[name], call):
                yield from getattr(program, "launches", ())


def check(compiler, found, architecture):
    """Assert that launches fit, and that no kernel keeps much in local memory."""
    found = list(found)
    codes = list(dict.fromkeys(launch.code for launch in found))
    needs = launches.resources(compiler, codes, architecture)
    wrong = {text for launch in found for text in launches.complaints(launch, needs[launch.code])}
    wrong |= {text for code in codes for text in launches.slow_memory(code, needs[code])}
    assert wrong == set()


def test_grids_and_blocks_are_within_the_limits():
    assert {text for launch in samples(sorted(KERNELS), DTYPES) for text in launches.complaints(launch)} == set()


SOURCE = """\
typedef float R;
extern "C" __global__ void {bounds}kernel(const float* x, float* y, int n) {{
  __shared__ float held[{n_shared}];
  float own[{n_own}];
  for (int i = 0; i < n; ++i) own[i * 7 % {n_own}] = x[i];
  held[threadIdx.x] = own[n % {n_own}];
  __syncthreads();
  y[threadIdx.x] = held[threadIdx.x ^ 1];
}}
"""


def launch_of(n_shared=32, n_own=1, bounds="", **changes):
    text = SOURCE.format(n_shared=n_shared, n_own=n_own, bounds=bounds)
    return replace(Launch(Code("kernel", text), (1,), (32,), (0, 1, np.int32(4))), **changes)


def test_what_a_kernel_needs_is_what_the_compiler_says(compiler):
    few, many = launch_of(), launch_of(n_shared=2000, n_own=100)
    needs = launches.resources(compiler, [few.code, many.code], "sm_90")
    assert needs[few.code].shared_bytes == 128 and needs[few.code].stack_bytes == 0
    assert needs[many.code].shared_bytes == 8000 and needs[many.code].stack_bytes == 400
    assert 0 < needs[few.code].registers < 64
    assert launches.complaints(few, needs[few.code]) == []
    assert launches.slow_memory(many.code, needs[many.code]) == ["kernel: 400 bytes of local memory"]


@pytest.mark.parametrize(
    ("launch", "registers", "text"),
    [
        (launch_of(block=(1056,)), 8, "1056 threads"),
        (launch_of(block=(64,), bounds="__launch_bounds__(32) "), 8, "64 threads"),
        (launch_of(block=(1, 1, 65)), 8, "65 threads on axis 2"),
        (launch_of(block=(1024,)), 65, "73728 registers"),
        (launch_of(block=(993,)), 65, "73728 registers"),
        (launch_of(shared_bytes=48 * 1024 - 100), 8, "49180 bytes of shared memory"),
        (launch_of(grid=(1, 65536)), 8, "65536 blocks on axis 1"),
        (launch_of(grid=(2**31,)), 8, "2147483648 blocks on axis 0"),
        (launch_of(grid=(0,)), 8, "no blocks or threads"),
        (launch_of(arguments=(np.int32(0), *[0] * 512)), 8, "4104 bytes of parameters"),
    ],
)
def test_launches_that_do_not_fit(launch, registers, text):
    needs = compilers.Resources(registers, 128, 0, 0)
    assert f"kernel: {text}" in launches.complaints(launch, needs)


def test_kernels_of_each_kind_fit(compiler):
    check(compiler, itertools.chain(samples(QUICK, ["float32"])), "sm_90")


@pytest.mark.slow
@pytest.mark.parametrize("architecture", compilers.ARCHITECTURES)
def test_kernels_of_the_engine_fit(compiler, architecture):
    check(compiler, [Launch(code, (1,), (THREADS,), ()) for code in engine_codes()], architecture)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", compilers.ARCHITECTURES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_of_all_functions_fit(compiler, dtype, architecture):
    check(compiler, samples(sorted(KERNELS), [dtype]), architecture)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_for_longer_axes_fit(compiler, dtype):
    """Other numbers of threads, tiles, and elements that a thread holds."""
    check(compiler, longer(dtype, 2**16), "sm_90")
