"""The programs of examples/tasks run, and docs/tasks.md counts their lines."""

import contextvars
import importlib.util
import runpy

import pytest

import nn_core as nn
from nn_core import context, settings
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from tools.site.tasks import PAGE, lines_of, page, tasks

TASKS = {task.ours.stem: task for task in tasks()}
#: The packages that programs of other frameworks need beside the framework.
COMPANIONS = {
    "export_onnx": ("onnxscript", "onnxruntime"),
    "image_folder": ("torchvision", "PIL"),
    "pytorch_weights": ("safetensors",),
    "summary": ("torchinfo",),
}
OURS_NEED = {"export_onnx": ("nn_ext_onnx", "onnxruntime"), "image_folder": ("PIL",), "sequences": ("nn_ext_contrib",)}


def _require(*packages):
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the program needs {package}")


@pytest.mark.parametrize("name", TASKS)
def test_our_program_runs(name, tmp_path, monkeypatch):
    _require(*OURS_NEED.get(name, ()))
    monkeypatch.chdir(tmp_path)
    threads = list(settings._NUM_THREADS)
    plugins = set(PLUGINS.names())
    try:
        contextvars.Context().run(_run, TASKS[name].ours)
    finally:
        settings._NUM_THREADS[:] = threads
        for plugin in set(PLUGINS.names()) - plugins:
            PLUGINS.unregister(plugin)


def _run(path):
    """Run a program as a new process does: without scopes, on the reference backend, with the first random numbers."""
    default = nn.get_current_context()
    context._current.set_default(nn.Context(["reference:float"]))
    try:
        nn.seed(0)
        runpy.run_path(str(path), run_name="task")
    finally:
        nn.clear_parameters()
        context._current.set_default(default)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", TASKS)
def test_the_program_of_the_other_framework_runs(name, tmp_path, monkeypatch):
    task = TASKS[name]
    _require("torch", task.framework, *COMPANIONS.get(name, ()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    import torch

    threads = torch.get_num_threads()
    torch.manual_seed(0)
    try:
        runpy.run_path(str(task.peer), run_name="task")
    finally:
        torch.set_num_threads(threads)


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.site.tasks"


def test_most_of_our_programs_are_no_longer_than_the_others():
    counts = {name: [lines_of(path.read_text(encoding="utf-8")) for path in (t.ours, t.peer)] for name, t in TASKS.items()}
    assert len(counts) >= 25
    longer = {name for name, (ours, theirs) in counts.items() if ours > theirs}
    assert len(counts) - len(longer) >= 20, longer


def test_lines_are_statements():
    program = (
        '"""Doc\nstring."""\n\nimport a  # why\n\n# comment\nx = f(\n    1,\n)\n\n\n'
        'def g():\n    """Doc."""\n    return """one\n\ntwo\n"""\n'
    )
    assert lines_of(program) == 4 + 2  # import, x, def, return; and the string has two lines between its first and its last
