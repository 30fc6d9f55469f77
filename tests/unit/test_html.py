"""Objects in notebooks: well-formed HTML with what matters, and no text that is taken for markup."""

import math
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core import layers
from nn_core.data.array_sources import ArrayDataSource
from nn_core.engine.runtime.html import curves
from nn_core.errors import ArgumentError
from nn_core.experimental.viewers import SimpleGraph
from nn_core.training import fit
from nn_core.utils.data_iterator import data_iterator
from nn_core.utils.data_source import TransformedDataSource


def parsed(value: object) -> ElementTree.Element:
    text: str = value._repr_html_()  # type: ignore[attr-defined]
    return ElementTree.fromstring(f"<div>{text.replace('<br>', '<br/>')}</div>")


def words(value: object) -> str:
    return " ".join(parsed(value).itertext())


def test_modules_are_trees() -> None:
    net = nn.Sequential(layers.Affine(3), nn.Sequential(F.relu, lambda x: x), layers.Affine(2))
    net(nn.Variable((4, 5)))
    page = parsed(net)
    assert len(page.findall(".//details")) == 2
    assert [node.text for node in page.findall("./details/div/div")] == [
        "affine_0: Affine(3), 18 parameters",
        "affine_2: Affine(2), 8 parameters",
    ]
    assert "Lambda(<lambda>)" in words(net)
    assert words(layers.ReLU()) == "ReLU(), 0 parameters"


def test_solvers_and_summaries_are_tables() -> None:
    solver = S.Momentum(0.25)
    solver.set_parameters({"w": nn.Variable((2,), need_grad=True)})
    assert all(text in words(solver) for text in ("Momentum", "lr", "0.25", "parameters 1"))
    table = nn.summary(nn.Sequential(layers.Affine(3)), (4, 5))
    assert len(parsed(table).findall(".//tr")) == 3 and "18" in words(table)


def test_results_of_fit_have_curves() -> None:
    x, t = np.eye(4, dtype=np.float32), np.arange(4)
    result = fit(nn.Sequential(layers.Affine(4)), (x, t), (x, t), epochs=5, progress=False)
    page = parsed(result)
    assert [len(line.get("points", "").split()) for line in page.iter("polyline")] == [5, 5]
    assert "validation/accuracy" in words(result)


def test_explanations_are_tables_with_their_notes() -> None:
    y = F.relu(nn.Variable((2, 3)))
    found = words(nn.explain(y))
    assert all(text in found for text in ("ReLU in", "->", "reference:float"))
    nobody = nn.explain("relu")
    assert "has a kernel, which may refuse a call" in words(nobody)


def test_sources_and_iterators_say_what_they_read() -> None:
    source = ArrayDataSource({"<x>": np.zeros((6, 2)), "t": np.zeros(6)}, shuffle=True)
    assert all(text in words(source) for text in ("ArrayDataSource", "samples 6", "<x>, t", "shuffled True"))
    transformed = TransformedDataSource(source, lambda rng, x, t: (x, t))
    assert "reads ArrayDataSource" in words(transformed)
    with data_iterator(source, 4) as iterator:
        iterator.next()
        found = words(iterator)
    assert all(text in found for text in ("DataIterator of", "batch size 4", "given in this epoch 4"))


def test_a_graph_is_a_page_within_the_page() -> None:
    y = F.tanh(nn.Variable((2, 3)))
    (frame,) = parsed(SimpleGraph().inline(y, height=200)).iter("iframe")
    assert "Tanh" in frame.get("srcdoc", "") and frame.get("height") == "200"
    with pytest.raises(ArgumentError, match=r"SimpleGraph\.inline: height must be a whole number of at least 1, got 0"):
        SimpleGraph().inline(y, height=0)


class Notebook(SimpleNamespace):
    """IPython in a notebook: keeps what it displays."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        super().__init__(get_ipython=lambda: SimpleNamespace(kernel=object()))

    def display(self, html: str, display_id: bool) -> "Notebook":
        assert display_id
        self.shown.append(html)
        return self

    def update(self, html: str) -> None:
        self.shown.append(html)


def test_a_notebook_has_a_bar_below_the_cell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=notebook.display))
    x, t = np.eye(4, dtype=np.float32), np.arange(4)
    fit(nn.Sequential(layers.Affine(4)), (x, t), epochs=3)
    first, *_, last = [ElementTree.fromstring(shown) for shown in notebook.shown]
    bars = [next(page.iter("progress")).attrib for page in (first, last)]
    assert bars == [{"value": "0", "max": "3"}, {"value": "3", "max": "3"}]
    assert "loss=" in "".join(last.itertext())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [math.nan, 1.0, math.inf]])
def test_curves_of_few_or_equal_values(values: list[float]) -> None:
    picture = ElementTree.fromstring(curves({"<loss>": values}).replace("<br>", "<br/>"))
    (line,) = picture.iter("polyline")
    points = line.get("points", "").split()
    assert len(points) == sum(map(math.isfinite, values))
    assert "nan" not in line.get("points", "") and curves({"loss": [math.nan]}) == ""
