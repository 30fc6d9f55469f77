"""Short checks of a backend: what is most likely to differ on a device that was never tried, in about two minutes.

    python -m tools.release.smoke -c cudnn                    all checks
    python -m tools.release.smoke -c cudnn recurrent steps    some of them
    python -m tools.release.smoke -c cpu --short              a trial of the program itself

normalization: a batch normalization of channels-last images after a convolution, in float16, bfloat16 and TF32, on usual and
odd sizes; recurrent: LSTM and GRU in four types; both with gradients, compared with the reference in float64. steps: five
training steps of three networks, launched one by one, as graphs, and together: the bits of losses and parameters must agree.
"""

import itertools
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.ext_utils import get_extension_context, import_extension_module

#: The largest difference of results and gradients; see `_difference`.
TOLERANCES: Final = {"double": 1e-10, "float": 1e-5, "tf32": 1e-2, "half": 3e-2, "bfloat16": 2e-1}
#: (batch, channels, height, width): usual ones, channels that tensor cores do not divide, one place, few images.
IMAGES: Final = (
    (32, 64, 56, 56),
    (16, 256, 14, 14),
    (8, 2048, 7, 7),
    (64, 24, 1, 1),
    (2, 3, 32, 32),
    (4, 35, 9, 9),
)
#: (steps, batch, features, length of a state, layers, directions)
SEQUENCES: Final = ((20, 32, 64, 128, 2, 2), (5, 3, 7, 5, 1, 1))
N_STEPS: Final = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a check.

    Attributes:
        name: What was checked.
        passed: Whether it is as it should be.
        detail: Figures, or what went wrong.
        seconds: How long it took.
    """

    name: str
    passed: bool
    detail: str
    seconds: float

    def __str__(self) -> str:
        return f"{'ok    ' if self.passed else 'FAILED'} {self.name}: {self.detail}, {self.seconds:.2f} s"


@dataclass(frozen=True, slots=True)
class CheckedBackend:
    """The backend that is checked.

    Attributes:
        name: Its name.
        device_id: Number of the device.
        is_short: Whether one size of each check is enough.
    """

    name: str
    device_id: str = "0"
    is_short: bool = False

    @property
    def is_device(self) -> bool:
        """Whether it is one for CUDA."""
        return self.name in ("cuda", "cudnn")

    def context(self, type_config: str) -> nn.Context:
        """Return the context of the backend in a type; tf32 is float32 whose products are rounded."""
        settings: dict[str, Any] = {"type_config": "float" if type_config == "tf32" else type_config}
        if self.is_device:
            settings |= {"device_id": self.device_id, "tf32": type_config == "tf32"}
        return get_extension_context(self.name, **settings)

    def some(self, sizes: Sequence[Any]) -> Sequence[Any]:
        """Return the sizes to be checked: all of them, or the last one."""
        return sizes[-1:] if self.is_short else sizes


def normalization(place: CheckedBackend) -> Iterator[Outcome]:
    """Batch normalizations in the layout that convolutions want."""

    def compute(x: Any, weight: Any, beta: Any, gamma: Any) -> Any:
        mean, variance = (nn.Variable(beta.shape) for _ in range(2))
        mean.d, variance.d = 0, 1
        h = F.convolution(x, weight)
        return F.max_pooling(F.batch_normalization(h, beta, gamma, mean, variance), (1, 1))

    for type_config, (batch, channels, *lengths) in itertools.product(("half", "bfloat16", "tf32"), place.some(IMAGES)):
        vector = (1, channels, 1, 1)
        shapes = [(batch, 4, *lengths), (channels, 4, 1, 1), vector, vector]
        yield _compared(f"normalization {type_config} {(batch, channels, *lengths)}", compute, shapes, place, type_config)


def recurrent(place: CheckedBackend) -> Iterator[Outcome]:
    """LSTM and GRU, in training."""
    cases = itertools.product(("LSTM", "GRU"), ("float", "half", "bfloat16", "double"), place.some(SEQUENCES))
    for name, type_config, (steps, batch, features, length, layers, directions) in cases:
        gates = 4 if name == "LSTM" else 3
        state = (layers, directions, batch, length)
        shapes = [(steps, batch, features), state, (directions, gates, length, features + length)]
        shapes += [(layers - 1, directions, gates, length, (directions + 1) * length)] if layers > 1 else []
        shapes += [(layers, directions, gates + (name == "GRU"), length)]
        compute = _recurrent(name, layers, directions)
        title = f"recurrent {name} {type_config} {(steps, batch, features, length, layers, directions)}"
        yield _compared(title, compute, shapes, place, type_config)


def _recurrent(name: str, layers: int, directions: int) -> Callable[..., Any]:
    settings: dict[str, Any] = {"num_layers": layers, "bidirectional": directions == 2, "training": True}

    def compute(x: Any, h: Any, weight_l0: Any, *rest: Any) -> Any:
        weight, bias = (None, *rest)[-2:]
        if name == "GRU":
            return F.gru(x, h, weight_l0, weight, bias, **settings)[0]
        return F.lstm(x, h, h * 0.5, weight_l0, weight, bias, **settings)[0]

    return compute


def steps(place: CheckedBackend) -> Iterator[Outcome]:
    """Trainings in several ways."""
    builds = {"MLP": _mlp, "convolution": _convolution, "LSTM": _lstm}
    for (name, build), type_config in itertools.product(builds.items(), ("float", "half", "bfloat16")):
        started = time.perf_counter()
        try:
            context = place.context(type_config)
            found = {way: _trained(context, build, place, *settings) for way, settings in _ways(place).items()}
        except Exception as error:  # of a library or a device: the other checks go on
            yield Outcome(f"steps {name} {type_config}", False, _first_line(error), time.perf_counter() - started)
            continue
        yield Outcome(f"steps {name} {type_config}", *_verdict(found, place), time.perf_counter() - started)


@dataclass(frozen=True, slots=True)
class Training:
    """The outcome of a training.

    Attributes:
        bits: Those of the losses and of the parameters.
        recorded: What of it was recorded as graphs.
    """

    bits: Sequence[bytes]
    recorded: str


def _verdict(found: Mapping[str, Training], place: CheckedBackend) -> tuple[bool, str]:
    """Return whether all ways of a training give the same bits, and the last one was recorded if that is possible."""
    first, *others = found
    differ = [way for way in others if found[way].bits != found[first].bits]
    if differ:
        return False, f"other bits {' and '.join(differ)} than {first}"
    recorded = found[others[-1]].recorded
    text = f"the same bits {', '.join(found)}{'; ' * bool(recorded)}{recorded}"
    return not place.is_device or not recorded.startswith("0 graphs"), text


def _ways(place: CheckedBackend) -> dict[str, tuple[Callable[[], object], Callable[[], AbstractContextManager[object]]]]:
    """By name: what is set before the training, and what is around each step."""
    if not place.is_device:
        return {"step by step": (lambda: None, nullcontext), "together": (lambda: None, nn.launch_together)}
    cuda = import_extension_module("cuda")
    return {
        "without graphs": (lambda: cuda.use_graphs(False), nullcontext),
        "with graphs": (lambda: cuda.use_graphs(True), nullcontext),
        "together": (lambda: cuda.use_graphs(True), nn.launch_together),
    }


def _trained(
    context: nn.Context,
    build: Callable[[], tuple[Any, Any]],
    place: CheckedBackend,
    prepare: Callable[[], object],
    around: Callable[[], AbstractContextManager[object]],
) -> Training:
    """Train a network in one way."""
    prepare()
    nn.clear_parameters()
    nn.seed(313)
    rng = np.random.default_rng(313)
    with nn.context_scope(context):
        x, y = build()
        t = nn.Variable((y.shape[0], 1))
        loss = F.mean(F.softmax_cross_entropy(y, t))
        solver = S.Adam(1e-2)
        solver.set_parameters(nn.get_parameters())
        losses = []
        for _ in range(N_STEPS):
            x.d, t.d = rng.normal(size=x.shape), rng.integers(0, y.shape[1], t.shape)
            with around():
                loss.forward(clear_no_need_grad=True)
                solver.zero_grad()
                loss.backward(clear_buffer=True)
                solver.update()
            losses.append(loss.d.tobytes())
        # while the plans exist
        recorded = str(import_extension_module("cuda").graph_report()).partition("\n")[0] if place.is_device else ""
    return Training([*losses, *(each.d.tobytes() for each in nn.get_parameters(grad_only=False).values())], recorded)


def _mlp() -> tuple[Any, Any]:
    x = nn.Variable((32, 64))
    h = F.dropout(F.gelu(PF.affine(x, 128, name="hidden")), 0.2)
    return x, PF.affine(h, 10, name="output")


def _convolution() -> tuple[Any, Any]:
    x = nn.Variable((8, 3, 16, 16))
    h = PF.convolution(x, 16, (3, 3), pad=(1, 1), with_bias=False)
    h = F.max_pooling(F.relu(PF.batch_normalization(h)), (2, 2))
    return x, PF.affine(h, 10)


def _lstm() -> tuple[Any, Any]:
    x = nn.Variable((6, 8, 16))
    state = nn.Variable.from_numpy_array(np.zeros((1, 1, 8, 32)))
    y, _, _ = PF.lstm(x, state, state)
    return x, PF.affine(y[-1], 10)


def _compared(
    title: str, compute: Callable[..., Any], shapes: Sequence[tuple[int, ...]], place: CheckedBackend, type_config: str
) -> Outcome:
    """Compare results and gradients with those of the reference in float64."""
    rng = np.random.default_rng(313)
    inputs = [rng.normal(size=shape) / np.sqrt(shape[-1]) for shape in shapes]
    started = time.perf_counter()
    try:
        found = _run(compute, inputs, place.context(type_config))
    except Exception as error:  # of a library or a device: the other checks go on
        return Outcome(title, False, _first_line(error), time.perf_counter() - started)
    seconds = time.perf_counter() - started
    expected = _run(compute, inputs, nn.Context(["reference:double"]))
    difference = max(map(_difference, found, expected))
    return Outcome(title, difference <= TOLERANCES[type_config], f"difference {difference:.1e}", seconds)


def _run(compute: Callable[..., Any], inputs: Sequence[Any], context: nn.Context) -> list[Any]:
    """Return the result and the gradients."""
    with nn.context_scope(context):
        variables = [nn.Variable.from_numpy_array(values, need_grad=True) for values in inputs]
        y = compute(*variables)
        for variable in variables:
            variable.grad.zero()
        y.forward()
        y.backward(np.cos(np.arange(y.size)).reshape(y.shape))
        return [y.d.copy(), *(variable.g.copy() for variable in variables)]


def _difference(found: Any, expected: Any) -> float:
    """Return the norm of the difference as a part of that of the values; or a tenth of the largest difference, if that is
    more.
    """
    difference, size = found.astype(np.float64) - expected, np.abs(expected)
    error = float(np.linalg.norm(difference) / max(np.linalg.norm(expected), 1e-30))
    largest = float(np.abs(difference).max() / max(size.max(), 1e-30))
    return max(error, largest / 10) if np.isfinite(difference).all() else float("inf")


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


CHECKS: Final = {check.__name__: check for check in (normalization, recurrent, steps)}


@click.command(help=__doc__.partition("\n")[0])
@click.argument("checks", nargs=-1, type=click.Choice(list(CHECKS)))
@click.option("--context", "-c", default="cudnn", help="Name of the backend.", show_default=True)
@click.option("--device-id", "-d", default="0", help="Number of the device.")
@click.option("--unpooled", is_flag=True, help="Allocate each array apart, so that compute-sanitizer sees where it ends.")
@click.option("--short", is_flag=True, help="One size of each check.")
def main(checks: Sequence[str], context: str, device_id: str, unpooled: bool, short: bool) -> None:
    """Run checks, and exit with status 1 if one of them fails."""
    place = CheckedBackend(context, device_id, short)
    if unpooled and place.is_device:
        import_extension_module("cuda").prefer_cached_array(False)
    n_failed = 0
    for name in checks or CHECKS:
        for outcome in CHECKS[name](place):
            click.echo(str(outcome))
            n_failed += not outcome.passed
    for row in nn.fallback_report():
        if row.left_family:
            click.echo(f"FAILED {row.function} left the device: {row.reason}")
            n_failed += 1
    click.echo(f"{n_failed} failed" if n_failed else "all checks passed")
    sys.exit(bool(n_failed))


if __name__ == "__main__":
    main()
