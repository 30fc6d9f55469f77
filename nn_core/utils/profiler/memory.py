"""The memory that is in use at each entry of plans: arrays from their first to their last use."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nn_core.graph.backward_data import BackwardPlan
from nn_core.graph.plan import Plan


@dataclass(frozen=True, slots=True)
class Moment:
    """The memory in use while one entry of a plan runs.

    Attributes:
        pass_name: "forward" or "backward".
        entry: Number of the entry in its plan.
        name: The function; "copy" for entries of none.
        n_bytes: Bytes of the arrays that were written before or are written now, and are read now or later.
    """

    pass_name: str
    entry: int
    name: str
    n_bytes: int


@dataclass(slots=True)
class _Life:
    first: int
    last: int
    address: Any
    n_bytes: int


def moments(plans: Sequence[Plan]) -> list[Moment]:
    """The memory in use at each entry of plans that run one after another; arrays of leaves are left out."""
    lives: dict[int, _Life] = {}
    found: list[Moment] = []
    for plan in plans:
        leaves = {id(array) for array in plan.leaf_arrays.values()}
        if isinstance(plan, BackwardPlan):
            leaves |= {id(synced.copies.get(key)) for synced, key in plan.leaf_grads.items()}
        pass_name = "backward" if isinstance(plan, BackwardPlan) else "forward"
        for number, entry in enumerate(plan.entries):
            for array in entry.arrays:
                if array is not None and id(array) not in leaves:
                    life = lives.setdefault(id(array), _Life(len(found), 0, _address(array), int(getattr(array, "nbytes", 0))))
                    life.last = len(found)
            found.append(Moment(pass_name, number, "copy" if entry.node is None else entry.node.spec.name, 0))
    in_use: list[dict[Any, int]] = [{} for _ in found]
    for life in lives.values():
        for time in range(life.first, life.last + 1):  # views of one array begin at one address, and count once
            in_use[time][life.address] = max(in_use[time].get(life.address, 0), life.n_bytes)
    pairs = zip(found, in_use, strict=True)
    return [Moment(moment.pass_name, moment.entry, moment.name, sum(sizes.values())) for moment, sizes in pairs]


def peak(found: Sequence[Moment]) -> Moment | None:
    """The moment with the most memory; None when there are none."""
    return max(found, key=lambda moment: moment.n_bytes, default=None)


def _address(array: Any) -> Any:
    interface = getattr(array, "__array_interface__", None)
    return id(array) if interface is None else interface["data"][0]
