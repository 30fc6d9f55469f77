"""Drawings of graphs, with and without Graphviz."""

import sys
import types
import webbrowser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import nn_core as nn
import nn_core.experimental.viewers as V
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError


@pytest.fixture
def leaf():
    nn.clear_parameters()
    x = nn.Variable((4, 3))
    x.name = "a<b"
    h = F.relu(PF.affine(x, 5, name="first"))
    return F.add2(h, PF.affine(h, 5, name="second"))


class Digraph:
    """The part of the package graphviz that SimpleGraph uses."""

    def __init__(self, **settings):
        self.format, self.nodes, self.pairs = settings["format"], {}, []

    def node(self, name, **attributes):
        self.nodes[name] = attributes

    def edges(self, pairs):
        self.pairs += pairs

    def render(self, path, view=False, cleanup=False):
        return f"{path}.{self.format} {view} {cleanup}"


@pytest.fixture
def graphviz(monkeypatch):
    module = types.ModuleType("graphviz")
    module.Digraph = Digraph
    module.__spec__ = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "graphviz", module)
    monkeypatch.setattr(V.shutil, "which", lambda name: name)


def without_graphviz(monkeypatch):
    monkeypatch.setitem(sys.modules, "graphviz", None)
    monkeypatch.setattr(V.shutil, "which", lambda name: None)


def test_the_language_of_graphviz(leaf):
    lines = V.graph_dot(leaf).splitlines()
    assert lines[0] == "digraph {"
    assert sum("->" in line for line in lines) == 3 + 1 + 3 + 2 + 4  # inputs of the functions, and their outputs
    assert any('label="Affine\\nfirst/affine"' in line for line in lines)
    assert any('label="W\\n(3, 5)", fillcolor="#f6d5d5"' in line for line in lines)
    assert "need_grad=True" in V.graph_dot(leaf, verbose=True)
    assert "base_axis=1" in V.graph_dot(leaf, verbose=True)


def test_a_page_shows_every_function_once(leaf):
    page = V.graph_page(leaf, title="net & co")
    assert "net &amp; co" in page
    assert "4 functions, 50 elements of parameters." in page
    body = ET.fromstring(page[page.index("<svg") : page.index("</body>")])
    space = "{http://www.w3.org/2000/svg}"
    boxes = body.findall(f"{space}g")
    assert [box.find(f"{space}text").text for box in boxes] == ["a<b", "Affine", "ReLU", "Affine", "Add2"]
    rects = [box.find(f"{space}rect") for box in boxes]
    places = [(int(rect.get("x")), int(rect.get("y"))) for rect in rects]
    assert len(set(places)) == 5
    heights = [y for _, y in places]
    assert heights == sorted(heights)  # each function below those that it reads from
    assert len(body.findall(f"{space}path")) == 5
    assert "W (3, 5)" in page


def test_variables_without_functions():
    x = nn.Variable((2,))
    assert '"v0"' in V.graph_dot(x)
    assert "0 functions" in V.graph_page(x)
    with pytest.raises(ArgumentError, match="the end of a graph must be a Variable, got"):
        V.graph_dot("x")


def test_pictures(leaf, graphviz, tmp_path):
    viewer = V.SimpleGraph("svg", fname_color_map={"ReLU": "green"}, vname_color_map={"b": "blue"})
    drawn = viewer.create_graphviz_digraph(leaf)
    assert drawn.format == "svg"
    colors = {attributes["label"]: attributes["fillcolor"] for attributes in drawn.nodes.values()}
    assert colors["ReLU"] == "green"
    assert colors["b\n(5,)"] == "blue"
    assert len(drawn.pairs) == 13
    assert viewer.save(leaf, tmp_path / "a", cleanup=True) == f"{tmp_path / 'a'}.svg False True"
    assert viewer.view(leaf, tmp_path / "a", format="png", params={}) == f"{tmp_path / 'a'}.png True True"


def test_without_graphviz(leaf, monkeypatch, tmp_path):
    without_graphviz(monkeypatch)
    with pytest.raises(ArgumentError, match="pictures need the package graphviz"):
        V.SimpleGraph().save(leaf, tmp_path / "a")
    for kind, text in (("html", "<svg"), ("dot", "digraph")):
        path = V.SimpleGraph().save(leaf, tmp_path / "a", format=kind)
        assert path == str(tmp_path / f"a.{kind}")
        assert text in Path(path).read_text(encoding="utf-8")
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert V.SimpleGraph().view(leaf, tmp_path / "b") == str(tmp_path / "b.html")
    assert opened == [(tmp_path / "b.html").as_uri()]


def test_without_the_program(leaf, graphviz, monkeypatch, tmp_path):
    monkeypatch.setattr(V.shutil, "which", lambda name: None)
    with pytest.raises(ArgumentError, match="format 'png' needs the program dot of Graphviz"):
        V.SimpleGraph().save(leaf, tmp_path / "a")
