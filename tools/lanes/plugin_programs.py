"""Programs that come to the parts of `faulty_plugin`, for the lane `plugins`."""

import io
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

import nn_core as nn
import nn_core.communicators as C
import nn_core.functions
import nn_core.initializer
import nn_core.monitor
import nn_core.parametric_functions
import nn_core.solvers as S
import nn_core.utils.data_source
import nn_core.utils.learning_rate_scheduler
from nn_core.data.source import SimpleDataSource
from nn_core.data.table import CsvDataSource
from nn_core.engine.graph import plugin_fusion
from nn_core.experimental.graph_converters import GraphConverter
from nn_core.ext import Entry, trace_calls
from nn_core.files.formats import read_entries, write_entries
from nn_core.settings import without
from nn_core.training import Trainer, Updater, every
from nn_core.utils.data_iterator import data_iterator, data_iterator_simple
from nn_core.utils.inspection import view

#: Modules whose attributes the plugin adds, which no checker knows.
F: Any = nn_core.functions
PF: Any = nn_core.parametric_functions
initializer: Any = nn_core.initializer
monitor: Any = nn_core.monitor
data_source: Any = nn_core.utils.data_source
learning_rate_scheduler: Any = nn_core.utils.learning_rate_scheduler


def leaf() -> nn.Variable:
    """Return a variable of few numbers that have gradients."""
    return nn.Variable.from_numpy_array(np.arange(6, dtype=np.float32).reshape(2, 3) / 4, need_grad=True)


def _in(*backends: str) -> Any:
    return nn.context_scope(nn.Context(list(backends), "FaultyArray" if "faulty" in backends[0] else ""))


def _forward(times: int = 1) -> Any:
    with _in("faulty"):
        v = leaf()
        y = F.faulty_negate(v)
        for _ in range(times):
            y.forward()
        return y.d.copy(), v.d.copy()


def _at_once() -> Any:
    with _in("faulty"), nn.auto_forward():
        return F.faulty_negate(leaf()).d.copy()


def _backward() -> Any:
    with _in("faulty"):
        v = leaf()
        v.g = 0
        y = F.sum(F.faulty_negate(v))
        y.forward()
        y.backward()
        return y.d.copy(), v.g.copy()


def _differentiated() -> Any:
    v = leaf()
    (g,) = nn.grad([F.faulty_negate(v)], [v])
    g.forward()
    return g.d.copy()


def _named_space() -> Any:
    with _in("faulty"):
        y = F.sigmoid(leaf())
        y.forward()
        return y.d.copy()


def _referenced() -> Any:
    with _in("reference"):
        v = leaf()
        h = v * 2
        y, z = F.sum(F.faulty_negate(h)), F.sum(h * 3)
        nn.forward_all([y, z])
        return y.d.copy(), z.d.copy()


def _fused() -> Any:
    plugin_fusion._TOLD.clear()
    with _in("reference"):
        y = F.relu(F.sigmoid(leaf()))
    y.forward(clear_buffer=True)
    return y.d.copy()


def _overlaid(times: int = 1) -> Any:
    with _in("reference"):
        v = leaf()
        y, z = F.sinh(v), v * 3
        for _ in range(times):
            nn.forward_all([y, z])
        return y.d.copy(), z.d.copy()


def _explained() -> Any:
    with _in("faulty"):
        found = nn.explain(F.faulty_negate(leaf()), nn.get_current_context())
        logging.getLogger("nn_core").debug("%s", str(found).partition("notes() of backend ")[2])
        return found.winner is not None


def _trained(name: str) -> Any:
    with _in("reference"), without(*([] if "Many" in name else ["multi_tensor"])):
        w = leaf()
        solver = getattr(S, name)()
        solver.set_parameters({"w": w})
        loss = F.sum(w * w)
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.update()
        return w.d.copy(), w.g.copy()


def _communicated() -> Any:
    comm = C.Communicator(engine="faulty")
    comm.init()
    values = np.ones(3)
    comm.engine.all_reduce(values)
    comm.engine.barrier()
    return values


def _drawn() -> Any:
    with nn.parameter_scope("", scope={}):
        w = nn.parameter.get_parameter_or_create("w", (2, 3), initializer.FaultyOnes())
        return w.d.copy()


def _scheduled() -> Any:
    scheduler = learning_rate_scheduler.FaultyScheduler()
    return [scheduler.get_learning_rate(i) for i in range(3)]


def _scheduled_solver() -> Any:
    w = leaf()
    w.g = 1
    solver = S.Sgd(0.5)
    solver.set_parameters({"w": w})
    solver.set_learning_rate(learning_rate_scheduler.FaultyScheduler().get_learning_rate(1))
    solver.update()
    return w.d.copy()


def _iterated(cache: str | None = None) -> Any:
    source = SimpleDataSource(lambda i: (np.float32(i),), 4) if cache else data_source.FaultySource()
    with data_iterator(source, 2, use_thread=False, cache=cache) as samples:
        return [np.ravel(samples.next()[0]) for _ in range(2)]


def _cells() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.faulty").write_text("")
        Path(folder, "t.csv").write_text("x,y\na.faulty,1\n")
        return [np.array(value) for value in CsvDataSource(Path(folder, "t.csv")).next()]


def _run_trainer(name: str) -> Any:
    with tempfile.TemporaryDirectory() as folder, nn.parameter_scope("", scope={}):
        w = leaf()
        inputs = nn.Variable((2, 3))
        solver = S.Sgd(0.5)
        solver.set_parameters({"w": w})
        with data_iterator_simple(lambda i: (np.full(3, i, np.float32),), 4, 2, shuffle=False, use_thread=False) as data:
            trainer = Trainer(Updater(data, [inputs], F.mean((w - inputs) ** 2), solver), every(2), folder)
            trainer.extend(name, every=every(1))
            trainer.run()
        return w.d.copy()


def _monitored() -> Any:
    found = monitor.FaultyMonitor("m")
    found.add(0, 1.0)
    return list(found.values)


def _converted() -> Any:
    y = F.tanh(leaf())
    made = GraphConverter(["faulty_pass"]).convert(y)
    made.forward()
    return made.d.copy()


def _traced() -> Any:
    y = F.tanh(leaf())
    with trace_calls("FaultyTracer"):
        y.forward()
    return y.d.copy()


def _layer() -> Any:
    with nn.parameter_scope("", scope={}):
        nn.seed(5)
        y = PF.faulty_dense(leaf())
        y.forward()
        return y.d.copy()


def _composite() -> Any:
    y = F.faulty_twice(leaf())
    y.forward()
    return y.d.copy()


def _read() -> Any:
    return {
        name: entry.values for name, entry in read_entries(io.BytesIO(np.ones(3, np.float32).tobytes()), ".faulty").items()
    }


def _write() -> Any:
    file = io.BytesIO()
    write_entries(file, {"w": Entry(np.ones(2, np.float32), {})}, ".faulty")
    return file.getvalue()


def _times(run: Callable[[int], Any]) -> Callable[[], Any]:
    return lambda: run(3)


#: Every part, and a program that comes to it.
PLACES: Final[dict[str, Callable[[], Any]]] = {
    **dict.fromkeys(("refuse", "layout", "strided", "forward", "runner"), _forward),
    **dict.fromkeys(("empty", "from_numpy", "to_numpy", "use_device"), _forward),
    **dict.fromkeys(("bind", "step"), _times(_forward)),
    "shape rule": _forward, "namespace": _named_space, "backward": _backward, "gradient rule": _differentiated,
    "reference kernel": _referenced, "notes": _explained,
    **dict.fromkeys(("overlay refuse", "overlay layout", "overlay strided", "overlay forward", "overlay runner"), _overlaid),
    **dict.fromkeys(("overlay bind", "overlay step"), _times(_overlaid)),
    **dict.fromkeys(("fusion", "fusion chain", "fusion function", "fusion settings"), _fused),
    **dict.fromkeys(("viewer made", "view"), lambda: view(F.relu(leaf()), "FaultyView")),
    **dict.fromkeys(("monitor made", "monitor"), _monitored),
    **dict.fromkeys(("pass made", "pass"), _converted),
    **dict.fromkeys(("tracer made", "tracer"), _traced),
    "read": _read, "write": _write,
    **dict.fromkeys(("solver made", "solver step"), lambda: _trained("FaultySgd")),
    **dict.fromkeys(("update prepare", "update bind", "update run"), lambda: _trained("FaultyManySgd")),
    **dict.fromkeys(("communicator made", "all_reduce", "barrier"), _communicated),
    **dict.fromkeys(("initializer made", "initializer"), _drawn),
    "scheduler made": _scheduled, "scheduler": _scheduled_solver,
    **dict.fromkeys(("source made", "source"), _iterated),
    "cache": lambda: _iterated("FaultyCache"), "cell": _cells,
    **dict.fromkeys(("extension made", "extension"), lambda: _run_trainer("FaultyExtension")),
    **dict.fromkeys(("logger made", "logger"), lambda: _run_trainer("FaultyLogger")),
    "composite": _composite, "layer": _layer,
}  # fmt: skip
