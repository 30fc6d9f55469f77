"""The examples in docstrings of public functions and classes run and give what they say."""

import ast
import contextvars
import doctest
import functools
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.initializer as I
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import context, settings
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.runtime import registrations
from nn_core.engine.runtime.caches import _CACHES
from nn_core.operators.spec.builtin import SPECS
from tests.markdown import ROOT

#: Names that examples take for granted, as the documentation does.
NAMES = {"nn": nn, "np": np, "F": F, "PF": PF, "S": S, "I": I}
OPERATORS = {spec.api for spec in SPECS}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def _public(module):
    names = {name for name in dir(module) if name[0] != "_"} - set(PLUGINS.names_of("functions"))
    return {name: getattr(module, name) for name in sorted(names) if callable(getattr(module, name))}


def _documented(module):
    return {name: thing for name, thing in _public(module).items() if inspect.isroutine(thing) or inspect.isclass(thing)}


def _has_example(name, thing):
    # the examples of operators are those of function_spec.yaml, see functions/test_examples.py
    return ">>> " in (inspect.getdoc(thing) or "") or ("Example:" in (inspect.getdoc(thing) or "") and name in OPERATORS)


def _modules():
    for path in sorted((ROOT / "nn_core").glob("**/*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name.removesuffix(".__init__")


def _entries():
    """Yield the names of the objects in the reference pages, which mkdocstrings shows, by page."""
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        for entry in re.findall(r"(?m)^::: (\S+)$", page.read_text(encoding="utf-8")):
            yield pytest.param(entry, id=f"{page.stem}-{entry.rpartition('.')[2]}")


@functools.cache
def _texts_of_the_reference():
    """Return docstrings whose examples run without the names of their module, which a test of its own sees to."""
    return {inspect.getdoc(pkgutil.resolve_name(entry.values[0])) for entry in _entries()}


def _docstrings(module):
    """Return docstrings with prompts in the source of a module, by what they describe, but for those of the reference."""
    tree = ast.parse(inspect.getsource(module))
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module))]
    found = ((getattr(node, "name", "the module"), ast.get_docstring(node) or "") for node in nodes)
    return [(name, text) for name, text in found if ">>> " in text and text not in _texts_of_the_reference()]


@pytest.fixture
def _outside_of_scopes(tmp_path, monkeypatch):
    """Run examples as in a new program: no open scope, the default context, and nothing left over."""
    monkeypatch.chdir(tmp_path)
    default = contextvars.Context().run(nn.get_current_context)
    threads = list(settings._NUM_THREADS)
    context._current.set_default(nn.Context(["reference:float"]))
    caches, rules = dict(_CACHES), registrations.recorded()
    yield
    context._current.set_default(default)
    settings._NUM_THREADS[:] = threads
    registrations.undo(entry for entry in registrations.recorded() if entry not in rules)
    for name in _CACHES.keys() - caches.keys():
        del _CACHES[name]


@pytest.mark.parametrize("module", [nn, F, PF, S, I], ids=["nn", "F", "PF", "S", "initializer"])
def test_everything_public_has_an_example(module):
    assert [name for name, thing in _documented(module).items() if not _has_example(name, thing)] == []


@pytest.mark.usefixtures("_outside_of_scopes")
@pytest.mark.parametrize("name", list(_modules()))
def test_the_examples_of_the_module_run(name):
    module = importlib.import_module(name)
    for described, text in _docstrings(module):
        report = contextvars.Context().run(_run, text, {**vars(module), **NAMES}, f"{name}.{described}")
        assert not report, "".join(report)


def _run(text, names, title):
    """Run the prompts of a docstring; returns what went wrong."""
    nn.clear_parameters()
    nn.seed(0)
    report = []
    test = doctest.DocTestParser().get_doctest(text, names, title, title, 0)
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    nn.clear_parameters()
    return report


@pytest.mark.usefixtures("_outside_of_scopes")
@pytest.mark.parametrize("entry", list(_entries()))
def test_the_entry_of_the_reference_has_an_example_that_runs_as_it_stands(entry):
    thing = pkgutil.resolve_name(entry)
    text = inspect.getdoc(thing) or ""
    assert ">>> " in text
    names = {**NAMES, entry.rpartition(".")[2]: thing}
    report = contextvars.Context().run(_run, text, names, entry)
    assert not report, "".join(report)
