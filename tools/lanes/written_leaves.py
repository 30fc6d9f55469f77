"""Write a leaf in every way, its dtype before and after, and let pairs of functions read it: graphs see what was written.

    python -m tools.lanes.written_leaves --count 0                  # all ordered pairs of readers
    python -m tools.lanes.written_leaves --count 0 --context half   # of one context

Each pair of readers is a graph that is built once. Then its leaf is written in all ways, in random order and several times
over; after each the results and the gradient are those of a graph that was built for the values.
"""

import itertools
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.graph.python_function import PythonFunction
from nn_core.errors import NNCoreError
from nn_core.ext_utils import get_extension_context, list_extensions

from .reliability import record, report_option

SHAPE: Final = (2, 4)
Values: TypeAlias = np.ndarray[Any, Any]
#: Results by their names, or the text of an error.
Outcome: TypeAlias = dict[str, Values] | str


class Doubled(PythonFunction):
    """2 x, in Python, which reads the dtype that it finds."""

    def min_outputs(self) -> int:
        return 1

    def setup_impl(self, inputs: Any, outputs: Any) -> None:
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs: Any, outputs: Any) -> None:
        outputs[0].d = inputs[0].d * 2

    def backward_impl(self, inputs: Any, outputs: Any, propagate_down: Any, accum: Any) -> None:
        if propagate_down[0]:
            inputs[0].g = outputs[0].g * 2 + (inputs[0].g if accum[0] else 0)


_TABLE: Final = np.arange(24, dtype=np.float32).reshape(6, 4) / 8
#: Functions of a leaf: some compute, some take whole numbers, some only show the memory of the leaf, or may.
READERS: Final[Mapping[str, Callable[[nn.Variable], nn.Variable]]] = {
    "x * 1": lambda x: x * 1.0,
    "x + x": lambda x: x + x,
    "abs": F.abs,
    "tanh": F.tanh,
    "relu": F.relu,
    "sum": lambda x: F.sum(x, axis=1),
    "affine": lambda x: F.affine(x, nn.Variable.from_numpy_array(_TABLE[:4])),
    "where": lambda x: F.where(F.greater_scalar(x, 0.5), x, x * 3),
    "sort": F.sort,
    "concatenate": lambda x: F.concatenate(x, x),
    "embed": lambda x: F.embed(x, nn.Variable.from_numpy_array(_TABLE)),
    "python": Doubled(),
    "identity": F.identity,
    "reshape": lambda x: F.reshape(x, (4, 2)),
    "reshape copied": lambda x: F.reshape(x, (4, 2), inplace=False),
    "transpose": lambda x: F.transpose(x, (1, 0)),
    "split": lambda x: F.split(x, axis=1)[1],
    "slice": lambda x: F.slice(x, (0, 1), (2, 3), (1, 1)),
    "x[1]": lambda x: x[1],
    "x[:, ::2]": lambda x: x[:, ::2],
    "x[:, None]": lambda x: x[:, None],
    "broadcast": lambda x: F.broadcast(F.reshape(x, (1, *SHAPE)), (3, *SHAPE)),
    "flip": F.flip,
    "unlinked": lambda x: x.get_unlinked_variable(need_grad=x.need_grad) + 1,
}

#: Values that all dtypes hold; of the first, functions that take positions take what the leaf has.
WHOLE: Final = np.array([[0, 1, 2, 3], [3, 2, 1, 0]])
PARTS: Final = np.array([[-1.5, 0.25, 2, 3], [0.5, -0.75, 1, 4]])


#: How often each way to write comes.
ROUNDS: Final = 3


class Write(NamedTuple):
    """One way to write a leaf: `write` gets the leaf and gives the values that it must have then, of those before."""

    name: str
    write: Callable[[nn.Variable, Values], Values]


def _assign(dtype: str, values: Values) -> Write:
    def write(x: nn.Variable, before: Values) -> Values:
        x.d = values.astype(dtype)
        return values.astype(float)

    return Write(f"d = {dtype}{' in parts' if values is PARTS else ''}", write)


def _fill(name: str, number: float, fill: Callable[[nn.Variable, float], object]) -> Write:
    def write(x: nn.Variable, before: Values) -> Values:
        fill(x, number)
        return np.full(SHAPE, number)

    return Write(f"{name} {number}", write)


def _in_place(name: str, change: Callable[[nn.Variable], object], result: Callable[[Values], Values]) -> Write:
    def write(x: nn.Variable, before: Values) -> Values:
        change(x)
        return result(before)

    return Write(name, write)


def _set_item(x: nn.Variable) -> None:
    x.d[0, 1] = 2


def _changed(before: Values) -> Values:
    after = before.copy()
    after[0, 1] = 2
    return after


def _halved(x: nn.Variable) -> None:
    x.data *= 0.5


def _other_array(dtype: str) -> Callable[[nn.Variable], None]:
    def replace(x: nn.Variable) -> None:
        x.data = nn.NdArray.from_numpy_array(WHOLE.astype(dtype))

    return replace


def _pending_array(x: nn.Variable) -> None:
    x.data = nn.NdArray(SHAPE)
    x.data.fill(2.0)


def _computed_into(x: nn.Variable) -> None:
    F.add_scalar(nn.NdArray.from_numpy_array(WHOLE.astype("float32")), 1.0, outputs=[x.data])


def _copied(dtype: str) -> Callable[[nn.Variable], None]:
    return lambda x: x.data.copy_from(nn.NdArray.from_numpy_array(WHOLE.astype(dtype)))


def _copied_fill(x: nn.Variable) -> None:
    source = nn.NdArray(SHAPE)
    source.fill(1.0)
    x.data.copy_from(source)


def _over(dtype: str) -> Callable[[nn.Variable], None]:
    def write(x: nn.Variable) -> None:
        x.data.get_data("w", dtype)[...] = WHOLE

    return write


def _part_filled(x: nn.Variable) -> None:
    x.data.narrow(0, 1, 1).fill(3)


def _row_of_threes(before: Values) -> Values:
    return np.concatenate([before[:1], np.full((1, 4), 3.0)])


def _as_whole(before: Values) -> Values:
    return WHOLE.astype(float)


def _same(before: Values) -> Values:
    return before


WRITES: Final[tuple[Write, ...]] = (
    *[_assign(dtype, WHOLE) for dtype in ("float16", "float32", "float64", "int32", "int64", "uint8")],
    *[_assign(dtype, PARTS) for dtype in ("float32", "float64")],
    *[_fill("d =", number, lambda x, n: setattr(x, "d", n)) for number in (2, -9.5)],
    *[_fill("fill", number, lambda x, n: x.data.fill(n)) for number in (3, 0.5)],
    _fill("zero", 0, lambda x, n: x.data.zero()),
    _in_place("an element of d", _set_item, _changed),
    _in_place("*=", _halved, lambda before: before / 2),
    _in_place("data = float64", _other_array("float64"), _as_whole),
    _in_place("data = int64", _other_array("int64"), _as_whole),
    _in_place("data = filled", _pending_array, lambda before: np.full(SHAPE, 2.0)),
    _in_place("outputs=", _computed_into, lambda before: WHOLE + 1.0),
    _in_place("copy_from float64", _copied("float64"), _as_whole),
    _in_place("copy_from filled", _copied_fill, lambda before: np.ones(SHAPE)),
    _in_place("written as float32", _over("float32"), _as_whole),
    _in_place("written as float64", _over("float64"), _as_whole),
    _in_place("a part filled", _part_filled, _row_of_threes),
    _in_place("cast to float32", lambda x: x.data.cast("float32"), _same),
    _in_place("cast to float64", lambda x: x.data.cast("float64"), _same),
)


class Graph:
    """Two functions that read one leaf, and what joins their results."""

    def __init__(self, readers: tuple[str, str], trained: bool, joined: bool) -> None:
        self.x = nn.Variable(SHAPE, need_grad=trained)
        self._trained = trained
        results = [READERS[name](self.x) for name in readers]
        self._loss = sum((F.sum(result * (k + 2)) for k, result in enumerate(results)), nn.Variable(()))
        flat = [F.reshape(result, (-1,)) for result in results]
        self._roots = {"joined": F.concatenate(*flat)} if joined else dict(enumerate(results))

    def step(self) -> Outcome:
        """Return the results, and the gradient of a trained leaf."""
        try:
            nn.forward_all([*self._roots.values(), self._loss], clear_no_need_grad=True)
            found = {str(name): root.d.astype(float) for name, root in self._roots.items()}
            if self._trained:
                self.x.grad.zero()
                self._loss.backward(clear_buffer=True)
                found["gradient"] = self.x.g.astype(float)
        except NNCoreError as error:
            return str(error)
        return found


def agree(given: Outcome, expected: Outcome, *dtypes: Any) -> bool:
    """Return whether outcomes differ by rounding at most: a function that shows its input may copy it once that is
    another array.
    """
    if isinstance(given, str) or isinstance(expected, str):
        return given == expected
    tolerance = max(4 * float(np.finfo(dtype).eps) for dtype in map(np.dtype, ("float32", *dtypes)) if dtype.kind == "f")
    return all(np.allclose(given[name], expected[name], rtol=tolerance, atol=tolerance) for name in expected)


class Lane:
    """Sequences of writes on graphs, and what graphs give that were built for the values."""

    def __init__(self, context: nn.Context, trained: bool, joined: bool) -> None:
        self._context = context
        self._trained, self._joined = trained, joined

    def check(self, readers: tuple[str, str], writes: Sequence[Write]) -> Iterator[str]:
        """Write again and again to the leaf of one graph; texts of what differs."""
        fresh: dict[Any, Outcome] = {}
        with nn.context_scope(self._context):
            graph = Graph(readers, self._trained, self._joined)
            values, before = np.zeros(SHAPE), "nothing"
            for write in writes:
                values = write.write(graph.x, values)
                given = graph.step()
                dtype = graph.x.dtype
                key = dtype, values.tobytes()
                if key not in fresh:
                    fresh[key] = self._fresh(readers, values.astype(dtype))
                held = graph.x.data.get_data("r")
                if not (agree(given, fresh[key], dtype, self._context.dtype) and np.array_equal(held, values)):
                    yield f"{readers}, {self._context.backend}: '{write.name}' after '{before}' as {dtype} is not seen"
                before = write.name

    def _fresh(self, readers: tuple[str, str], values: Values) -> Outcome:
        graph = Graph(readers, self._trained, self._joined)
        graph.x.d = values
        return graph.step()


def contexts() -> dict[str, nn.Context]:
    """Return the contexts that read leaves: both backends of this machine, and one of them in half precision."""
    found = {name: get_extension_context(name) for name in ("cpu", "reference") if name in list_extensions()}
    return {**found, "half": get_extension_context("cpu", type_config="half")} if "cpu" in found else found


@click.command()
@click.option("--count", default=20, help="Ordered pairs of readers in each context; 0: all.")
@click.option("--seed", default=0)
@click.option("--context", "names", multiple=True, type=click.Choice(["cpu", "reference", "half"]), help="Only this one.")
@report_option
def main(count: int, seed: int, names: Sequence[str], report: Path | None) -> None:
    """Write the leaf of graphs with pairs of readers in all ways; the exit status is 1 if there is a finding."""
    warnings.simplefilter("ignore", RuntimeWarning)  # half precision overflows
    rng = np.random.default_rng(seed)
    every = list(itertools.product(READERS, repeat=2))
    n_findings = 0
    for name, context in ((name, found) for name, found in contexts().items() if not names or name in names):
        n_found = 0
        pairs = every if count == 0 else [every[place] for place in rng.choice(len(every), count, replace=False)]
        for readers in pairs:
            trained, joined = rng.random(2) < 0.5
            order = [place for _ in range(ROUNDS) for place in rng.permutation(len(WRITES))]
            for text in Lane(context, trained, joined).check(readers, [WRITES[place] for place in order]):
                n_found += 1
                click.echo(f"--- {text}")
        note = f"{len(WRITES)} ways to write, {len(pairs)} ordered pairs of readers"
        record(report, "writes", name, count=ROUNDS * len(WRITES) * len(pairs), findings=n_found, seed=seed, note=note)
        n_findings += n_found
    sys.exit(n_findings > 0)


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.written_leaves")
