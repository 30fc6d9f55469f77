"""Memory of a rank that trains a large net, with states and gradients divided among ranks or not.

    nn-core launch -n 4 benchmarks/sharded_states.py 200 2

The arguments are the number of parameters in millions, and 0, 1 or 2: nothing is divided, the states of Adam, or the gradients
as well (the stages of ZeRO). Each rank prints the growth of its resident memory over that of the imports, at rest between two
steps and at its largest within one, and the time of a step. Linux only.
"""

import os
import sys
import time
from pathlib import Path

import nn_core as nn
import nn_core.communicators as C
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.initializer import ConstantInitializer

#: Width of a layer, and samples of a batch: the values between the layers are small.
_WIDTH, _BATCH = 4096, 4


def memory_mib(name: str) -> float:
    """Return the resident memory of this process, VmRSS, or the largest since the last reset, VmHWM."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition(f"{name}:")[2].split()[0]) / 1024


def main(millions: float, stage: int) -> None:
    """Train three steps, and print what they take."""
    comm = C.MultiProcessCommunicator(nn.get_current_context())
    comm.init()
    before = memory_mib("VmRSS")
    x = h = nn.Variable((_BATCH, _WIDTH))
    for number in range(round(millions * 1e6 / _WIDTH**2)):
        h = F.tanh(PF.affine(h, _WIDTH, w_init=ConstantInitializer(1e-4), name=f"layer{number}", with_bias=False))
    loss = F.mean(h)
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())
    if stage:
        shards = C.shard_states(comm, solver, gradients=stage == 2)
    sums = shards if stage == 2 else C.Buckets(comm, nn.get_parameters(), loss=loss)
    x.d = comm.rank + 1
    for _ in range(3):
        comm.barrier()
        Path("/proc/self/clear_refs").write_text("5")  # the largest memory begins anew
        start = time.perf_counter()
        solver.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True, communicator_callbacks=sums.callback(division=True))
        solver.update()
        seconds = time.perf_counter() - start
    rest, peak = memory_mib("VmRSS") - before, memory_mib("VmHWM") - before
    line = (
        f"rank {comm.rank} of {comm.size}, stage {stage}: {rest:.0f} MiB at rest, {peak:.0f} at most, {seconds:.2f} s a step\n"
    )
    os.write(1, line.encode())  # in one piece, among the lines of other ranks


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
