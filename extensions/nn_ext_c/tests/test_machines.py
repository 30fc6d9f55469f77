"""Networks in integers on other compilers and machines, where these are installed: the bits that Python computes."""

import shutil
import subprocess

import numpy as np
import pytest

import nn_core as nn
from extensions.nn_ext_c.tests.test_integer import NETS
from nn_ext_c import export_source, quantize
from nn_ext_c.integer import reference

#: Compilers, their options, and what runs their programs.
MACHINES = {
    "gcc": (["gcc", "-O2"], []),
    "gcc-unsigned-char": (["gcc", "-O3", "-funsigned-char"], []),
    "clang": (["clang", "-O2"], []),
    "i686": (["i686-linux-gnu-gcc", "-O2", "-static"], []),
    "arm": (["arm-linux-gnueabihf-gcc", "-O2", "-static"], ["qemu-arm"]),
    "arm-thumb-small": (["arm-linux-gnueabihf-gcc", "-Os", "-mthumb", "-static"], ["qemu-arm"]),
    "powerpc": (["powerpc-linux-gnu-gcc", "-O2", "-static"], ["qemu-ppc"]),
}
MAIN = """
#include <stdio.h>
#include "net.h"
static const int8_t x[NET_INPUT_X_SIZE] = {{{numbers}}};
{buffers}
static net_context context;
int main(void)
{{
    const int status = net_run(&context, {arguments});
{prints}
    return status;
}}
"""


def main_text(values, outputs):
    """A program that runs a network on integers and prints the results."""
    sizes = {f"y{k}": int(np.prod(output.shape)) for k, output in enumerate(outputs.values())}
    return MAIN.format(
        numbers=", ".join(map(str, values.reshape(-1))),
        buffers="\n".join(f"static int8_t {name}[{size}];" for name, size in sizes.items()),
        arguments=", ".join(["x", *sizes]),
        prints="\n".join(
            f'    for (int i = 0; i < {size}; ++i) {{ printf("%d\\n", {name}[i]); }}' for name, size in sizes.items()
        ),
    )


@pytest.fixture(scope="module")
def networks():
    """Each network as C with a main function, and the integers that it has to print."""
    rng = np.random.default_rng(7)
    made = {}
    for build in NETS:
        with nn.parameter_scope("", {}):
            x = nn.Variable((2, 3, 8, 8))
            y = build(x)
            outputs = y if isinstance(y, dict) else {"y": y}
            samples = rng.normal(0, 1, (10, 3, 8, 8))
            source = export_source(outputs, {"x": x}, name="net", dtype="int8", calibration=samples, io="int8")
            values = rng.integers(-128, 128, x.shape)
            network = quantize(outputs, {"x": x}, calibration=samples)
            found = reference.run_integers(network, {"x": values})
            wanted = np.concatenate([np.reshape(found[name], -1) for name in outputs])
            made[build.__name__] = (source, main_text(values, outputs), wanted)
    return made


#: Machines that are tried with every change; the others take five seconds each.
QUICK = {"gcc", "clang", "arm"}


@pytest.mark.parametrize("machine", [pytest.param(m, marks=[] if m in QUICK else [pytest.mark.slow]) for m in MACHINES])
def test_all_machines_have_the_bits_of_python(machine, networks, tmp_path):
    command, runner = MACHINES[machine]
    missing = [program for program in (command[0], *runner) if not shutil.which(program)]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    for name, (source, text, wanted) in networks.items():
        (tmp_path / "net.h").write_text(source.header)
        (tmp_path / "net.c").write_text(source.code)
        (tmp_path / "main.c").write_text(text)
        files = [tmp_path / "net.c", tmp_path / "main.c", "-o", tmp_path / name]
        subprocess.run([*command, "-std=c99", "-Wall", "-Werror", *files, "-lm"], check=True)
        printed = subprocess.run([*runner, tmp_path / name], capture_output=True, text=True, check=True).stdout
        np.testing.assert_array_equal(np.array(printed.split(), int), wanted, err_msg=name)
