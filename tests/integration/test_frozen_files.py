"""Files that released versions wrote are read for ever: a folder for each version, written once by `tools.release.freeze`."""

import json
import shutil

import numpy as np
import pytest
from packaging.version import Version

import nn_core as nn
import nn_core.solvers as S
from nn_core.files import FORMATS
from nn_core.training import load_checkpoint
from nn_core.utils.load import load
from tests.markdown import ROOT
from tools.release import freeze

FROZEN = ROOT / "tests" / "data" / "frozen"
VERSIONS = sorted(path.name for path in FROZEN.iterdir())
EXPECTED = {version: json.loads((FROZEN / version / "expected.json").read_text(encoding="utf-8")) for version in VERSIONS}


def files(pattern):
    """The frozen files of a kind, each with its version."""
    found = [(version, path.name) for version in VERSIONS for path in sorted((FROZEN / version).glob(pattern))]
    return pytest.mark.parametrize(("version", "name"), found, ids=lambda text: text)


@pytest.fixture(autouse=True)
def _alone():
    with freeze.alone():
        yield


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_files_of_this_version_are_frozen():
    assert str(Version(".".join(nn.__version__.split(".")[:2]))) in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_has_one_file_of_each_kind(version):
    names = {path.name for path in (FROZEN / version).iterdir()}
    states = {f"states_{name}.npz" for name in EXPECTED[version]["states"]} | {f"states_Adam{e}" for e in FORMATS}
    kinds = {f"parameters{extension}" for extension in FORMATS} | states | {*freeze.CHECKPOINTS, *freeze.NETWORKS, "run"}
    assert kinds <= names
    # what this version can write and no frozen folder has is to be frozen as well
    assert set(freeze.SOLVERS) <= {name for expected in EXPECTED.values() for name in expected["states"]}


@files("parameters.*")
def test_parameters(version, name):
    report = nn.load_parameters(FROZEN / version / name)
    loaded, expected = nn.get_parameters(grad_only=False), EXPECTED[version]["parameters"]
    assert list(loaded) == list(expected) == list(report.created)
    assert {key for key, variable in loaded.items() if not variable.need_grad} == {"conv/bn/mean"}
    for key, values in expected.items():
        assert loaded[key].shape == np.shape(values) or loaded[key].size == 0
        np.testing.assert_allclose(loaded[key].d, np.reshape(values, loaded[key].shape), rtol=1e-7)


@files("states_*")
def test_states_of_solvers(version, name):
    solver_name = name.partition("_")[2].partition(".")[0]
    expected, solver = EXPECTED[version]["states"][solver_name], getattr(S, solver_name)()
    freeze.updated(solver, expected["before"], ())
    solver.load_states(FROZEN / version / name)
    after = freeze.updated(solver, expected["before"], freeze.GRADIENTS[2:])
    for key, values in expected["after"].items():
        same(after[key].d, values)


@files("checkpoint.*")
def test_checkpoints(version, name):
    run = freeze.Run()
    values = load_checkpoint(FROZEN / version / name, **run.objects())
    assert values == {"iteration": 4, "note": "ü"}
    same(run.losses(3), EXPECTED[version]["checkpoints"])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_folder_of_a_trainer(version, tmp_path):
    shutil.copytree(FROZEN / version / "run", tmp_path / "run")
    run = freeze.Run()
    trainer = run.trainer(tmp_path / "run", 2)
    trainer.run(resume=True)
    assert trainer.iteration == 6
    same(run.losses(2), EXPECTED[version]["run"])


@files("network*")
def test_networks(version, name):
    pytest.importorskip("nn_ext_nnp")
    network = load(FROZEN / version / name).networks["net"]
    network.variables["x"].d = freeze.image()
    (output,) = network.outputs.values()
    output.forward()
    same(output.d, EXPECTED[version]["networks"])


def test_a_folder_is_written_once(tmp_path, capsys):
    assert freeze.main([str(tmp_path)]) == 1
    assert "never written again" in capsys.readouterr().err
