"""Jobs: what is refused, what ends them, and that killed workers and lost machines change no bit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nn_core.errors import ArgumentError, BackendUnavailableError, CommunicationError

pytest.importorskip("nn_ext_ray", reason="nn-ext-ray is not installed: make test-ray")

from nn_ext_ray import plugin, rank, train, training
from nn_ext_ray.training import worker_counts

EXAMPLE = Path(__file__).parents[3] / "examples" / "digits_ray.py"


def test_numbers_of_workers_divide_the_shards():
    assert worker_counts((1, 4), 8) == [4, 2, 1]
    assert worker_counts((1, 3), None) == [3, 2, 1]
    assert worker_counts(2, 2) == [2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, r"train: workers must be at least 1, the smallest number first, got 0"),
        ({"workers": (3, 2)}, r"train: workers must be at least 1, the smallest number first, got \(3, 2\)"),
        ({"workers": (3, 5), "shards": 8, "max_failures": -1}, r"train: max_failures must be at least 0, got -1"),
        ({"workers": 3, "shards": 8}, r"train: shards must be a multiple of a number of workers, got 8 and 3 workers"),
        ({"resources": {"CPU": 0}}, r"train: resources must be positive, got \{'CPU': 0\}"),
        ({"strategy": "LINE"}, r"train: strategy must be PACK, SPREAD, STRICT_PACK or STRICT_SPREAD, got 'LINE'"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        train(lambda: None, **options)


def test_other_processes_are_told(monkeypatch):
    pytest.importorskip("ray", reason="ray is not installed: pip install ray")
    from nn_ext_ray import engine

    assert plugin.probe().reason == "the process is no worker of nn_ext_ray.train"
    with pytest.raises(BackendUnavailableError, match=r"the process must be a worker of nn_ext_ray.train, got another one\n"):
        engine.make()
    monkeypatch.setattr(plugin, "find_spec", lambda name: None)
    assert plugin.probe().reason == "ray is not installed: pip install 'ray>=2.50'"
    assert rank.current_rank() is None


@pytest.fixture
def started(request):
    pytest.importorskip("ray", reason="ray is not installed: pip install ray")
    request.getfixturevalue("cluster")


@pytest.mark.slow
@pytest.mark.usefixtures("started")
class TestJobs:
    def test_workers_are_ranks_of_one_communicator(self):
        def program(value):
            import numpy as np

            import nn_core as nn
            import nn_core.communicators as C

            comm = C.MultiProcessCommunicator(nn.Context())
            comm.init()
            x = nn.NdArray.from_numpy_array(np.full(100_000, value * (comm.rank + 1.0)))
            comm.all_reduce(x)
            return comm.rank, comm.local_rank, comm.engine.__class__.__name__, set(x.data.tolist())

        assert train(program, (5,), workers=2) == [(0, 0, "RayEngine", {15.0}), (1, 1, "RayEngine", {15.0})]

    def test_an_exception_of_the_program_ends_the_job(self):
        def program():
            import nn_core as nn
            import nn_core.communicators as C

            comm = C.MultiProcessCommunicator(nn.Context())
            comm.init()
            if comm.rank == 1:
                raise ZeroDivisionError("rank 1 divides")
            comm.barrier()

        with pytest.raises(ZeroDivisionError, match="rank 1 divides"):
            train(program, workers=2)

    def test_workers_that_die_too_often_are_an_error(self, caplog, monkeypatch):
        monkeypatch.setattr(training, "PAUSE_S", 0.0)

        def program():
            os._exit(3)

        with pytest.raises(CommunicationError, match=r"1 failures are answered .* got one more: the death of worker 0 on"):
            train(program, workers=1, max_failures=1)
        assert "the workers start again (1 of 1)" in caplog.text

    def test_missing_room_is_told(self):
        message = r"(?s)room for 3 workers with 1 CPU each within 0.5 s, got 2 CPU free\n  hint: ask for fewer"
        with pytest.raises(CommunicationError, match=message):
            train(lambda: None, workers=3, wait_s=0.5)


def run(*command: str | Path) -> str:
    result = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


@pytest.mark.slow
def test_the_example_survives_a_killed_worker_with_the_same_bits(tmp_path):
    pytest.importorskip("ray", reason="ray is not installed: pip install ray")
    pytest.importorskip("sklearn")
    calm = run(EXAMPLE, "-e", "3", "--workers", "1", "1", "--out", tmp_path / "calm")
    killed = run(EXAMPLE, "-e", "3", "--workers", "2", "2", "--out", tmp_path / "killed", "--kill", "30")
    assert "after the death of worker 1 on" in killed and "the workers start again (1 of 3)" in killed
    lines = [line.partition(" workers: ") for text in (calm, killed) for line in text.splitlines() if "digest" in line]
    (one, _, expected), (two, _, found) = lines
    assert (one, two) == ("1", "2") and found == expected and "accuracy 9" in found


LOST_MACHINE = """
import os, signal
from pathlib import Path
from ray.cluster_utils import Cluster
import ray
from nn_ext_ray import train

def program(mark):
    import nn_core as nn
    import nn_core.communicators as C
    comm = C.MultiProcessCommunicator(nn.Context())
    comm.init()
    for _ in range(3):
        comm.barrier()
    if comm.rank == 1 and not os.path.exists(mark):
        Path(mark).touch()
        os.kill(os.getppid(), signal.SIGKILL)  # the daemon of the machine
        os._exit(1)
    comm.barrier()
    return comm.size

prompt = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 200, "health_check_failure_threshold": 3}
head = {"num_cpus": 1, "include_dashboard": False, "_system_config": prompt}
machines = Cluster(initialize_head=True, head_node_args=head)
machines.add_node(num_cpus=1)
ray.init(address=machines.address, log_to_driver=False)
mark = os.environ["MARK"]
print("sizes", train(program, (mark,), workers=(1, 2), shards=2, grow_wait_s=3, wait_s=20))
ray.shutdown()
machines.shutdown()
"""


@pytest.mark.slow
def test_the_job_continues_on_the_machines_that_are_left(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="ray is not installed: pip install ray")
    monkeypatch.setenv("MARK", str(tmp_path / "mark"))
    path = tmp_path / "lost_machine.py"
    path.write_text(LOST_MACHINE)
    text = run(path)
    assert (tmp_path / "mark").exists()
    assert "sizes [1]" in text
