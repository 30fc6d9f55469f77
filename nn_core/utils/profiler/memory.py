"""The memory that is in use at each entry of plans: arrays from their first to their last use."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nn_core.engine.graph.backward_data import BackwardPlan
from nn_core.engine.graph.plan import Plan


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
    """Return the memory in use at each entry of plans that run one after another; arrays of leaves are left out."""
    lives: dict[int, _Life] = {}
    found: list[Moment] = []
    for plan in plans:
        leaves = _leaves_of(plan)
        pass_name = "backward" if isinstance(plan, BackwardPlan) else "forward"
        for number, entry in enumerate(plan.entries):
            for array in entry.arrays:
                if array is not None and id(array) not in leaves:
                    life = lives.setdefault(id(array), _Life(len(found), 0, _address(array), int(getattr(array, "nbytes", 0))))
                    life.last = len(found)
            found.append(Moment(pass_name, number, "copy" if entry.node is None else entry.node.spec.name, 0))
    pairs = zip(found, _in_use(lives.values(), len(found)), strict=True)
    return [Moment(moment.pass_name, moment.entry, moment.name, n_bytes) for moment, n_bytes in pairs]


def _leaves_of(plan: Plan) -> set[int]:
    """Return the identities of the arrays of leaves, and of their gradients."""
    leaves = {id(array) for array in plan.leaf_arrays.values()}
    if isinstance(plan, BackwardPlan):
        leaves |= {id(synced.copies.get(key)) for synced, key in plan.leaf_grads.items()}
    return leaves


def _in_use(lives: Iterable[_Life], n_moments: int) -> list[int]:
    """Return the bytes in use at each moment; views of one array begin at one address, and count once."""
    sizes: list[dict[Any, int]] = [{} for _ in range(n_moments)]
    for life in lives:
        for moment in range(life.first, life.last + 1):
            sizes[moment][life.address] = max(sizes[moment].get(life.address, 0), life.n_bytes)
    return [sum(at_once.values()) for at_once in sizes]


def peak(found: Sequence[Moment]) -> Moment | None:
    """Return the moment with the most memory; None when there are none."""
    return max(found, key=lambda moment: moment.n_bytes, default=None)


def _address(array: Any) -> Any:
    interface = getattr(array, "__array_interface__", None)
    return id(array) if interface is None else interface["data"][0]
