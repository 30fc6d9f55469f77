"""The example with one extension of every kind: each is found, imported when used, and does what it says."""

import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import __main__, ext, initializer
from nn_core.engine.dispatch.kinds import KINDS
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.scaffold.stubs import functions_stub
from nn_core.utils import learning_rate_scheduler
from tests.markdown import ROOT

FOLDER = ROOT / "examples" / "plugin_kinds"


@pytest.mark.usefixtures("kinds")
def test_there_is_one_of_every_kind_and_describing_them_imports_none():
    for kind in KINDS:
        assert [name for name in ext.list_offers(kind) if name.startswith("kinds.")], kind
    assert "nn_ext_kinds.solvers" not in sys.modules
    assert "nn_ext_kinds.commands" not in sys.modules


@pytest.mark.usefixtures("kinds")
def test_parameters_are_saved_as_json_and_the_command_reads_them(tmp_path):
    path = tmp_path / "weights.jsonw"
    PF.affine(nn.Variable((2, 3)), 4)
    before = {name: parameter.d.copy() for name, parameter in nn.get_parameters().items()}
    nn.save_parameters(path)
    nn.clear_parameters()
    nn.load_parameters(path)
    assert {name: parameter.shape for name, parameter in nn.get_parameters().items()} == {
        "affine/W": (3, 4),
        "affine/b": (4,),
    }
    for name, values in before.items():
        np.testing.assert_array_equal(nn.get_parameters()[name].d, values)
    assert "Print the sizes of saved parameters." in CliRunner().invoke(__main__.main, ["--help"]).output
    assert CliRunner().invoke(__main__.main, ["sizes", str(path)]).output == "affine/W (3, 4)\naffine/b (4,)\n"


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize("multi_tensor", [True, False])
def test_the_layer_is_trained_by_the_solver(multi_tensor):
    from nn_core.settings import without

    with nn.context_scope(nn.Context(["reference"])), without(*([] if multi_tensor else ["multi_tensor"])):
        y = F.sum(PF.kinds_scale(nn.Variable.from_numpy_array(np.ones((2, 3), np.float32))))
        solver = S.SignSgd(0.5)
        solver.set_parameters(nn.get_parameters())
        y.forward()
        solver.zero_grad()
        y.backward()
        solver.update()
    np.testing.assert_allclose(nn.get_parameters()["scale/w"].d, [[0.5, -1.5, 0.5]])


@pytest.mark.usefixtures("kinds")
def test_the_multi_tensor_kernel_of_the_plugin_is_taken():
    assert PLUGINS.offers.update_kernel("reference", "SignSgd") == (None, "")
    _ = S.SignSgd
    kernel = sys.modules["nn_ext_kinds.solvers"].SIGN_SGD
    assert PLUGINS.offers.update_kernel("reference", "SignSgd") == (kernel, "kinds")


@pytest.mark.usefixtures("kinds")
def test_the_others_do_what_they_say():
    assert initializer.CheckerInitializer(2)((2, 2)).tolist() == [[2, -2], [2, -2]]
    rates = [learning_rate_scheduler.TriangleScheduler(1.0, 2).get_learning_rate(i) for i in range(5)]
    assert rates == [0, 0.5, 1, 0.5, 0]
    source = ext.find_extension("data", "CountingSource")(3)
    assert [source.next()[0] for _ in range(3)] == [0, 1, 2]
    comm = nn.communicators.Communicator(engine="counted")
    comm.init()
    comm.engine.all_reduce(np.ones(1))
    assert (comm.size, comm.engine.sums) == (1, 1)


@pytest.mark.usefixtures("kinds")
def test_the_composite_follows_shapes_and_computes_at_once_beside_an_ndarray():
    x = nn.Variable.from_numpy_array(np.arange(6, dtype=np.float32).reshape(2, 3), need_grad=True)
    y = F.kinds_mean_square(x)
    y.forward()
    np.testing.assert_allclose(y.d, [5 / 3, 50 / 3], rtol=1e-6)
    x.reset_shape((1, 2), force=True)
    x.d = [[1, 3]]
    y.forward()
    np.testing.assert_allclose(y.d, [5], rtol=1e-6)
    assert F.kinds.mean_square is F.kinds_mean_square and {"kinds_mean_square"} <= {*dir(F.kinds)} & {*dir(F)}
    array = F.kinds_mean_square(nn.NdArray.from_numpy_array(np.full((1, 4), 2.0, np.float32)))
    assert isinstance(array, nn.NdArray) and array.data.tolist() == [4.0]


@pytest.mark.usefixtures("kinds")
def test_the_stub_of_functions_imports_the_composite():
    assert "from nn_ext_kinds.functions import mean_square as kinds_mean_square" in functions_stub()


@pytest.mark.usefixtures("kinds")
def test_the_overlay_runs_what_it_takes():
    x = nn.NdArray.from_numpy_array(np.array([-1.5, 2], np.float32))
    PLUGINS.forget_prepared()
    with nn.context_scope(nn.Context(["reference"])):
        np.testing.assert_array_equal(F.abs(x).data, [1.5, 2])
        explanation = nn.explain("abs", nn.Context(["reference"]))
    assert len(explanation.answers) == 2
    overlay = PLUGINS.extra_kernels("reference", "Abs")[0]
    assert [type(kernel).__name__ for kernel in overlay] == ["Abs"]


def test_importing_the_plugin_imports_nothing_of_the_core_but_the_door():
    code = "import nn_ext_kinds.plugin, sys; print('nn_core.solvers' in sys.modules, 'click' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=FOLDER, env={"PYTHONPATH": str(FOLDER)}, capture_output=True, text=True, check=True
    )
    assert result.stdout == "False False\n"


def test_the_guide_names_every_hook_and_every_description():
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    for kind in KINDS.values():
        assert f"`{kind.hook}`" in text and f"`{kind.info.__name__}`" in text
