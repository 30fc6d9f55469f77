"""Ask all ranks for states that extensions of rank 0 save."""

import secrets
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from nn_core.communicators import Communicator
from nn_core.training.parts import PartWriter, Place, Row, Saving, as_row, of_row
from nn_core.training.ranks import Ranks
from nn_core.training.updater import Updater


class RankSaving:
    """States of other ranks that the extensions of rank 0 save: divided ones of solvers, and data of their own.

    Args:
        comm: The communicator; None: there is one rank.
        updater: The updater.
        own_data: The ranks, where each has data of its own.
    """

    def __init__(self, comm: Communicator | None, updater: Updater, own_data: Ranks | None) -> None:
        self._comm = comm
        self._updater = updater
        self._own_data = own_data
        self._parts = PartWriter()
        self._is_asking = False
        #: whether there is anything to ask for
        self.is_needed = own_data is not None or bool(getattr(updater, "state_shards", ()))

    def run(self, folder: Path, action: Callable[[], object]) -> None:
        """Let extensions save; each snapshot that rank 0 takes asks the other ranks for what they have of their own."""
        with getattr(self._updater, "phase", nullcontext)("save"):
            self._run(folder, action)

    def _run(self, folder: Path, action: Callable[[], object]) -> None:
        comm = self._comm
        if comm is None or not self.is_needed:
            action()
            return
        if comm.rank:
            while any(flags := comm.any_rank("save", [False, False])):
                if flags[1]:
                    self._write_part(comm, folder, None)
                self._give(gathers=not flags[1])
            action()
            return
        self._is_asking = True
        try:
            action()
        finally:
            self._is_asking = False
        comm.any_rank("save", [False, False])

    def states(self) -> list[Any] | None:
        """Return what each rank has of its own, when extensions save; those of solvers are in the solvers then."""
        if self._comm is None or not self._is_asking:
            return None
        self._comm.any_rank("save", [True, False])
        return self._give(gathers=True)

    def in_parts(self, paths: Sequence[Path], *, asynchronous: bool) -> tuple[Saving, list[Any] | None] | None:
        """Let each rank write its part of some files; None where nothing is divided.

        Returns:
            The save, and what each rank has of its own besides.
        """
        comm = self._comm
        if comm is None or not self._is_asking or not self._updater.state_shards:
            return None
        comm.any_rank("save", [True, True])
        saving = Saving(tuple(paths), secrets.token_hex(4), comm.size, asynchronous)
        self._write_part(comm, paths[0].parent, saving)
        return saving, self._give(gathers=False)

    def places(self) -> list[Place]:
        """Return where the arrays are that parts have, of all ranks."""
        solvers = self._updater.solvers.items()
        places = {self._parameter_places().get(v.storage) for _, solver in solvers for v in solver.get_parameters().values()}
        return [place for place in places if place is not None]

    def wait(self) -> None:
        """Wait until the part of this rank is written."""
        self._parts.wait()

    def _write_part(self, comm: Communicator, folder: Path, saving: Saving | None) -> None:
        own = as_row(saving)
        saving = of_row(comm.gather_rows("save", own)[0], folder, comm.size)
        self._parts.write(saving, comm.rank, self._rows())

    def _give(self, *, gathers: bool) -> list[Any] | None:
        """Give rank 0 what each rank has of its own; all ranks call this."""
        for shards in self._updater.state_shards if gathers else ():
            shards.gather_states()
        return None if self._own_data is None else self._own_data.gathered_states(self._updater.rank_state())

    def _rows(self) -> list[Row]:
        """Return the parts of states and parameters that this rank has."""
        rows = []
        places = self._parameter_places()
        for (name, solver), shards in zip(self._updater.solvers.items(), self._updater.state_shards, strict=True):
            names = {variable.storage: key for key, variable in solver.get_parameters().items()}
            for piece in shards.pieces():
                variable = piece.whole.variable
                start, end = piece.span
                if variable.storage in places:
                    values = np.asarray(variable.data.get_data("r")).reshape(-1)[start:end]
                    rows.append(Row(places[variable.storage], tuple(variable.shape), start, values))
                for state_name, whole, own in zip(solver.state_names, piece.whole.member.states, piece.states, strict=True):
                    place = ("trainer", "updater", f"solver/{name}", "states", names[variable.storage], state_name)
                    first = 0 if piece.is_whole else start
                    rows.append(Row(place, tuple(whole.shape), first, np.asarray(own.get_data("r")).reshape(-1)))
        return rows

    def _parameter_places(self) -> dict[Any, Place]:
        placed = self._updater.placed_parameters().items()
        return {v.storage: ("trainer", "updater", f"model/{name}", key) for (name, key), v in placed if key}
