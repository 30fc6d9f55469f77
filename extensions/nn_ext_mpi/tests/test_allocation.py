"""Schedulers that have given machines to the job, and launchers that have started it already."""

import os
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from ranks import needs_mpi, needs_names, run

from nn_ext_mpi import command
from nn_ext_mpi.allocation import Allocation, find_allocation
from nn_ext_mpi.library import Found, find

MPICH = Found("MPICH Version: 5.0.2", "", Path("/env/bin/mpiexec"), "HYDRA build details:", ("mpich",))
OPEN_MPI = Found("Open MPI v5.0.11, package: x", "", Path("/env/bin/mpiexec"), "mpiexec (Open MPI) 5.0.11", ("openmpi",))
SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "node[1-2]"}


@pytest.fixture(autouse=True)
def _no_scheduler(monkeypatch):
    for name in os.environ:
        if name.startswith(("SLURM_", "OMPI_", "PMI_", "HYDRA_", "I_MPI_", "KUBERNETES_")) or name in ("WORLD_SIZE", "RANK"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({**SLURM, "SLURM_NTASKS": "6"}, Allocation("Slurm", 6, 2, ())),
        (SLURM, Allocation("Slurm", 2, 2, ())),
        ({"SLURM_JOB_ID": "7"}, None),
        ({"SLURM_JOB_NUM_NODES": "2"}, None),
    ],
)
def test_jobs_of_slurm_are_recognized(environment, expected):
    assert find_allocation(environment) == expected


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("OMPI_MCA_orte_default_hostfile", "train-worker-0.train.ns.svc slots=2\ntrain-worker-1.train.ns.svc slots=1\n"),
        ("HYDRA_HOST_FILE", "# machines\n\ntrain-worker-0.train.ns.svc:2\ntrain-worker-1.train.ns.svc\n"),
        ("I_MPI_HYDRA_HOST_FILE", "train-worker-0.train.ns.svc:2  # first\n  train-worker-1.train.ns.svc:1\n"),
    ],
)
def test_launchers_of_mpi_jobs_on_kubernetes_are_recognized(variable, text, tmp_path):
    (tmp_path / "hostfile").write_text(text)
    environment = {variable: str(tmp_path / "hostfile"), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    machines = ("train-worker-0.train.ns.svc:2", "train-worker-1.train.ns.svc:1")
    assert find_allocation(environment) == Allocation("Kubernetes", 3, 2, machines)


def test_unreadable_files_of_machines_are_told(tmp_path):
    with pytest.raises(click.ClickException, match=r"HYDRA_HOST_FILE must name a file of machines, got '/none' \(No such"):
        find_allocation({"HYDRA_HOST_FILE": "/none"})
    for text in ("", "a b c\n", "a:x\n"):
        (tmp_path / "hostfile").write_text(text)
        with pytest.raises(click.ClickException, match=r"must be a machine and its processes, 'a slots=2' or 'a:2', got \["):
            find_allocation({"HYDRA_HOST_FILE": str(tmp_path / "hostfile")})


def launched(monkeypatch, found, *arguments, **environment):
    """Run ``nn-core launch --dry-run``."""
    monkeypatch.setattr(command, "find", lambda: found)
    monkeypatch.setattr(command, "n_cores", lambda: 8)
    for name in ("NN_CORE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("UCX_NET_DEVICES", "FI_TCP_IFACE"):  # not set by the command then
        monkeypatch.setenv(name, "lo")
    options = ["--dry-run", "--root", *arguments, __file__]
    return CliRunner().invoke(command.launch, options, env=environment)


def test_the_scheduler_says_how_many_processes(monkeypatch, tmp_path):
    result = launched(monkeypatch, MPICH, **SLURM, SLURM_NTASKS="4")
    assert result.output.startswith("NN_CORE_NUM_THREADS=4 OMP_NUM_THREADS=4 /env/bin/mpiexec -n 4 ")
    assert "-hosts" not in result.output
    assert "-n 3 " in launched(monkeypatch, MPICH, "-n", "3", **SLURM, SLURM_NTASKS="4").output
    (tmp_path / "hostfile").write_text("a:2\nb:2\n")
    variables = {"HYDRA_HOST_FILE": str(tmp_path / "hostfile")}
    assert "NN_CORE_NUM_THREADS=4" in launched(monkeypatch, MPICH, **variables).output
    assert "/env/bin/mpiexec -n 4 -hosts a:2,b:2 " in launched(monkeypatch, MPICH, **variables).output
    assert " --host a:2,b:2 " in launched(monkeypatch, OPEN_MPI, **variables).output
    assert " -hosts c " in launched(monkeypatch, MPICH, "-n", "2", "--hosts", "c", **variables).output


def test_nobody_says_how_many_processes(monkeypatch):
    result = launched(monkeypatch, MPICH)
    assert result.exit_code == 2
    assert "-n must say how many processes, got none, and no scheduler that does: -n 2 PROGRAM" in result.output


@pytest.mark.parametrize(
    ("environment", "launcher"),
    [
        ({"WORLD_SIZE": "4", "RANK": "1", "LOCAL_RANK": "1", "MASTER_ADDR": "a", "MASTER_PORT": "29500"}, "torchrun"),
        (
            {"WORLD_SIZE": "4", "RANK": "1", "MASTER_ADDR": "job-master-0", "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            "Kubernetes",
        ),
        ({**SLURM, "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "1", "SLURM_LOCALID": "1"}, "Slurm's srun"),
    ],
)
def test_processes_that_were_started_already_start_no_others(environment, launcher, monkeypatch):
    if launcher == "torchrun":
        environment = {**environment, "TORCHELASTIC_RUN_ID": "none"}
    result = launched(monkeypatch, MPICH, "-n", "4", **environment)
    assert result.exit_code == 1
    assert f"must run once, got process 1 of the 4 that {launcher} has started\n  hint: let that launcher" in result.output


#: Runs the tasks of srun on this machine, with the variables that a task has.
SRUN = """#!/bin/sh
case "$1" in --version | -V) echo slurm 24.05.1; exit ;; esac
echo "$@" >> "$NN_TEST_SRUN"
nodes=1
while true; do
    case "$1" in
        -N) nodes=$2; shift 2 ;;
        -n | -w | --nodelist | --cpu-bind | --input) shift 2 ;;
        --ntasks=*) nodes=${1#--ntasks=}; shift ;;
        -*) shift ;;
        *) break ;;
    esac
done
task=0
while [ $task -lt $nodes ]; do
    SLURM_STEP_ID=0 SLURM_NODEID=$task SLURM_PROCID=$task SLURM_LOCALID=0 \\
        unshare --uts /bin/sh -c 'hostname $0; exec "$@"' node$((task + 1)) "$@" &
    task=$((task + 1))
done
wait
"""


@needs_mpi
@needs_names
@pytest.mark.slow
def test_a_job_of_slurm_runs_by_srun(tmp_path):
    """The machines of the job are simulated: its srun starts everything here."""
    if find().family == "Open MPI":
        pytest.skip("the ranks of Open MPI, which srun does start here, cannot tell the simulated machines apart")
    srun = tmp_path / "srun"
    srun.write_text(SRUN)
    srun.chmod(0o755)
    program = tmp_path / "program.py"
    program.write_text(
        "import os, numpy as np, nn_core as nn, nn_core.communicators as C\n"
        "comm = C.MultiProcessCommunicator(nn.Context())\n"
        "comm.init()\n"
        "x = nn.NdArray.from_numpy_array(np.ones(3))\n"
        "comm.all_reduce(x)\n"
        "os.write(1, f'rank {comm.rank} {comm.size} {x.data.tolist()}\\n'.encode())\n"
    )
    job = {**SLURM, "SLURM_JOBID": "7", "SLURM_NODELIST": "node[1-2]", "SLURM_NNODES": "2", "SLURM_TASKS_PER_NODE": "1(x2)"}
    calls, path = tmp_path / "calls", f"{tmp_path}:{os.environ['PATH']}"
    variables = {**job, "SLURM_NTASKS": "2", "NN_TEST_SRUN": str(calls), "PATH": path}
    result = run([sys.executable, "-m", "nn_core", "launch", "--root", str(program)], 100, **variables)
    assert result.returncode == 0, result.stdout + result.stderr
    assert sorted(line for line in result.stdout.splitlines() if line.startswith("rank")) == [
        "rank 0 2 [2.0, 2.0, 2.0]",
        "rank 1 2 [2.0, 2.0, 2.0]",
    ]
    assert "-N 2" in calls.read_text() or "--ntasks=2" in calls.read_text()
