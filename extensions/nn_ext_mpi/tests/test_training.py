"""Training on processes: the number of ranks changes no bit, and programs run as NNabla's tutorial has them."""

import signal
import textwrap
from pathlib import Path

import pytest
from ranks import launch, needs_mpi, needs_names, needs_tolerance

IDENTITY = """
import hashlib, os, sys
import numpy as np
import nn_core as nn, nn_core.functions as F, nn_core.parametric_functions as PF, nn_core.solvers as S
import nn_core.communicators as C
n_steps, states = int(sys.argv[1]), sys.argv[2:]
comm = C.MultiProcessCommunicator(nn.get_current_context())
comm.init()
x, t = nn.Variable((4, 2, 6, 6)), nn.Variable((4, 1))
h = F.relu(PF.batch_normalization(PF.convolution(x, 4, (3, 3), rng=np.random.RandomState(comm.rank))))
y = PF.affine(F.dropout(h, 0.3), 3, rng=np.random.RandomState(comm.rank))
loss = F.mean(F.softmax_cross_entropy(y, t))
parameters = nn.get_parameters(grad_only=False)
C.share_parameters(comm, parameters)
solver = S.Adam(0.01)
solver.set_parameters(nn.get_parameters())
shards = C.Shards(comm, parameters, 8, seed=3, loss=loss)
for step in range(n_steps):
    for shard in shards.step(step):
        rng = np.random.default_rng([step, shard])
        x.d, t.d = rng.standard_normal(x.shape), rng.integers(0, 3, t.shape)
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
    solver.update()
digest = hashlib.md5()
for name, v in sorted(parameters.items()):
    digest.update(name.encode() + np.ascontiguousarray(v.d).tobytes())
os.write(1, f"rank {comm.rank} of {comm.size}: {digest.hexdigest()}\\n".encode())
"""


def digests(size: int, n_steps: int, tmp_path: Path, *options: str, **variables: str) -> list[str]:
    path = tmp_path / "identity.py"
    path.write_text(IDENTITY)
    result = launch("-n", str(size), *options, path, str(n_steps), NN_CORE_DETERMINISTIC="1", **variables)
    assert result.returncode == 0, result.stdout + result.stderr
    found = [line.partition(": ")[2] for line in result.stdout.splitlines() if line.startswith("rank")]
    assert len(found) == size
    return found


@needs_mpi
def test_two_ranks_give_the_bits_of_one(tmp_path):
    assert len({*digests(1, 5, tmp_path), *digests(2, 5, tmp_path)}) == 1


@needs_mpi
@pytest.mark.slow
def test_any_number_of_ranks_gives_the_same_bits(tmp_path):
    assert len({digest for size in (1, 2, 4, 8) for digest in digests(size, 50, tmp_path)}) == 1


#: Starts commands on this machine under the name of the one that was asked for; mpiexec calls it in place of ssh.
AGENT = """#!/bin/sh
while case "$1" in -*) true ;; *) false ;; esac; do shift; done
host=$1; shift
echo $host >> "$NN_TEST_HOSTS"
exec unshare --uts /bin/sh -c "hostname $host; $*"
"""


@needs_mpi
@needs_names
@pytest.mark.slow
def test_two_machines_give_the_bits_of_one(tmp_path):
    agent, hosts = tmp_path / "agent", tmp_path / "hosts"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    names = {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": str(agent), "PRTE_MCA_plm_ssh_agent": str(agent)}
    found = digests(2, 5, tmp_path, "--hosts", "nodea,nodeb", NN_TEST_HOSTS=str(hosts), **names)
    assert sorted(hosts.read_text().split()) == ["nodea", "nodeb"]
    assert {*found, *digests(1, 5, tmp_path)} == {found[0]}


TRAINER = """
import hashlib, os, signal, sys
import numpy as np
import nn_core as nn, nn_core.functions as F, nn_core.parametric_functions as PF, nn_core.solvers as S
import nn_core.communicators as C
from nn_core.training import Checkpoint, Evaluator, Log, Trainer, Updater, every
from nn_core.utils.data_iterator import data_iterator_simple
out, epochs, victim = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
comm = C.MultiProcessCommunicator(nn.get_current_context())
comm.init()
nn.seed(0)
images = np.random.default_rng(0).standard_normal((32, 2, 6, 6)).astype(np.float32)
labels = np.arange(32)[:, None] % 3
x, t = nn.Variable((4, 2, 6, 6)), nn.Variable((4, 1))

def network(training):
    h = PF.convolution(x, 4, (3, 3), rng=np.random.RandomState(comm.rank))
    h = F.relu(PF.batch_normalization(h, batch_stat=training))
    y = PF.affine(F.dropout(h, 0.3) if training else h, 3, rng=np.random.RandomState(comm.rank))
    return F.mean(F.softmax_cross_entropy(y, t))

loss, validation = network(True), network(False)
solver = S.Adam(0.01)
solver.set_parameters(nn.get_parameters())
has_own_data = "OWN_DATA" in os.environ
nn.seed(comm.rank if has_own_data else 0)
start, length = (comm.rank * 20, (20, 12)[comm.rank]) if has_own_data else (0, 32)
rng = np.random.RandomState(2)
load = lambda i: (images[start + i], labels[start + i])
with data_iterator_simple(load, length, 4 if has_own_data else 16, shuffle=True, rng=rng) as data:
    shards, divided = 0 if has_own_data else 4, {name: True for name in os.environ.get("DIVIDED", "").split()}
    updater = Updater(data, [x, t], loss, solver, comm=comm, shards=shards, clip_norm=1.0, **divided)
    evaluator = Evaluator([images, labels], [x, t], {"loss": validation}, batch_size=4, comm=comm)
    trainer = Trainer(updater, every(epochs, "epoch"), out, [evaluator, Log(), Checkpoint()])
    mark = out + "/killed"
    if victim == comm.rank and not os.path.exists(mark):
        open(mark, "w").close()
        sign = signal.Signals(int(os.environ["SIGNAL"]))
        trainer.on(every(5))(lambda trainer: os.kill(os.getpid(), sign))
    trainer.run(resume=True)
digest = hashlib.md5()
for name, v in sorted(nn.get_parameters(grad_only=False).items()):
    digest.update(name.encode() + np.ascontiguousarray(v.d).tobytes())
os.write(1, f"rank {comm.rank} of {comm.size}: {digest.hexdigest()}\\n".encode())
"""


def trained(
    out: Path, size: int, *options: str, victim: int = -1, sign: int = 0, epochs: int = 5, **environment: str
) -> tuple[int, list[str]]:
    """Return the exit status, and the digests of the ranks; `victim` gets the signal `sign` in its fifth iteration."""
    path = out / "trainer.py"
    out.mkdir(exist_ok=True)
    path.write_text(TRAINER)
    arguments = ["-n", str(size), *options, path, str(out), str(epochs), str(victim)]
    result = launch(*arguments, NN_CORE_DETERMINISTIC="1", SIGNAL=str(sign), **environment)
    return result.returncode, [line.partition(": ")[2] for line in result.stdout.splitlines() if line.startswith("rank")]


@needs_mpi
def test_ranks_with_data_of_their_own_are_resumed_where_they_were(tmp_path):
    """Parts of 20 and 12 samples, dropout of each rank, and a batch normalization whose statistics are shared."""
    status, (expected, other) = trained(tmp_path / "whole", 2, OWN_DATA="1")
    assert (status, other) == (0, expected)
    for epochs in (2, 5):
        status, found = trained(tmp_path / "parts", 2, epochs=epochs, OWN_DATA="1")
    assert (status, found) == (0, [expected, expected])


@needs_mpi
def test_the_trainer_gives_the_same_bits_on_two_ranks(tmp_path):
    status, (expected,) = trained(tmp_path / "alone", 1)
    assert status == 0
    assert trained(tmp_path / "two", 2) == (0, [expected] * 2)
    assert (tmp_path / "two" / "log.jsonl").read_text().count("\n") == 5


@needs_mpi
@pytest.mark.slow
def test_divided_gradients_give_the_same_bits_on_any_number_of_ranks(tmp_path):
    """With dropout, batch normalization and clipping; and with data of each rank."""
    (expected,) = trained(tmp_path / "alone", 1)[1]
    for size in (2, 4):
        assert trained(tmp_path / str(size), size, DIVIDED="sharded_gradients") == (0, [expected] * size)
    whole = trained(tmp_path / "own", 2, OWN_DATA="1")
    assert trained(tmp_path / "own divided", 2, OWN_DATA="1", DIVIDED="sharded_gradients") == whole


@needs_mpi
@pytest.mark.slow
def test_the_trainer_gives_the_same_bits_after_signals(tmp_path):
    """Killed and started again, or told to stop and finished by one rank."""
    expected = trained(tmp_path / "alone", 1)[1][0]
    killed = trained(tmp_path / "killed", 2, "--restarts", "1", victim=1, sign=signal.SIGKILL)
    assert killed == (0, [expected] * 2)
    status, digests = trained(tmp_path / "stopped", 2, "--restarts", "1", victim=1, sign=signal.SIGTERM)
    assert status != 0 and not digests
    assert trained(tmp_path / "stopped", 1) == (0, [expected])


@needs_mpi
@pytest.mark.slow
def test_training_is_resumed_on_other_numbers_of_ranks(tmp_path):
    """Two epochs each on 4, 2, 1 and 4 ranks, one after the other from the checkpoints of the one before."""
    expected = trained(tmp_path / "alone", 1, epochs=8)[1]
    for number, size in enumerate((4, 2, 1, 4), 1):
        status, digests = trained(tmp_path / "parts", size, epochs=2 * number)
        assert status == 0 and len(digests) == size
    assert set(digests) == set(expected)


@needs_mpi
@pytest.mark.slow
def test_divided_states_are_resumed_on_other_ranks_and_after_a_kill(tmp_path):
    """On 4, 2, 1 and 4 ranks by turns; and on two, one of which is killed and all are started again."""
    expected = trained(tmp_path / "alone", 1, epochs=8)[1]
    for number, size in enumerate((4, 2, 1, 4), 1):
        divided = "sharded_states" if number % 2 else "sharded_gradients"
        status, digests = trained(tmp_path / "parts", size, epochs=2 * number, DIVIDED=divided)
        assert status == 0 and len(digests) == size
    assert set(digests) == set(expected)
    options = {"victim": 1, "sign": signal.SIGKILL, "epochs": 8, "DIVIDED": "sharded_gradients"}
    assert trained(tmp_path / "killed", 2, "--restarts", "1", **options) == (0, expected * 2)


@needs_tolerance
@pytest.mark.slow
@pytest.mark.parametrize(("size", "victim"), [(2, 1), (4, 2)])
def test_the_others_go_on_when_a_process_is_killed(size, victim, tmp_path):
    (expected,) = trained(tmp_path / "alone", 1)[1]
    status, digests = trained(tmp_path / "killed", size, "--elastic", victim=victim, sign=signal.SIGKILL)
    assert (tmp_path / "killed" / "killed").exists()
    assert (status, digests) == (0, [expected] * (size - 1))
    assert (tmp_path / "killed" / "log.jsonl").read_text().count("\n") == 5


@needs_tolerance
@pytest.mark.slow
@pytest.mark.parametrize(("size", "victim"), [(2, 1), (4, 2)])
def test_a_process_takes_the_place_of_a_killed_one(size, victim, tmp_path):
    (expected,) = trained(tmp_path / "alone", 1)[1]
    status, digests = trained(tmp_path / "killed", size, "--elastic", "--replace", victim=victim, sign=signal.SIGKILL)
    assert (tmp_path / "killed" / "killed").exists()
    assert (status, digests) == (0, [expected] * size)
    assert (tmp_path / "killed" / "log.jsonl").read_text().count("\n") == 5


@needs_tolerance
@pytest.mark.slow
def test_the_loss_of_rank_0_ends_the_job(tmp_path):
    expected = trained(tmp_path / "alone", 1)[1][0]
    status, digests = trained(tmp_path / "ended", 2, "--elastic", victim=0, sign=signal.SIGKILL)
    assert status != 0 and not digests
    again = trained(tmp_path / "again", 2, "--elastic", "--restarts", "1", victim=0, sign=signal.SIGKILL)
    assert again == (0, [expected] * 2)


TUTORIAL = """
import os
import nn_core as nn
import nn_core.communicators as C
from nn_core.ext_utils import get_extension_context
import nn_core.functions as F
from nn_core.initializer import calc_uniform_lim_glorot, UniformInitializer
import nn_core.parametric_functions as PF
import nn_core.solvers as S
import numpy as np
ctx = get_extension_context("cpu")
comm = C.MultiProcessDataParalellCommunicator(ctx)
comm.init()
n_devices, mpi_rank = comm.size, comm.rank
np.random.seed(mpi_rank)
n_class = 2
b, c, h, w = 4, 1, 32, 32
x_data = np.random.rand(b, c, h, w)
y_data = np.random.choice(n_class, b).reshape((b, 1))
x, y = nn.Variable(x_data.shape), nn.Variable(y_data.shape)
x.d, y.d = x_data, y_data
rng = np.random.RandomState(0)
w_init = UniformInitializer(calc_uniform_lim_glorot(1, 1 / 2, kernel=(1, 1)), rng=rng)
with nn.context_scope(ctx):
    h = PF.convolution(x, 1, (3, 3), (1, 1), (1, 1), w_init=w_init)
    pred = PF.affine(h, n_class, w_init=w_init)
    loss = F.mean(F.softmax_cross_entropy(pred, y))
solver = S.Adam()
solver.set_parameters(nn.get_parameters())
loss.forward()
solver.zero_grad()
loss.backward()
before = [v.g.copy() for v in nn.get_parameters().values()]
comm.all_reduce([v.grad for v in nn.get_parameters().values()], division=True)
after = [v.g.copy() for v in nn.get_parameters().values()]
solver.update()
changed = any((old != new).any() for old, new in zip(before, after))
os.write(1, f"rank {mpi_rank} {n_devices} {changed} {float(sum(g.sum() for g in after)).hex()}\\n".encode())
"""


@needs_mpi
@pytest.mark.slow
def test_the_tutorial_of_nnabla_runs(tmp_path):
    path = tmp_path / "tutorial.py"
    path.write_text(textwrap.dedent(TUTORIAL))
    result = launch("-n", "2", path)
    assert result.returncode == 0, result.stdout + result.stderr
    first, second = sorted(line.split() for line in result.stdout.splitlines() if line.startswith("rank"))
    assert first[:4] == ["rank", "0", "2", "True"] and second[:4] == ["rank", "1", "2", "True"]
    assert first[4] == second[4]


@needs_mpi
@pytest.mark.slow
def test_the_digits_are_learnt_alike_by_one_and_two(tmp_path):
    pytest.importorskip("sklearn")
    example = Path(__file__).parents[3] / "examples" / "digits_parallel.py"
    lines = []
    for size in (1, 2):
        result = launch("-n", str(size), example, "-e", "3", NN_CORE_DETERMINISTIC="1")
        assert result.returncode == 0, result.stdout + result.stderr
        lines.append(result.stdout.strip())
    (first, second) = [line.partition("processes: ")[2] for line in lines]
    assert first == second and "accuracy 9" in first
