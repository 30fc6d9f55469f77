"""The programs of examples/tasks run, and docs/tasks.md counts their tokens."""

import contextvars
import importlib.util
import runpy

import pytest

import nn_core as nn
from nn_core import context, settings
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from tools.site.tasks import PAGE, is_longer, page, tasks, tokens_of

TASKS = {task.ours.stem: task for task in tasks()}
OTHERS = {path.stem: (key, path) for task in TASKS.values() for key, path in task.peers.items()}
#: The packages that programs of other frameworks need beside the framework.
COMPANIONS = {
    "export_onnx_torch": ("onnxscript", "onnxruntime"),
    "export_onnx_keras": ("onnxscript", "onnxruntime"),
    "image_folder_torch": ("torchvision", "PIL"),
    "pytorch_weights_torch": ("safetensors",),
    "summary_torch": ("torchinfo",),
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
@pytest.mark.parametrize("name", OTHERS)
def test_the_program_of_the_other_framework_runs(name, tmp_path, monkeypatch):
    framework, path = OTHERS[name]
    _require("torch", framework, *COMPANIONS.get(name, ()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    import torch

    threads = torch.get_num_threads()
    torch.manual_seed(0)
    try:
        runpy.run_path(str(path), run_name="task")
    finally:
        torch.set_num_threads(threads)
        if framework == "keras":
            import keras

            keras.mixed_precision.set_global_policy("float32")


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.site.tasks"


def test_thirty_of_our_programs_have_no_more_tokens_than_the_shortest_of_the_others():
    counts = {name: task.counts() for name, task in TASKS.items()}
    longer = {name for name, found in counts.items() if is_longer(found)}
    assert len(counts) - len(longer) >= 30, longer


def test_tokens_are_those_of_the_code():
    docstring, imports, call = '"""Doc\nstring."""\n', "import a  # why\n\n# comment\n", "x = f(\n    1,\n)\n"
    function = 'def g():\n    """Doc."""\n    return "a", 2\n'
    assert tokens_of(docstring + imports + call + function) == 2 + 7 + 5 + 4
