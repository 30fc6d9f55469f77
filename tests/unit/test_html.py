"""Objects in notebooks: well-formed HTML with what matters, and no text that is taken for markup."""

import math
from xml.etree import ElementTree

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core import layers
from nn_core.engine.runtime.html import curves
from nn_core.training import fit


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


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [math.nan, 1.0, math.inf]])
def test_curves_of_few_or_equal_values(values: list[float]) -> None:
    picture = ElementTree.fromstring(curves({"<loss>": values}).replace("<br>", "<br/>"))
    (line,) = picture.iter("polyline")
    points = line.get("points", "").split()
    assert len(points) == sum(map(math.isfinite, values))
    assert "nan" not in line.get("points", "") and curves({"loss": [math.nan]}) == ""
