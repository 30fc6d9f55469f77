"""Whoever reads a graph after a leaf has got another shape finds what a graph finds that was built for this shape."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import GraphError, ShapeError
from nn_core.training import Evaluator, fit
from nn_core.utils.save import save
from tools.lanes.mixed_operands import CASES, LAYER_CASES, Case, flat, variable

_OLD, _NEW = (4, 3), (7, 3)


def _computed_from(leaf: nn.Variable, values: Any) -> nn.Variable:
    return F.mul_scalar(leaf, 1.0) if values.dtype.kind == "f" else F.identity(leaf)


def _fresh(values: Any) -> nn.Variable:
    return _computed_from(variable(np.asarray(values)), np.asarray(values))


def _stale(values: Any) -> nn.Variable:
    """A result whose leaf has got its shape afterwards; nobody has read a shape since."""
    values = np.asarray(values)
    leaf = nn.Variable([length + 1 for length in values.shape])
    result = _computed_from(leaf, values)
    leaf.reset_shape(values.shape, True)
    leaf.d = values
    return result


@pytest.mark.parametrize("case", [*CASES, *LAYER_CASES], ids=str)
def test_functions_take_results_whose_shape_is_about_to_change(case: Case) -> None:
    results = []
    for operand in (_fresh, _stale):
        nn.seed(7)
        nn.clear_parameters()
        made = flat(case.call(*map(operand, case.values)))
        shapes = [result.shape for result in made]
        nn.forward_all(made)
        assert shapes == [result.d.shape for result in made]
        results.append([result.d.copy() for result in made])
    for fresh, stale in zip(*results, strict=True):
        np.testing.assert_array_equal(stale, fresh)


class _Graph:
    """Two layers and a loss on samples."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.x = nn.Variable(shape, need_grad=True)
        self.h = F.tanh(self.x * 0.5)
        self.y = F.affine(self.h, nn.Variable.from_numpy_array(np.eye(3, 2)))
        self.flat = F.reshape(self.y, (-1,))
        self.loss = F.mean(self.y**2)

    def give(self) -> None:
        self.x.d = np.arange(self.x.size).reshape(self.x.shape) / 10


def _computed(*results: nn.Variable) -> list[Any]:
    nn.forward_all(list(results))
    return [result.d.tolist() for result in results]


def _gradients(graph: _Graph) -> list[Any]:
    return _computed(*nn.grad([graph.flat], [graph.x], grad_outputs=2.0))


def _grown_loss(graph: _Graph) -> list[Any]:
    graph.y.need_grad = True
    total = F.sum(graph.y) / graph.y.shape[0] + graph.loss
    (value,) = _computed(total)
    graph.x.grad.zero()
    total.backward()
    return [value, graph.x.g.tolist()]


def _evaluated(graph: _Graph) -> Any:
    return Evaluator((np.ones(_NEW, np.float32),), [graph.x], {"loss": graph.loss}, batch_size=_NEW[0]).evaluate()


def _saved(graph: _Graph) -> str:
    path = Path("network.nntxt")
    names = {"x": graph.x}
    network = {"name": "net", "batch_size": _NEW[0], "outputs": {"y": graph.y, "flat": graph.flat}, "names": names}
    save(str(path), {"networks": [network]}, variable_batch_size=False, include_params=True)
    return path.read_text()


def _visited(graph: _Graph) -> list[Any]:
    found: list[Any] = []
    graph.loss.visit(lambda f: found.append((f.name, [v.shape for v in f.inputs], f.info.args)))
    return found


def _settings(graph: _Graph) -> Any:
    return graph.flat.parent.info.args, graph.flat.parent.inputs[0].shape, graph.flat.parent.outputs[0].shape


def _forwarded(graph: _Graph) -> Any:
    graph.give()
    return _computed(graph.y, graph.flat, graph.loss)


def _backward(graph: _Graph) -> Any:
    graph.x.grad.zero()
    graph.loss.forward()
    graph.loss.backward()
    return graph.x.g.tolist(), graph.h.grad.shape


def _copied(graph: _Graph) -> Any:
    copy = graph.y.no_grad()
    return copy.shape, _computed(copy)


def _unlinked(graph: _Graph) -> Any:
    other = graph.h.get_unlinked_variable(need_grad=False)
    return other.shape, graph.y.shape


def _rewired(graph: _Graph) -> Any:
    h = F.relu(graph.x)
    graph.h.rewire_on(h)
    return _computed(graph.y)


def _called_again(graph: _Graph) -> Any:
    return _computed(graph.y.parent.applied_to(graph.h, graph.y.parent.inputs[1]))


def _indexed(graph: _Graph) -> Any:
    return _computed(graph.y[-1], graph.y[::2], graph.y @ np.ones((2, 1)), graph.y.reshape((-1,), unlink=False))


def _assigned(graph: _Graph) -> Any:
    graph.y.d = np.ones(graph.y.shape)
    graph.y.data = nn.NdArray(graph.y.shape)
    return graph.y.d.shape, graph.y.grad.shape


#: Readers of a graph, beside functions.
READERS: Final[Mapping[str, Callable[[_Graph], Any]]] = {
    "shape": lambda graph: [v.shape for v in (graph.loss, graph.flat, graph.y, graph.h)],
    "ndim and size": lambda graph: (graph.y.ndim, graph.y.size, graph.y.size_from_axis(1), graph.flat.size_from_axis()),
    "data": lambda graph: (graph.y.data.shape, graph.y.grad.shape, graph.h.data.size),
    "repr": lambda graph: [repr(v) for v in (graph.y, graph.flat)],
    "html": lambda graph: graph.y._repr_html_(),
    "length": lambda graph: len(graph.y),
    "parent": _settings,
    "visit": _visited,
    "summary": lambda graph: str(nn.summary(graph.y)),
    "explain": lambda graph: str(nn.explain(graph.y)),
    "grad": _gradients,
    "a loss that is built later": _grown_loss,
    "Evaluator": _evaluated,
    "save": _saved,
    "forward": _forwarded,
    "backward": _backward,
    "no_grad": _copied,
    "unlinked": _unlinked,
    "rewire_on": _rewired,
    "applied_to": _called_again,
    "index": _indexed,
    "assign": _assigned,
}


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("reader", READERS)
def test_readers(reader: str, computed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fresh, stale = _Graph(_NEW), _Graph(_OLD)
    if computed:
        stale.give()
        stale.loss.forward()
    stale.x.reset_shape(_NEW, True)
    for graph in (fresh, stale):
        graph.x.data.zero()
    assert READERS[reader](stale) == READERS[reader](fresh)


def test_values_of_another_shape_are_refused_until_they_are_computed() -> None:
    graph = _Graph(_OLD)
    graph.loss.forward()
    graph.loss.backward()
    graph.x.reset_shape(_NEW, True)
    for read in (lambda: graph.y.d, graph.y.numpy, lambda: graph.y.data.data, lambda: np.from_dlpack(graph.y)):
        with pytest.raises(GraphError, match=r"of shape \(7, 2\) must be computed before (it|this) is read"):
            read()
    with pytest.raises(GraphError, match="call forward"):
        graph.loss.backward()
    graph.give()
    graph.loss.forward()
    assert graph.y.d.shape == (7, 2)


def test_showing_a_graph_whose_shapes_do_not_fit_raises_nothing() -> None:
    graph = _Graph(_OLD)
    graph.y.forward()
    graph.x.reset_shape((4, 5), True)
    assert "(4, 2)" in repr(graph.y)
    assert "(4, 2)" in graph.y._repr_html_()
    assert graph.y.parent.name == "Affine"
    with pytest.raises(ShapeError, match="affine: weight must have as many rows as x has features, got 3 and 5"):
        _ = graph.y.shape
    graph.x.reset_shape(_OLD, True)
    graph.y.forward()
    assert graph.y.shape == (4, 2)


def test_dynamic_results_keep_what_they_were_computed_for() -> None:
    x = nn.Variable.from_numpy_array(np.ones(_OLD))
    with nn.auto_forward():
        h = x * 2
        parts = F.split(h, axis=1)  # several results: no call that a trace follows
    x.reset_shape(_NEW, True)
    assert h.shape == _OLD
    assert h.d.tolist() == [[2] * 3] * 4
    assert parts[0].shape == (4,)
    assert parts[0].d.tolist() == [2] * 4


def test_functions_whose_shape_follows_from_values_wait_for_the_next_pass() -> None:
    x = nn.Variable.from_numpy_array(np.array([1.0, 0.0, 2.0]))
    found = F.bool_gather(x, F.greater_scalar(x, 0.5))
    y = found * 2
    y.forward()
    before = y.shape
    x.reset_shape((5,), True)
    assert y.shape == before
    x.d = np.array([3.0, 0.0, 4.0, 5.0, 6.0])
    y.forward()
    assert y.shape == y.d.shape != before


def test_functions_in_python_say_their_shapes_to_readers() -> None:
    class Twice(nn.PythonFunction):
        def min_outputs(self) -> int:
            return 1

        def setup_impl(self, inputs: Any, outputs: Any) -> None:
            outputs[0].reset_shape(inputs[0].shape * 2, True)

        def forward_impl(self, inputs: Any, outputs: Any) -> None:
            outputs[0].d = 1

    x = nn.Variable(_OLD)
    y = F.sum(Twice()(x), axis=0)
    x.reset_shape(_NEW, True)
    assert y.shape == (3, 7, 3)


def test_a_fit_is_evaluated_more_than_once() -> None:
    x, t = np.ones((100, 3), np.float32), np.zeros(100, np.int64)
    trained = fit(lambda x: PF.affine(x, 2), (x, t), epochs=1, progress=False)
    assert trained.evaluate((x, t)) == trained.evaluate((x, t))
    assert trained.predict(x[:7]).shape == (7, 2)


def test_an_export_has_the_present_shapes(tmp_path: Path) -> None:
    exporter = pytest.importorskip("nn_ext_onnx")
    onnx = pytest.importorskip("onnx")
    graph = _Graph(_OLD)
    graph.loss.forward()
    graph.x.reset_shape(_NEW, True)
    exporter.export(tmp_path / "net.onnx", {"y": graph.flat}, {"x": graph.x})
    (output,) = onnx.load(tmp_path / "net.onnx").graph.output
    assert [axis.dim_value for axis in output.type.tensor_type.shape.dim] == [14]
