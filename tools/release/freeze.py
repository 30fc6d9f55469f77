"""Write one small file of each kind that this version writes, with what a program must get from it, for later versions.

    python -m tools.release.freeze tests/data/frozen/0.1

Done once for each released version; `tests/integration/test_frozen_files.py` reads all of them for ever. Everything is
computed by the reference backend.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.files import FORMATS
from nn_core.training import Checkpoint, MovingAverage, Trainer, Updater, every, save_checkpoint
from nn_core.utils.data_iterator import data_iterator_simple
from nn_core.utils.save import save

#: The names of the solvers whose states are written.
SOLVERS: Final = tuple(S.__all__)
#: Files of networks, with the format of the parameters in an archive.
NETWORKS: Final = {
    "network.nnp": ".h5",
    "network_protobuf.nnp": ".protobuf",
    "network.nntxt": ".h5",
    "network.protobuf": ".h5",
}
CHECKPOINTS: Final = tuple(f"checkpoint{extension}" for extension in FORMATS)
#: Gradients of the updates before and after states are saved.
GRADIENTS: Final = (0.5, -0.25, 1.0)


@contextmanager
def alone() -> Iterator[None]:
    """Yield a scope of parameters, a context and random numbers that everything here begins with."""
    with nn.parameter_scope("", {}), nn.context_scope(nn.Context(["reference:float"])), nn.auto_forward(False):
        nn.seed(313)
        yield


def parameters() -> dict[str, nn.Variable]:
    """Parameters with everything that files keep: trained and not, numbers, empty arrays, nested names and other dtypes."""
    arrays = {
        "conv/W": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
        "conv/bn/mean": np.array([0.5, -0.5], np.float32),
        "number": np.array(3.25, np.float32),
        "empty": np.zeros((0, 3), np.float32),
        "straße/Σ": np.array([1e-30, np.inf, -np.inf], np.float32),
        "double": np.array([1 / 3], np.float64),
        "half": np.array([0.1, 65504], np.float16),
    }
    return {name: nn.Variable.from_numpy_array(array, need_grad=name != "conv/bn/mean") for name, array in arrays.items()}


def updated(solver: Any, values: Mapping[str, Sequence[float]], gradients: Sequence[float]) -> dict[str, nn.Variable]:
    """Parameters of these values after updates with constant gradients; `solver` keeps its states."""
    variables = {name: nn.Variable.from_numpy_array(np.array(v, np.float32), need_grad=True) for name, v in values.items()}
    solver.set_parameters(variables, reset=False, retain_state=True)
    for gradient in gradients:
        for place, variable in enumerate(variables.values()):
            variable.g = gradient * (place + 1)
        solver.update()
    return variables


class Run:
    """A training with all that checkpoints hold: parameters, a solver, a shuffled iterator, averages, random numbers."""

    def __init__(self) -> None:
        draw = np.random.RandomState(7)
        x, t = draw.randn(12, 4).astype(np.float32), draw.randn(12, 2).astype(np.float32)
        self.data = data_iterator_simple(lambda i: (x[i], t[i]), 12, 4, True, np.random.RandomState(5))
        self.x, self.t = nn.Variable((4, 4)), nn.Variable((4, 2))
        hidden = PF.batch_normalization(F.tanh(PF.affine(self.x, 3, name="first")))
        self.loss = F.mean(F.squared_error(PF.affine(F.dropout(hidden, 0.25), 2, name="second"), self.t))
        self.solver = S.Adam(0.05)
        self.solver.set_parameters(nn.get_parameters())
        self.average = MovingAverage(nn.get_parameters(), 0.9)

    def objects(self) -> dict[str, Any]:
        """Return what a checkpoint is made of."""
        held = nn.get_parameters(grad_only=False)
        return {"parameters": held, "solver": self.solver, "data": self.data, "average": self.average}

    def losses(self, count: int) -> list[float]:
        """Return the losses of so many further steps."""
        found = []
        for _ in range(count):
            self.x.d, self.t.d = self.data.next()
            self.loss.forward()
            self.solver.zero_grad()
            self.loss.backward()
            self.solver.update()
            self.average.update()
            found.append(float(self.loss.d))
        return found

    def trainer(self, folder: Path, epochs: int) -> Trainer:
        """Return a trainer of this run, which saves each epoch."""
        updater = Updater(self.data, [self.x, self.t], self.loss, self.solver, model=nn.get_parameters(grad_only=False))
        return Trainer(updater, every(epochs, "epoch"), folder, [Checkpoint(), self.average])


def network() -> tuple[nn.Variable, nn.Variable]:
    """Return a network, as an input and an output."""
    x = nn.Variable((2, 1, 6, 6))
    h = F.relu(PF.batch_normalization(PF.convolution(x, 2, (3, 3)), batch_stat=False))
    return x, PF.affine(F.max_pooling(h, (2, 2)), 3)


def image() -> np.ndarray[Any, Any]:
    """Return the input of the network."""
    return np.sin(np.arange(72, dtype=np.float32)).reshape(2, 1, 6, 6)


def numbers(variables: Mapping[str, nn.Variable]) -> dict[str, Any]:
    """Values as JSON has them."""
    return {name: np.asarray(variable.d, np.float64).tolist() for name, variable in variables.items()}


def write(folder: Path) -> None:
    """Write all files, and `expected.json`."""
    folder.mkdir(parents=True)
    expected: dict[str, Any] = {"version": nn.__version__}
    for part in (_parameters, _states, _checkpoints, _run, _networks):
        with alone():
            expected[part.__name__.strip("_")] = part(folder)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


def _parameters(folder: Path) -> Any:
    made = parameters()
    for extension in FORMATS:
        nn.save_parameters(folder / f"parameters{extension}", made)
    return numbers(made)


def _states(folder: Path) -> Any:
    found = {}
    for name in SOLVERS:
        solver = getattr(S, name)()
        before = updated(solver, {"a": [1.0, -2.0], "b": [0.5]}, GRADIENTS[:2])
        for extension in FORMATS if name == "Adam" else (".npz",):
            solver.save_states(folder / f"states_{name}{extension}")
        found[name] = {"before": numbers(before), "after": numbers(updated(solver, numbers(before), GRADIENTS[2:]))}
    return found


def _checkpoints(folder: Path) -> Any:
    run = Run()
    run.losses(4)
    for name in CHECKPOINTS:
        save_checkpoint(folder / name, **run.objects(), iteration=4, note="ü")
    return run.losses(3)


def _run(folder: Path) -> Any:
    nn.seed(1)
    Run().trainer(folder / "run", 2).run()
    newest = sorted((folder / "run").glob("checkpoint-*"))[-1]
    with alone():
        run = Run()
        run.trainer(folder / "run", 2).run(resume=True)
        later = run.losses(2)
    for path in (folder / "run").iterdir():  # a checkpoint is what counts, and the others only make the folder larger
        if path.is_file() and path != newest and path.name.startswith("checkpoint-"):
            path.unlink()
    return later


def _networks(folder: Path) -> Any:
    x, y = network()
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())
    contents = {
        "networks": [{"name": "net", "batch_size": 2, "outputs": {"y": y}, "names": {"x": x}}],
        "executors": [{"name": "runtime", "network": "net", "data": ["x"], "output": ["y"]}],
    }
    for name, parameter_format in NETWORKS.items():
        save(folder / name, contents, include_params=True, parameter_format=parameter_format)
    x.d = image()
    y.forward()
    return np.asarray(y.d, np.float64).tolist()


def main(arguments: Sequence[str] | None = None) -> int:
    """Freeze the files of this version."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.freeze", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    if folder.exists():
        sys.stderr.write(f"{folder}: must not exist yet: files of a released version are never written again\n")
        return 1
    write(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
