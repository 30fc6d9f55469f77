"""Every hostile package ends in a message that names the plugin and the remedy, and the rest works."""

import builtins
import contextlib
import contextvars
import gc
import importlib
import linecache
import os
import re
import subprocess
import sys
import threading
import time
import traceback
import types

import numpy as np
import pytest

import nn_core as nn
import nn_core.ext
import nn_core.functions as F
from nn_core import __main__
from nn_core.engine.dispatch import doctor, examination, guard, import_audit, loader, missing
from nn_core.engine.dispatch import plugin_manager as plugins_module
from nn_core.engine.dispatch.module_names import Names
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.plugin_record import State
from nn_core.engine.dispatch.sights import SIGHTS, Streams
from nn_core.engine.runtime import installed
from nn_core.engine.runtime.registrations import recorded
from nn_core.errors import NNCoreError, PluginError
from nn_core.settings import Settings
from nn_core.testing.hostile import HEAD, HOSTILE, Hostile
from nn_core.testing.hostile import install as install_package
from tests.slow import some_slow

BYSTANDER = """
@kernel("bystander.Twice")
def twice(xp, x):
    return 2 * x

@hookimpl
def nn_core_functions():
    return [FunctionPackage(spec=SPEC)]

SPEC = '''
- name: bystander.Twice
  api: bystander_twice
  topic: arithmetic
  doc: Twice.
  inputs: {x: {doc: Input.}}
  outputs: {y: {doc: Output.}}
  shape: same_as x
  backward: {none: a test}
'''
"""


def of_stage(*stages, one_of=1):
    """Parametrize a test by the hostile packages of some stages, all but one of so many marked as slow."""
    chosen = [hostile for hostile in HOSTILE if hostile.stage in stages]
    return pytest.mark.parametrize("hostile", some_slow(chosen, one_of), ids=lambda hostile: hostile.does.replace(" ", "-"))


class Patient(guard.Clock):
    """A timer that ends when a hostile package hangs, however long a busy machine needs to get there."""

    def __init__(self, _, function):
        super().__init__(0, function)
        self._function, self._watched, self._cancelled = function, threading.get_ident(), threading.Event()

    def cancel(self):
        self._cancelled.set()

    def run(self):
        while not self._cancelled.wait(0.01):
            frame = sys._current_frames()[self._watched]
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno or 0)  # a frame may be at no line
            if "nn_ext_hostile" in frame.f_code.co_filename and re.search(r"while True|sleep\(|lock\.acquire", line):
                self._function()
                return


@pytest.fixture
def with_hostile(tmp_path, monkeypatch, install):
    """Installs a hostile package beside a sound one, for the plugins of the process."""
    assert __main__.main.commands

    def prepare(hostile):
        install("bystander", BYSTANDER)
        PLUGINS.refresh()
        PLUGINS.module("bystander")
        for module in (plugins_module, loader):
            monkeypatch.setattr(module, "settings", lambda: Settings(plugin_timeout=60))
        if "must end within" in hostile.message:
            linecache.clearcache()
            monkeypatch.setattr(guard, "Clock", Patient)
        install_package(tmp_path / "hostile", hostile)
        monkeypatch.syspath_prepend(tmp_path / "hostile")
        PLUGINS.refresh()

    before = set(sys.modules)
    yield prepare
    monkeypatch.undo()
    for name in ("hostile", "bystander"):
        if name in PLUGINS._plugins:
            PLUGINS._unload(PLUGINS._plugins[name])
    PLUGINS.refresh()
    for name in set(sys.modules) - before:
        if name.startswith("nn_ext_hostile"):
            del sys.modules[name]


def the_rest_works():
    """Operators of the core and of another plugin."""
    x = nn.NdArray.from_numpy_array(np.full((2, 3), 0.5, np.float32))
    with nn.context_scope(nn.Context(["reference"])):
        np.testing.assert_allclose(F.tanh(x).data, np.tanh(0.5), rtol=1e-6)
        np.testing.assert_array_equal(F.bystander_twice(x).data, np.ones((2, 3)))
        np.testing.assert_array_equal(F.bystander.twice(x).data, np.ones((2, 3)))


def run_operator():
    """Forward and backward of the operator that some packages bring."""
    x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32), need_grad=True)
    x.g = 0
    with nn.context_scope(nn.Context(["reference"])):
        y = F.hostile_op(x)
        y.forward()
        y.backward()


def test_there_are_enough_of_them():
    assert len(HOSTILE) >= 40
    assert len({hostile.does for hostile in HOSTILE}) == len(HOSTILE)


@of_stage("load", one_of=3)
def test_a_plugin_that_cannot_be_loaded(with_hostile, hostile, caplog):
    with_hostile(hostile)
    before = recorded()
    with pytest.raises(PluginError, match=f"(?s){hostile.message}") as caught:
        PLUGINS.module("hostile")
    assert "plugin 'hostile' (nn-ext-hostile 1.0): must load, got: " in str(caught.value)
    assert "hint: nn-core doctor says more; pip install --upgrade nn-ext-hostile, or pip uninstall" in str(caught.value)
    assert recorded() == before
    assert "hostile_op" not in dir(F)
    assert "nn_ext_hostile" not in sys.modules
    assert PLUGINS.state("hostile") is State.BROKEN
    the_rest_works()


@of_stage("backend")
def test_a_backend_that_cannot_be_used(with_hostile, hostile):
    with_hostile(hostile)
    with pytest.raises(PluginError, match=f"(?s)plugin 'hostile' .*{hostile.message}"):
        PLUGINS.backend("hostile")
    x = nn.NdArray.from_numpy_array(np.zeros((2,), np.float32))
    with nn.context_scope(nn.Context(["hostile", "reference"])):
        np.testing.assert_array_equal(F.cos(x).data, [1, 1])
    the_rest_works()


@of_stage("run")
def test_an_operator_that_does_not_do_what_it_should(with_hostile, hostile):
    with_hostile(hostile)
    with pytest.raises((NNCoreError, ZeroDivisionError)) as caught:
        run_operator()
    text = "".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert re.search(f"(?s){hostile.message}", text), text
    if sys.version_info >= (3, 11):
        assert "hostile" in "".join(traceback.format_exception_only(caught.value))
    the_rest_works()


@of_stage("target")
def test_a_target_that_cannot_be_imported(with_hostile, hostile):
    with_hostile(hostile)
    with pytest.raises(PluginError, match=f"(?s)solver 'HostileSolver' of plugin 'hostile': .*{hostile.message}"):
        nn.solvers.HostileSolver  # noqa: B018  # looking it up imports it
    the_rest_works()


#: Modules that a program has imported, as ours have, before it asks for a plugin.
IMPORTED = (
    "asyncio",
    "decimal",
    "faulthandler",
    "json",
    "multiprocessing",
    "numpy.lib.stride_tricks",
    "socket",
    "tempfile",
    "time",
)


@pytest.fixture
def process():
    """Call it to begin to watch everything that importing a plugin must leave; call the result to see what differs by now."""
    copies = []

    def watch():
        for name in IMPORTED:
            importlib.import_module(name)
        gc.unfreeze()
        before, names, streams = [(sight, sight.read()) for sight in SIGHTS if sight.restore], Names(), Streams()
        copies.append(streams)
        return lambda: [
            *(sight.what for sight, old in before if old != sight.read()),
            *(one.label for one in names.replaced()),
            *streams.changes(),
        ]

    yield watch
    for streams in copies:
        streams.close()


def outside_scopes(function, *args):
    """Call a function outside of the scopes of the tests, where the default context can be set."""
    return contextvars.Context().run(function, *args)


@of_stage("strict", one_of=4)
def test_strict_mode_refuses_what_does_more_than_being_imported(with_hostile, hostile, monkeypatch, process):
    with_hostile(hostile)
    monkeypatch.setattr(loader, "settings", lambda: Settings(strict=True))
    changed = process()
    with pytest.raises(PluginError, match=f"(?s)strict mode: importing .* free of work, got: .*{hostile.message}"):
        outside_scopes(PLUGINS.module, "hostile")
    assert not changed()


@of_stage("strict", one_of=7)
def test_the_doctor_shows_what_does_more_than_being_imported(with_hostile, hostile, monkeypatch, process):
    with_hostile(hostile)
    seen = []

    def observe(run, package):
        seen.append(import_audit_observe(run, package))
        return seen[-1]

    import_audit_observe = import_audit.observe
    monkeypatch.setattr(import_audit, "observe", observe)
    changed = process()
    (finding, *_) = outside_scopes(lambda: list(doctor.findings("hostile", PLUGINS, watched=True)))
    # the doctor looks in a process of its own, which ends
    outside_scopes(seen[0].restore)
    assert finding.name == "hostile"
    assert any(re.search(hostile.message, remark) for remark in finding.remarks), finding.remarks
    assert not changed()


#: Changes that `KeepingOurs` puts back in every mode, since all results depend on it.
OF_ALL_RESULTS = ("sets the default context", "switches auto_forward", "takes small numbers for zero", "rounds up")


@pytest.mark.parametrize("hostile", [pytest.param(h, id=h.does) for h in HOSTILE if h.does in OF_ALL_RESULTS])
def test_importing_a_plugin_never_changes_results(with_hostile, hostile, caplog, process):
    with_hostile(hostile)
    changed = process()
    with contextlib.suppress(PluginError):  # it has no hook
        outside_scopes(PLUGINS.module, "hostile")
    assert not changed()
    assert f"importing a plugin must not change {hostile.message.partition(' ')[2]}" in caplog.text


def test_importing_a_plugin_never_changes_how_nn_core_computes(with_hostile, caplog):
    body = "import nn_core\nnn_core.set_auto_forward(True)\nnn_core.set_num_threads(7)\n"
    with_hostile(Hostile(does="", body=body + "@hookimpl\ndef nn_core_solvers():\n    return []\n", stage="load", message=""))
    mode, threads = nn.get_auto_forward(), nn.num_threads()
    PLUGINS.module("hostile")
    assert (nn.get_auto_forward(), nn.num_threads()) == (mode, threads)
    assert "importing a plugin must not change modes and contexts of nn_core; they are what they were" in caplog.text
    assert "importing a plugin must not change settings of nn_core; they are what they were" in caplog.text


def test_importing_a_plugin_never_changes_builtins(with_hostile, caplog):
    body = "import builtins\n@hookimpl\ndef nn_core_solvers():\n    return []\n"
    body += "builtins.sorted = builtins.isinstance = len\nbuiltins.hostile = 1\ndel builtins.setattr\n"
    with_hostile(Hostile(does="", body=body, stage="load", message=""))
    before = dict(vars(builtins))
    PLUGINS.module("hostile")
    assert dict(vars(builtins)) == before
    assert "importing a plugin must not change builtins.hostile; they are what they were" in caplog.text


def test_a_hook_of_a_plugin_never_changes_functions(with_hostile, caplog):
    body = "@hookimpl\ndef nn_core_solvers():\n    import nn_core.functions as F\n    F.relu = None\n    return []\n"
    with_hostile(Hostile(does="", body=body, stage="load", message=""))
    before = F.relu
    PLUGINS.module("hostile")
    assert F.relu is before
    assert "importing a plugin must not change nn_core.functions.relu" in caplog.text


def test_a_plugin_never_lowers_the_recursion_limit(with_hostile, caplog):
    body = "import sys\nsys.setrecursionlimit(400)\n@hookimpl\ndef nn_core_solvers():\n    return []\n"
    with_hostile(Hostile(does="", body=body, stage="load", message=""))
    before = sys.getrecursionlimit()
    PLUGINS.module("hostile")
    assert sys.getrecursionlimit() == before
    assert "importing a plugin must not change the recursion limit" in caplog.text


def test_a_plugin_that_fails_leaves_no_import_hook(with_hostile):
    body = "import sys\nclass Closed:\n    @staticmethod\n    def find_spec(name, path=None, target=None):\n"
    body += "        raise ImportError('closed')\nsys.meta_path.insert(0, Closed)\nraise RuntimeError('later')\n"
    with_hostile(Hostile(does="", body=body, stage="load", message=""))
    before = list(sys.meta_path)
    with pytest.raises(PluginError, match="RuntimeError: later"):
        PLUGINS.module("hostile")
    assert sys.meta_path == before


@pytest.mark.parametrize("stated", ["5", "b'>=0.1'", "'===1|sh|'", "'>=99,' * 1000"])
def test_a_range_of_versions_that_is_none_is_no_part_of_a_hint(with_hostile, stated):
    head = f"from nn_core.ext import *\nPLUGIN_API = 2\nREQUIRES_CORE = {stated}\n"
    with_hostile(Hostile(does="", body="", head=head, stage="load", message=""))
    with pytest.raises(PluginError, match=r"REQUIRES_CORE must be a version range such as '>=0.1,<1', got") as refused:
        PLUGINS.module("hostile")
    assert "pip install 'nn-core" not in str(refused.value)


def test_functions_to_call_at_exit_are_unregistered():
    program = """
import atexit
from nn_core.engine.dispatch.exit_functions import AtExit
atexit.register(print, "of the program")
AtExit.listen("__main__")
atexit.register(print, "of the plugin")
atexit.register(print)
AtExit.leave()
before = AtExit.count()
AtExit.forget()
print(before - AtExit.count())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "2\nof the program\n"


def test_what_a_library_calls_at_exit_is_not_told_of_the_plugin_that_imports_it(with_hostile, tmp_path, monkeypatch):
    with_hostile(Hostile(does="", body="import a_library_of_others\n", stage="load", message=""))
    (tmp_path / "a_library_of_others.py").write_text("import atexit, weakref\natexit.register(int)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    remarks = import_audit.observe(lambda: importlib.import_module("nn_ext_hostile"), "nn_ext_hostile")
    assert not remarks.changes
    del sys.modules["a_library_of_others"], sys.modules["nn_ext_hostile"]
    remarks = import_audit.observe(lambda: importlib.import_module("nn_ext_hostile"), "a_library_of_others")
    assert remarks.changes == ("changes functions to call at exit",)
    remarks.restore()


def test_names_of_ours_and_modules_are_put_back_in_every_mode(with_hostile, caplog, monkeypatch):
    body = (
        "import nn_core.functions\nnn_core.functions.relu.__defaults__ = (True,)\n"
        "import sys, json\nsys.modules['json'] = sys\nsys.modules['wave'] = sys.modules['nobody_has_it'] = type(sys)('x')\n"
        "@hookimpl\ndef nn_core_solvers():\n    return []\n"
    )
    with_hostile(Hostile(does="", body=body, stage="load", message=""))
    before = F.relu.__defaults__, sys.modules["json"]
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    PLUGINS.module("hostile")
    assert importlib.import_module("wave").__spec__ is not None and sys.modules.pop("nobody_has_it")
    assert (F.relu.__defaults__, sys.modules["json"]) == before
    assert "must not change sys.modules['wave']; they are what they were" in caplog.text
    assert "must not change the code of nn_core.functions.activation.relu" in caplog.text


#: Loads each plugin in a process of its own, forked from one that has imported nn_core.
LOAD_EACH = """
import os, sys
from nn_core.engine.dispatch.plugin_manager import PLUGINS

for name in sys.argv[1:]:
    if os.fork() == 0:
        failure = PLUGINS.plugin(name).failure
        if failure:
            print(f"{name}: {failure.reason}", file=sys.stderr, flush=True)
        os._exit(bool(failure))
sys.exit(sum(os.wait()[1] for _ in sys.argv[1:]) > 0)
"""


def test_our_own_plugins_load_in_strict_mode():
    names = sorted({name for name in installed.entry_points() if name in installed.OWN_PLUGINS})
    command = [sys.executable, "-c", LOAD_EACH, *names]
    done = subprocess.run(
        command, env={**os.environ, "NN_CORE_STRICT": "1"}, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@of_stage("process")
def test_the_doctor_survives_what_takes_the_interpreter_down(with_hostile, hostile, monkeypatch):
    with_hostile(hostile)
    monkeypatch.setattr(examination, "settings", lambda: Settings(plugin_timeout=0.1))
    monkeypatch.setattr(examination, "_START_S", 4.0 if "must end within" in hostile.message else 300.0)
    (finding,) = doctor._examined("hostile")
    assert finding.state is State.BROKEN
    assert re.search(hostile.message, finding.reason), finding.reason
    assert finding.advice == "pip install --upgrade nn-ext-hostile, or pip uninstall nn-ext-hostile"
    the_rest_works()


@pytest.mark.slow
def test_the_doctor_says_what_importing_does(with_hostile):
    body = "import time\ntime.sleep(0.15)\nprint('Welcome!')\n" + next(
        h.body for h in HOSTILE if h.does == "raises in its kernel"
    )
    with_hostile(Hostile(does="", body=body, stage="load", message=""))
    (finding,) = doctor._examined("hostile")
    assert finding.state is State.LOADED and finding.reason == "functions: hostile.Op"
    assert finding.remarks[0] == "prints 'Welcome!'"
    assert finding.remarks[1].startswith("importing took ")


@pytest.mark.parametrize(
    ("does", "advice"),
    [
        ("needs an absent plugin", "install the plugin that it needs, or pip uninstall nn-ext-hostile"),
        ("needs what is not installed", "pip install --upgrade nn-ext-hostile, or install what provides a_library_that"),
        ("was written for another core", "pip install 'nn-core>=99', or pip install --upgrade nn-ext-hostile"),
        ("was written for another API", "pip install --upgrade nn-core"),
        ("states no API", "pip install --upgrade nn-ext-hostile"),
        ("has no gradient", '@gradient("hostile.Op") in a module that the plugin imports, or state the reason'),
        ("raises in a hook", "pip install --upgrade nn-ext-hostile, or pip uninstall nn-ext-hostile"),
    ],
)
def test_the_advice_of_the_doctor_fits_the_case(with_hostile, does, advice):
    (hostile,) = [h for h in HOSTILE if h.does == does]
    with_hostile(hostile)
    (finding,) = doctor.findings("hostile", PLUGINS, watched=False)
    assert finding.advice.startswith(advice)


def test_a_plugin_that_was_repaired_loads_after_a_refresh(with_hostile, tmp_path):
    (broken,) = [h for h in HOSTILE if h.does == "fails after it registered"]
    with_hostile(broken)
    with pytest.raises(PluginError):
        PLUGINS.module("hostile")
    (tmp_path / "hostile" / "nn_ext_hostile.py").write_text(HEAD + broken.body.partition("@hookimpl\ndef nn_core_b")[0])
    PLUGINS.refresh()
    run_operator()


# Interrupts.

CTRL_C = """
import signal
from nn_core.engine.dispatch.guard import guarded
try:
    guarded("plugin", 60, lambda: signal.raise_signal(signal.SIGINT))
except KeyboardInterrupt:
    print("stopped by the user")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_ctrl_c_of_the_user_stays_ctrl_c():
    result = subprocess.run([sys.executable, "-c", CTRL_C], capture_output=True, text=True, check=False)
    assert result.stdout == "stopped by the user\n", result.stderr


def test_a_deadline_reaches_other_threads():
    caught = []

    def work():
        try:
            guard.guarded("plugin 'x'", 0.2, lambda: [None for _ in iter(int, 1)])
        except PluginError as error:
            caught.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert caught == ["plugin 'x': must end within 0.2 s, got no end"]


def test_deadlines_within_deadlines_end_the_right_one():
    def inner():
        return guard.guarded("inner", 10, lambda: time.sleep(5))

    with pytest.raises(PluginError, match=r"outer: must end within 0.2 s"):
        guard.guarded("outer", 0.2, inner)
    assert guard.guarded("outer", 60, lambda: 3) == 3


# Blocking.


def test_a_blocked_plugin_is_absent_and_says_why(with_hostile, monkeypatch):
    with_hostile(Hostile(does="", body="raise SystemExit", stage="load", message=""))
    monkeypatch.setattr(installed, "settings", blocked := (lambda: Settings(plugins=("-hostile",))))
    for module in (missing, doctor):
        monkeypatch.setattr(module, "settings", blocked)
    PLUGINS.refresh()
    with pytest.raises(nn.errors.BackendNotFoundError, match=r"(?s)got 'hostile'.*hint: NN_CORE_PLUGINS blocks it: rem"):
        PLUGINS.backend("hostile")
    (finding,) = doctor._examined("hostile")
    assert finding.state is State.BLOCKED and finding.advice == "to use it, remove -hostile from it"
    monkeypatch.setattr(installed, "settings", lambda: Settings(plugins=("+bystander",)))
    PLUGINS.refresh()
    assert PLUGINS.names() == ["bystander", "reference"]


# Checked calls.


class Careless:
    """A kernel of y = 2 x that leaves something out, or does something more."""

    def __init__(self, fault):
        self.fault = fault

    def refuse(self, call):
        return None

    def forward(self, call):
        return self.run

    def backward(self, call, wanted):
        def run(x, y, dy, dx):
            dx[...] = 2 * dy
            if self.fault == "changes a gradient":
                dy[...] = 0
            if self.fault == "leaves a gradient":
                dx.view(np.int32)[0] = np.int32(-1515870811)

        return run

    def run(self, x, y):
        if self.fault == "leaves an output":
            y[1:] = 2 * x[1:]
            return
        y[...] = 2 * x
        if self.fault == "changes an input":
            x[0] = 7


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("nothing", ""),
        ("leaves an output", "kernel of plugin 'careless': a kernel must write all of its outputs, got 3 elements unwritten"),
        ("changes an input", "kernel of plugin 'careless': a kernel must not change its inputs, got array 0 changed"),
        ("changes a gradient", "kernel of plugin 'careless': a kernel must not change its inputs, got array 2 changed"),
        ("leaves a gradient", "a kernel must write all of its outputs, got 3 elements unwritten"),
    ],
)
def test_calls_of_kernels_are_checked_when_asked_to(monkeypatch, fault, message):
    module = types.ModuleType("careless")
    exec(f"from nn_core.ext import *\n{HEAD}", vars(module))
    package = module.FunctionPackage(overlays={"reference": {"Tanh": Careless(fault)}})
    module.nn_core_functions = module.hookimpl(lambda: [package])
    nn.ext.register(module)
    monkeypatch.setattr("nn_core.engine.graph.call.settings", lambda: Settings(check_kernels=True))
    PLUGINS.forget_prepared()
    try:
        x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32), need_grad=True)
        x.g = 0
        with nn.context_scope(nn.Context(["reference"])):
            y = F.tanh(x)
            if message:
                with pytest.raises(PluginError, match=message):
                    y.forward()
                    y.backward()
            else:
                y.forward()
                y.backward()
                np.testing.assert_array_equal(y.d, np.full((2, 3), 2))
                np.testing.assert_array_equal(x.g, np.full((2, 3), 2))
    finally:
        monkeypatch.undo()
        nn.ext.unregister("careless")


class Forgetful:
    """A kernel of y = 2 x that writes all of y when it is first called, and one row less in each further call."""

    def refuse(self, call):
        return None

    def forward(self, call):
        calls = iter(range(100))

        def run(x, y):
            rows = len(x) - next(calls)
            y[:rows] = 2 * x[:rows]

        return run

    def backward(self, call, wanted):
        return None


class Bound(Forgetful):
    """The same as a step that is bound to its arrays."""

    def forward(self, call):
        def run(x, y):
            y[...] = 2 * x

        run.bind = lambda x, y: lambda: None
        return run


@pytest.fixture
def overlaid(request):
    """A plugin with a kernel of Tanh for the reference backend."""
    module = types.ModuleType("careless")
    exec(f"from nn_core.ext import *\n{HEAD}", vars(module))
    package = module.FunctionPackage(overlays={"reference": {"Tanh": request.param}})
    module.nn_core_functions = module.hookimpl(lambda: [package])
    nn.ext.register(module)
    PLUGINS.forget_prepared()
    with nn.context_scope(nn.Context(["reference"])):
        yield
    nn.ext.unregister("careless")


@pytest.mark.parametrize("overlaid", [Careless("leaves an output")], indirect=True)
@pytest.mark.parametrize("auto", [False, True])
def test_a_kernel_of_a_plugin_that_leaves_out_an_output_is_refused_in_any_case(overlaid, auto):
    message = "tanh on backend 'reference', kernel of plugin 'careless': a kernel must write all of its outputs, got 3"
    with nn.auto_forward(auto), pytest.raises(PluginError, match=message) as caught:
        F.tanh(nn.Variable.from_numpy_array(np.ones((2, 3), np.float32))).forward()
    assert "of plugin 'careless'" in caught.value.__notes__[0]


@pytest.mark.parametrize("overlaid", [Careless("leaves a gradient")], indirect=True)
def test_a_kernel_of_a_plugin_that_leaves_out_a_gradient_is_refused_in_any_case(overlaid):
    x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32), need_grad=True)
    y = F.tanh(x)
    y.forward()
    with pytest.raises(PluginError, match="got 3 elements unwritten"):
        y.backward()


@pytest.mark.parametrize("overlaid", [Forgetful()], indirect=True)
def test_what_a_kernel_of_a_plugin_leaves_out_in_a_later_call_shows_as_nan(overlaid):
    x = nn.NdArray.from_numpy_array(np.full((3, 1), 2, np.float32))
    for expected in ([4, 4, 4], [4, 4, np.nan], [4, np.nan, np.nan], [np.nan] * 3):
        np.testing.assert_array_equal(F.tanh(x).data.ravel(), expected)


@pytest.mark.parametrize("overlaid", [Forgetful()], indirect=True)
def test_what_a_kernel_of_a_plugin_leaves_out_when_a_graph_is_run_again_shows_what_the_graph_has_computed(overlaid):
    y = F.tanh(nn.Variable.from_numpy_array(np.full((3, 1), 2, np.float32)))
    y.forward()
    y.forward()
    assert np.isnan(y.d[2]) and y.d[:2].tolist() == [[4], [4]]
    y.forward()
    assert y.d[1] == 4


class Failing(Forgetful):
    """A kernel that fails in its second call."""

    def forward(self, call):
        calls = iter(range(1))

        def run(x, y):
            y[...] = x
            next(calls)

        return run


@pytest.mark.parametrize("overlaid", [Failing()], indirect=True)
def test_a_failure_of_a_bound_step_names_the_plugin(overlaid):
    y = F.tanh(nn.Variable.from_numpy_array(np.ones((2, 3), np.float32)))
    y.forward()
    with pytest.raises(PluginError, match="of plugin 'careless': must not raise StopIteration"):
        y.forward()


@pytest.mark.parametrize("overlaid", [Bound()], indirect=True)
def test_a_bound_step_of_a_plugin_that_writes_nothing_shows_nan(overlaid):
    y = F.tanh(nn.Variable.from_numpy_array(np.ones((2, 3), np.float32)))
    y.forward()  # a graph that is used once binds no steps
    assert y.d.tolist() == [[2, 2, 2]] * 2
    y.forward()
    assert np.isnan(y.d).all()


def test_checked_kernels_give_the_same_results(monkeypatch):
    monkeypatch.setattr("nn_core.engine.graph.call.settings", lambda: Settings(check_kernels=True))
    PLUGINS.forget_prepared()
    x = nn.Variable.from_numpy_array(np.array([1.0, 2.0], np.float32), need_grad=True)
    x.g = 1
    with nn.context_scope(nn.Context(["reference"])):
        y = F.sum(x * x + F.exp(x) + x)  # three gradients add up in place
        for _ in range(3):
            y.forward()
            y.backward()
    np.testing.assert_allclose(x.g, 1 + 3 * (2 * x.d + np.exp(x.d) + 1), rtol=1e-6)
    monkeypatch.undo()
    PLUGINS.forget_prepared()
