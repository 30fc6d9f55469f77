"""Signals and errors while rank 0 saves: what is being written is completed before the ranks end."""

import os
import signal
import sys
import time

import pytest
from ranks import launch, needs_mpi, start

from nn_ext_mpi.running import Job, handed_on

#: Two ranks whose checkpoints take a second to write; rank 1 may fail meanwhile.
PROGRAM = """
import os, sys, time
import numpy as np
import nn_core as nn, nn_core.functions as F, nn_core.parametric_functions as PF, nn_core.solvers as S
import nn_core.communicators as C
import nn_core.training.extensions.saving as saving
from nn_core.files import atomic_writer
from nn_core.training import Checkpoint, Trainer, Updater, every
from nn_core.utils.data_iterator import data_iterator_simple
out, fails_at, is_asynchronous = sys.argv[1], int(sys.argv[2]), bool(int(sys.argv[3]))
comm = C.MultiProcessCommunicator(nn.get_current_context())
comm.init()
write = saving.write_snapshot

def write_slowly(path, snapshot):
    with atomic_writer(str(path) + ".slow"):
        open(out + "/begun", "w").close()
        time.sleep(1)
    write(path, snapshot)

saving.write_snapshot = write_slowly
x, t = nn.Variable((4, 3)), nn.Variable((4, 2))
loss = F.mean(F.squared_error(PF.affine(x, 2), t))
solver = S.Sgd(0.01)
solver.set_parameters(nn.get_parameters())
counted = iter(range(10**9))

def load(i):
    if comm.rank == 1 and fails_at and next(counted) >= 8 * fails_at:
        while not os.path.exists(out + "/begun"):
            time.sleep(0.01)
        raise RuntimeError("the data end here")
    return np.ones(3, np.float32), np.ones(2, np.float32)

with data_iterator_simple(load, 8, 8) as data:
    updater = Updater(data, [x, t], loss, solver, comm=comm, shards=2)
    trainer = Trainer(updater, every(1000, "epoch"), out)
    trainer.extend(Checkpoint(asynchronous=is_asynchronous), every=every(5 if fails_at else 10**6))

    @trainer.on(every(1))
    def slow(trainer):
        open(f"{out}/runs-{comm.rank}", "w").close()
        time.sleep(0.02)

    trainer.run()
"""


def wait_for(condition, process, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.05)


def running(tmp_path, *arguments, **variables):
    """Start the program, and return the process of nn-core launch when both ranks train."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    process = start("-n", "2", path, tmp_path, *arguments, **variables)
    wait_for(lambda: all((tmp_path / f"runs-{rank}").exists() for rank in (0, 1)), process)
    return process


def saved(tmp_path):
    return sorted(path.name for path in tmp_path.glob("checkpoint-*.npz"))


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_launch_hands_on_signals_and_waits_until_rank_0_has_saved(name, tmp_path):
    process = running(tmp_path, "0", "0", NN_CORE_LOG_LEVEL="WARNING")
    process.send_signal(getattr(signal, name))
    output, errors = process.communicate(timeout=60)
    assert len(saved(tmp_path)) == 1, output + errors
    # each rank says so once; after SIGINT, the traceback of its KeyboardInterrupt repeats it
    told = [line for line in errors.splitlines() if line.startswith("training was interrupted after iteration")]
    assert process.returncode != 0 and len(told) == 2, errors
    assert not list(tmp_path.glob(".*.partial"))


@needs_mpi
@pytest.mark.slow
def test_launch_passes_on_the_status_that_asks_for_another_start(tmp_path):
    """Every rank ends in the same iteration, rank 0 has saved, and --restarts leaves the rest to a scheduler."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    variables = {"NN_CORE_LOG_LEVEL": "WARNING"}
    limited = launch("-n", "2", "--restarts", "3", "--time-limit", "6s", path, tmp_path, "0", "0", **variables)
    assert limited.returncode == 75, limited.stdout + limited.stderr
    assert len(saved(tmp_path)) == 1 and "starts again" not in limited.stderr
    assert limited.stderr.count("by its time limit") == 2, limited.stderr
    process = start("-n", "2", path, tmp_path / "noticed", "0", "0", NN_CORE_STOP_SIGNALS="SIGUSR1", **variables)
    wait_for((tmp_path / "noticed" / "runs-1").exists, process)
    process.send_signal(signal.SIGUSR1)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 75 and len(saved(tmp_path / "noticed")) == 1, output + errors


@needs_mpi
def test_a_wrong_limit_is_refused_before_anything_starts(tmp_path):
    result = launch("-n", "2", "--time-limit", "soon", __file__)
    assert result.returncode == 1
    assert "launch: --time-limit: must be positive seconds or a text such as '3h50m', got 'soon'" in result.stderr


@needs_mpi
@pytest.mark.slow
def test_launch_lets_the_ranks_save_and_go_on(tmp_path):
    process = running(tmp_path, "0", "0", NN_CORE_STOP_SIGNALS="SIGUSR2")
    for number, name in enumerate(("SIGUSR1", "SIGHUP"), 1):
        process.send_signal(getattr(signal, name))
        wait_for(lambda: len(saved(tmp_path)) == number, process)  # noqa: B023  # called here
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert len(saved(tmp_path)) == 3


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("asynchronous", ["0", "1"])
def test_rank_0_completes_its_checkpoint_when_another_rank_fails(asynchronous, tmp_path):
    process = running(tmp_path, "6", asynchronous)
    output, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and "RuntimeError: the data end here" in errors, output + errors
    assert saved(tmp_path) == ["checkpoint-00000005.npz"], errors
    assert not list(tmp_path.glob(".*.partial"))


EARLY = """
import os, sys
import numpy as np
import nn_core as nn, nn_core.communicators as C
comm = C.MultiProcessCommunicator(nn.get_current_context())
comm.init()
x = nn.NdArray.from_numpy_array(np.ones(3))
comm.all_reduce(x)
if comm.rank == 1 and int(sys.argv[1]):
    sys.exit(0)
comm.all_reduce(x)
os.write(1, b"done ")
"""


@needs_mpi
@pytest.mark.slow
def test_a_rank_that_ends_early_with_status_0_is_noticed_at_once(tmp_path):
    path = tmp_path / "early.py"
    path.write_text(EARLY)
    assert launch("-n", "2", path, "0").stdout.split() == ["done", "done"]
    result = launch("-n", "2", path, "1", timeout_s=60)
    assert result.returncode != 0 and not result.stdout
    assert "in collective 2 of group 'world', got the end of the program on rank 1" in result.stderr


def test_a_job_that_is_stopped_is_waited_for_and_not_started_again(tmp_path):
    """A stand-in of mpiexec answers the signal that stands for the one that this process gets."""
    stand_in = f"""
import os, signal, sys, time
signal.signal(signal.SIGUSR2, lambda *_: sys.exit(open({str(tmp_path / "saved")!r}, "w").write("1") + 6))
os.kill({{parent}}, signal.SIGTERM)
time.sleep(30)
"""
    command = [sys.executable, "-I", "-S", "-c", stand_in.replace("{parent}", str(os.getpid()))]
    before = signal.getsignal(signal.SIGTERM)
    with Job(command, os.environ, handed_on("Open MPI", ["SIGHUP"])) as job:
        assert job.run(restarts=3) == 7
    assert job.is_stopped and (tmp_path / "saved").read_text() == "1"
    assert signal.getsignal(signal.SIGTERM) is before


def test_signals_have_the_same_meaning_for_the_ranks():
    term, hangup, user = signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1
    assert handed_on("MPICH", ["SIGHUP"])[hangup] == term
    assert handed_on("MPICH", [])[hangup] == user
    assert handed_on("MPICH", [])[user] == user
    assert handed_on("Open MPI", [])[term] == signal.SIGUSR2
