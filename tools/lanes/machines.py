"""Train a small network on older processors, which qemu emulates: nothing dies, and the losses are those of this machine.

    python -m tools.lanes.machines    # needs qemu-x86_64, of Debian's package qemu-user

Extensions that are built for several instruction sets choose one when they are loaded; the emulated machines have none, AVX,
AVX2, and AVX2 with what came later. AVX-512 is not emulated.
"""

import shutil
import subprocess
import sys
from typing import Final

import click
import numpy as np

from nn_core.ext import python_command

from .processes import train

#: A processor of each generation.
MACHINES: Final = ("Nehalem", "SandyBridge", "Haswell", "Skylake-Client")
#: Between losses of different instruction sets.
TOLERANCE: Final = 1e-4
CHILD: Final = "import sys; from tools.lanes.processes import train; sys.stdout.buffer.write(train(0))"


def fault_of(machine: str, expected: "np.ndarray[tuple[int], np.dtype[np.float32]]") -> str | None:
    """Return the fault of a machine, or None."""
    command = ["qemu-x86_64", "-cpu", machine, *python_command(CHILD, paths=["."])]
    result = subprocess.run(command, capture_output=True, check=False)
    if result.returncode:
        return f"exit status {result.returncode}: {result.stderr.decode(errors='replace')[-500:]}"
    losses = np.frombuffer(result.stdout, np.float32)
    if losses.shape != expected.shape or not np.allclose(losses, expected, rtol=TOLERANCE):
        return f"losses {losses}, expected {expected}"
    return None


@click.command()
@click.option("--machine", "machines", multiple=True, default=MACHINES, help="Only these.")
def main(machines: tuple[str, ...]) -> None:
    """Train under emulated processors; the exit status is 1 if there is a finding."""
    if shutil.which("qemu-x86_64") is None:
        raise click.ClickException("qemu-x86_64 must be installed (apt install qemu-user)")
    expected = np.frombuffer(train(0), np.float32)
    found = {machine: fault_of(machine, expected) for machine in machines}
    for machine, fault in found.items():
        click.echo(f"{machine}: {fault or 'equal'}")
    sys.exit(any(found.values()))


if __name__ == "__main__":
    main()
