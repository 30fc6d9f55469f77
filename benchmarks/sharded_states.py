"""Memory of a rank with the states of Adam divided among ranks: ``nn-core launch -n 4 benchmarks/sharded_states.py 200 1``.

The arguments are the number of parameters in millions, and 1 to divide the states or 0 not to. Each rank prints the growth of
its resident memory over that of the imports (parameters, gradients, states), and the time of an update.
"""

import os
import sys
import time
from pathlib import Path

import nn_core as nn
import nn_core.communicators as C
import nn_core.solvers as S

#: Elements of a parameter.
_SIZE = 1024 * 1024


def resident_mb() -> float:
    """Return the resident memory of this process in MiB."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def main(millions: float, divides: bool) -> None:
    """Update the parameters three times, and print what they take."""
    comm = C.MultiProcessCommunicator(nn.get_current_context())
    comm.init()
    before = resident_mb()
    parameters = {f"w{n}": nn.Variable((_SIZE,), need_grad=True) for n in range(round(millions * 1e6 / _SIZE))}
    for variable in parameters.values():
        variable.d, variable.g = 0.01, 0.5
    solver = S.Adam()
    solver.set_parameters(parameters)
    if divides:
        C.shard_states(comm, solver)
    for _ in range(3):
        comm.barrier()
        start = time.perf_counter()
        solver.update()
        seconds = time.perf_counter() - start
    grown = resident_mb() - before
    line = f"rank {comm.rank} of {comm.size}: {grown:.0f} MiB resident, {seconds:.2f} s an update\n"
    os.write(1, line.encode())  # in one piece, among the lines of other ranks


if __name__ == "__main__":
    main(float(sys.argv[1]), bool(int(sys.argv[2])))
