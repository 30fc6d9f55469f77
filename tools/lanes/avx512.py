"""Compute on a processor with AVX-512 that an emulator has: bits under signals as without, numbers as here with AVX2.

    python -m tools.lanes.avx512 build --kernel vmlinuz --folder /tmp/avx512
    cd /tmp/avx512 && bochs -q -f machine        # an hour or so; serial.txt says what it computes
    python -m tools.lanes.avx512 read /tmp/avx512/serial.txt --report docs/reliability.json

The emulator runs a whole computer: the kernel of Linux that is given, and Python with what a run here loads. Debian has the
tools (busybox-static, grub-pc-bin, grub-common, xorriso, mtools, lz4, cpio, bochsbios, vgabios, a C compiler) and the kernel
(unpack linux-image-cloud-amd64 with what it depends on by dpkg -x; 6.1 was used). Its bochs 2.7 is built with a debugger, and
too slow; build version 3.0 or later, of the repository bochs-emu/Bochs, on a terminal:

    ./configure --enable-cpu-level=6 --enable-x86-64 --enable-fpu --enable-avx --enable-evex --enable-pci --disable-docbook \\
        --with-term --enable-handlers-chaining --enable-repeat-speedups --enable-fast-function-calls && make
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from nn_core.testing.cases import cases

from .perturbed import results
from .reliability import record, report_option
from .signals import Computation, Numbers, Probe, bits_of, computations, native_cases

#: Of the largest number of a result, by dtype: sums in another order, and in bfloat16 of rounded numbers.
TOLERANCE: Final = {"float32": 1e-5, "bfloat16": 1e-2}
DTYPES: Final = {"float": "float32", "bfloat16": "bfloat16"}
#: The last line of the emulated computer, before it is switched off by its kernel, which ends without the first process.
END: Final = "AVX512 END"

INIT: Final = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t sysfs sys /sys
export HOME=/tmp OMP_NUM_THREADS={threads} OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive NN_CORE_PLUGINS=+cpu
export PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 ONEDNN_VERBOSE=profile_create
cd {place} && {python} -u -W ignore -m tools.lanes.avx512 guest --signals {signals}
/bin/busybox echo "{end} $?"
"""
#: Bochs gives sizes of compact saved states that Linux finds wrong, whereupon it would do without AVX: 321 is xsavec, 323
#: xsaves. The hardware that bochs lacks is switched off.
GRUB: Final = """set timeout=0
menuentry nn {
  linux /boot/vmlinuz console=ttyS0 quiet mitigations=off tsc=reliable nosmp noapic acpi=off panic=1 clearcpuid=321,323
  initrd /boot/initrd
}
"""
MACHINE: Final = """cpu: model={cpu}, count=1, ips=20000000, reset_on_triple_fault=0
megs: 1024
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
ata0-master: type=disk, path=boot.iso, mode=flat
boot: disk
com1: enabled=1, mode=file, dev=serial.txt
log: bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
clock: sync=none
display_library: term
"""
#: Computes what the emulated computer will, and prints the files that this opens and maps.
HERE: Final = """
import json, os, sys
opened = set()
sys.addaudithook(lambda event, args: opened.add(str(args[0])) if event == "open" else None)
from tools.lanes import avx512
avx512.compute_here(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
maps = (line.split(maxsplit=5)[5:] for line in open("/proc/self/maps"))
opened |= {words[0].strip() for words in maps if words}
for module in list(sys.modules.values()):
    opened |= {str(getattr(module, name, None)) for name in ("__file__", "__cached__")}
print(json.dumps(sorted(os.path.abspath(path) for path in opened if os.path.isfile(path))))
"""


def wide(arrays: Sequence[Numbers | None]) -> list[Numbers]:
    """Return copies of numbers in a dtype that a file can hold."""
    found = [np.zeros(0) if array is None else array for array in arrays]
    return [array.astype(complex if array.dtype.kind == "c" else float) for array in found]


def error_of(found: Sequence[Numbers], expected: Sequence[Numbers]) -> float:
    """Return the largest difference as a part of the largest number of its array, infinite where other numbers are finite."""
    return max([_error(a, b) for a, b in zip(found, expected, strict=True)], default=0.0)


def _error(found: Numbers, expected: Numbers) -> float:
    if found.shape != expected.shape:
        return float("inf")
    finite = np.isfinite(expected) & np.isfinite(found)
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True):
        return float("inf")
    largest = np.max(np.abs(expected[finite]), initial=0.0)
    return float(np.max(np.abs(found[finite] - expected[finite]), initial=0.0) / (largest or 1.0))


def guest(signals: int, expected: Mapping[str, Numbers]) -> Iterator[str]:
    """Compute with AVX-512, undisturbed and under signals; yield what is wrong."""
    from nn_ext_cpu import _native

    click.echo(f"isa {_native.isa()}, products of bfloat16 by {_native.bfloat16_products()}")
    if _native.isa() != "avx512":
        yield f"the instruction set must be avx512, got {_native.isa()}"
        return
    yield from _samples(expected)
    yield from _signals(signals, expected)


def _samples(expected: Mapping[str, Numbers]) -> Iterator[str]:
    wanted = {str(name) for name in expected["samples"]}
    n_samples = 0
    for case in cases(["cpu"], fast=False) if wanted else ():
        if str(case) in wanted:
            n_samples += 1
            yield from _differing(str(case), case.dtype, wide(results(case)), expected)
            if n_samples % 100 == 0:
                click.echo(f"{n_samples} samples")
            if n_samples == len(wanted):
                break
    click.echo(f"FIGURES samples {n_samples}")


def _signals(signals: int, expected: Mapping[str, Numbers]) -> Iterator[str]:
    probe = Probe("alarm", Path("/tmp"))
    for name, compute in computations().items():
        start, before = time.monotonic(), probe.delivered
        numbers = compute()
        yield from _differing(name, DTYPES[name.rpartition("-")[2]], wide(numbers), expected)
        different, runs = _disturbed(probe, compute, bits_of(numbers), signals)
        click.echo(f"{name}: {runs} runs, {probe.delivered - before} signals, {time.monotonic() - start:.1f} s")
        if different:
            yield f"{name}: {different} of {runs} runs under signals gave other bits"
    click.echo(f"FIGURES signals {probe.delivered}")
    if probe.astray:
        yield f"{probe.astray} signals found the stack pointer outside of its stack"


def _differing(name: str, dtype: str, numbers: list[Numbers], expected: Mapping[str, Numbers]) -> Iterator[str]:
    error = error_of(numbers, [expected[f"{name}/{i}"] for i in range(len(numbers))])
    if not error <= TOLERANCE[dtype]:
        yield f"{name}: differs from AVX2 by {error:.1e} of the largest number"


def _disturbed(probe: Probe, compute: Computation, expected: str, signals: int) -> tuple[int, int]:
    """Compute under signals; return the number of runs that gave other bits, and of all runs."""
    enough, different, runs = probe.delivered + signals, 0, 0
    probe.start()
    while probe.delivered < enough:
        different += bits_of(compute()) != expected
        runs += 1
    probe.stop()
    return different, runs


def compute_here(target: str, n_samples: int, seed: int) -> None:
    """Write what this machine computes with AVX2."""
    from nn_ext_cpu import _native

    _native.select_isa("avx2")
    chosen = native_cases(n_samples, seed) if n_samples else []
    made = {name: wide(compute()) for name, compute in computations().items()}
    made |= {str(case): wide(results(case)) for case in chosen}
    arrays: dict[str, Any] = {f"{name}/{i}": array for name, found in made.items() for i, array in enumerate(found)}
    arrays["samples"] = np.array([str(case) for case in chosen], str)
    np.savez(target, **arrays)
    with np.load(target) as found:  # what this imports has to be there, too
        assert len(found["samples"]) == len(chosen)


def _files(target: Path, samples: int, seed: int) -> set[Path]:
    """Return the files that a run here opens, the links that lead to them, and sources."""
    # with bytecode, which takes the emulator minutes to make
    environment = {**os.environ, "NN_CORE_PLUGINS": "+cpu", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-W", "ignore", "-c", HERE, str(target), str(samples), str(seed)]
    text = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    files = {Path(path) for path in json.loads(text.splitlines()[-1])} | {Path(sys.executable)}
    packages = Path(np.__file__).parents[1]
    files |= {Path("/lib64/ld-linux-x86-64.so.2"), Path(sys.prefix) / "pyvenv.cfg", *packages.glob("*.pth")}
    near = [other for path in files if ".so" in path.name for other in path.parent.glob(path.name.split(".so")[0] + ".so*")]
    files |= {path for path in near if path.is_symlink()}
    return {path for path in files - {target} if path.parts[1] not in ("proc", "sys", "dev", "tmp") and path.is_file()}


def _copy(path: Path, root: Path) -> None:
    """Copy a file below `root`, and links on the way as links."""
    at = Path("/")
    for part in path.parts[1:]:
        at = at / part
        target = root / at.relative_to("/")
        if at.is_symlink():
            if not target.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(at.readlink())
            _copy(Path(os.path.normpath(at.parent / at.readlink())) / path.relative_to(at), root)
            return
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


def fill(root: Path, samples: int, seed: int) -> None:
    """Write the files of the emulated computer but those that say what it does."""
    shutil.rmtree(root, ignore_errors=True)
    for name in ("proc", "dev", "sys", "tmp", "bin"):
        (root / name).mkdir(parents=True)
    Probe("alarm", root / "tmp")
    for path in _files(root / "tmp" / "expected.npz", samples, seed):
        _copy(path, root)
    for library in root.rglob("libpython*.so.*"):  # less to load; those of wheels are not what strip knows
        subprocess.run(["strip", "--strip-debug", library], check=False)
    shutil.copy2("/bin/busybox", root / "bin" / "busybox")


@click.group()
def main() -> None:
    """Compute on an emulated processor."""


@main.command()
@click.option("--kernel", required=True, type=click.Path(path_type=Path), help="An image of Linux: vmlinuz.")
@click.option("--folder", required=True, type=click.Path(path_type=Path), help="For the disk, and what the computer writes.")
@click.option("--cpu", default="corei7_skylake_x", help="One of those of: bochs --help cpu.")
@click.option("--signals", default=50, help="At least so many for each computation.")
@click.option("--samples", default=500, help="Samples of the conformance kit, without signals.")
@click.option("--threads", default=1)
@click.option("--seed", default=0)
def build(kernel: Path, folder: Path, cpu: str, *, signals: int, samples: int, threads: int, seed: int) -> None:
    """Write the disk and the description of the computer."""
    root, boot = folder / "root", folder / "disk" / "boot"
    fill(root, samples, seed)
    place = Path.cwd()
    (root / "init").write_text(INIT.format(place=place, python=sys.executable, end=END, signals=signals, threads=threads))
    (root / "init").chmod(0o755)
    (boot / "grub").mkdir(parents=True, exist_ok=True)
    archive = "find . | cpio --quiet -o -H newc | lz4 -q -l"
    with (boot / "initrd").open("wb") as target:
        subprocess.run(archive, shell=True, cwd=root, stdout=target, check=True)
    shutil.copy2(kernel, boot / "vmlinuz")
    (boot / "grub" / "grub.cfg").write_text(GRUB)
    image = folder / "boot.iso"
    subprocess.run(["grub-mkrescue", "-o", image, folder / "disk"], check=True, capture_output=True)
    cylinder = 16 * 63 * 512
    os.truncate(image, -(-image.stat().st_size // cylinder) * cylinder)
    (folder / "machine").write_text(MACHINE.format(cpu=cpu))


@main.command("guest", hidden=True)
@click.option("--signals", required=True, type=int)
def in_guest(signals: int) -> None:
    """Compute in the emulated computer; the exit status is 1 if there is a finding."""
    n_faults = 0
    with np.load("/tmp/expected.npz") as expected:
        for fault in guest(signals, expected):
            n_faults += 1
            click.echo(f"--- {fault}")
    sys.exit(n_faults > 0)


@main.command()
@click.argument("serial", type=click.File(errors="replace"))
@report_option
def read(serial: Any, report: Path | None) -> None:
    """Record what a computer has written; the exit status is 1 if there is a finding, or if it has not come to a good end."""
    text = serial.read()
    faults = re.findall(r"^--- (.*)$", text, re.MULTILINE)
    figures = {part: int(number) for part, number in re.findall(r"^FIGURES (\w+) (\d+)", text, re.MULTILINE)}
    for fault in faults:
        click.echo(f"--- {fault}")
    for part, count in figures.items():
        if count:
            record(report, "AVX-512", part, count=count, findings=len(faults))
    sys.exit(bool(faults) or f"{END} 0" not in text)


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.avx512")
