"""Curves of reported values as pictures."""

from collections.abc import Mapping
from typing import Any

from nn_core.engine.arrays.pictures import plotting
from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.engine.runtime.schemas import checked_state
from nn_core.errors import ArgumentError
from nn_core.training.extensions.averages import Averages
from nn_core.training.trainer import Trainer


@fitted_methods()
class Plot(Averages):
    """Plot the means of reported values against the iteration, each epoch or as the trigger says.

    Needs matplotlib (``pip install nn-core[plots]``), of which it uses a figure of its own: neither a window nor the state of
    ``pyplot``.

    Args:
        *keys: Names of the values.
        path: The file, in the folder of the trainer.
        x: "iteration", "epoch" or "elapsed_time".

    Raises:
        ArgumentError: when there are no keys.

    Example:
        >>> from pathlib import Path
        >>> from nn_core.training import Plot, fit
        >>> x, t = np.eye(4), np.arange(4)
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), epochs=3, out="run", progress=False, extensions=[Plot("loss")])
        >>> Path("run/plot.png").exists()
        True
    """

    first_rank_only = True

    @fitted
    def __init__(self, *keys: str, path: str = "plot.png", x: str = "iteration") -> None:
        super().__init__(keys)
        if not keys:
            raise ArgumentError("Plot: there must be names of values to draw, got none")
        self._name = path
        self._x = x
        self._points: dict[str, list[tuple[float, float]]] = {key: [] for key in keys}

    def __call__(self, trainer: Trainer) -> None:
        entry = self.entry(trainer)
        for key, points in self._points.items():
            if key in entry:
                points.append((entry[self._x], entry[key]))
        figure = plotting("Plot", "matplotlib.figure").Figure(figsize=(6.4, 4.0), layout="constrained")
        plotting("Plot", "matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for key, points in self._points.items():
            axes.plot([x for x, _ in points], [y for _, y in points], label=key, marker="." if len(points) < 40 else None)
        axes.set_xlabel(self._x)
        axes.grid(True)
        axes.legend()
        figure.savefig(trainer.out / self._name)

    def files(self) -> list[str]:
        """Return the file."""
        return [self._name]

    def get_state(self) -> dict[str, Any]:
        """Return the points and the open means."""
        return {**super().get_state(), "points": {key: [list(p) for p in points] for key, points in self._points.items()}}

    @checked_state
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave; values that are new have no points."""
        super().set_state(state)
        for key in self._points:
            self._points[key] = [(x, y) for x, y in state["points"].get(key, [])]
