"""Tests of decision trees, and the leaves that they lead to where all tests of a tree are made at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from nn_ext_onnx.importing.values import Array

#: Comparisons of a feature with the number of a node, in the order of their codes in TreeEnsemble.
_TESTS: Final[dict[str, Callable[[Array, Array], Array]]] = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}
KINDS: Final = tuple(_TESTS)
#: The code of nodes that ask whether a feature is one of a set, in TreeEnsemble.
MEMBER: Final = len(KINDS)
LEAF: Final = MEMBER + 1
#: The bits of an integer, one for each leaf of a tree.
_MOST_LEAVES: Final = 64
#: Tests are made for so many nodes and samples at once, whose bits stay in the cache.
_AT_ONCE: Final = 2**16


@dataclass(slots=True)
class Tests:
    """The tests of nodes, in arrays of one shape; see `Trees`.

    Attributes:
        kinds, values, missing, members: of each node.
        present: the kinds that there are among all nodes of the trees.
        has_missing: whether NaN goes to `yes` from any of them.
    """

    kinds: Array
    values: Array
    missing: Array
    members: Array | None
    present: list[int]
    has_missing: bool

    @classmethod
    def of(cls, kinds: Array, values: Array, missing: Array, members: Array | None) -> "Tests":
        """Return the tests of all nodes, and what any of them asks for."""
        present = [code for code in range(LEAF) if (kinds == code).any()]
        return cls(kinds, values, missing, members, present, bool(missing.any()))

    def at(self, places: Array) -> "Tests":
        """Return the tests of the nodes at some places."""
        members = None if self.members is None else self.members[places]
        return Tests(self.kinds[places], self.values[places], self.missing[places], members, self.present, self.has_missing)

    def hold(self, given: Array) -> Array:
        """Return which tests features pass, which have the shape of the nodes or axes in front of it."""
        found = [self._passes(code, given) for code in self.present]
        if len(found) == 1:
            holds = found[0]  # leaves lead to themselves either way
        else:
            holds = np.select([self.kinds == code for code in self.present], found, False) if found else np.isnan(given)
        if self.has_missing:
            is_missing = np.isnan(given)
            if is_missing.any():
                holds = holds | (is_missing & self.missing)
        return holds

    def _passes(self, code: int, given: Array) -> Array:
        if code != MEMBER:
            return _TESTS[KINDS[code]](given, self.values)
        assert self.members is not None
        return (self.members == given[..., None]).any(axis=-1)


class Nodes(Protocol):
    """The part of `Trees` that exits are made from."""

    roots: Array
    kinds: Array
    features: Array
    yes: Array
    no: Array


@dataclass(slots=True)
class Exits:
    """The leaves of samples in trees of at most 64 leaves, from all tests at once instead of one after the other.

    A test that holds rules out the leaves behind `no`, one that fails those behind `yes`, and one leaf of each tree is left.
    C. Lucchese and others, "QuickScorer: a fast algorithm to rank documents with additive ensembles of regression trees",
    SIGIR 2015.

    Attributes:
        tests: of all inner nodes, (nodes of the largest tree, trees), with any test where a tree has fewer.
        features: that they read, in one axis.
        if_yes, if_no: the bits of the leaves that are left by each.
        start: the bits of all leaves of each tree.
        leaves: the places of the leaves of each tree by the number of their bit.
    """

    tests: Tests
    features: Array
    if_yes: Array
    if_no: Array
    start: Array
    leaves: Array

    def found(self, x: Array) -> Array:
        """Return the place of the leaf of each sample in each tree, for samples (B, features)."""
        step = max(1, _AT_ONCE // max(self.features.size, 1))
        parts = [self._found(x[first : first + step]) for first in range(0, max(len(x), 1), step)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _found(self, x: Array) -> Array:
        given = x.take(self.features, axis=1).reshape(len(x), *self.if_yes.shape)
        left = np.where(self.tests.hold(given), self.if_yes, self.if_no)
        bits = np.bitwise_and.reduce(left, axis=1) & self.start
        return self.leaves[np.arange(len(self.leaves)), np.bitwise_count(bits - np.uint64(1))]


def exits_of(trees: Nodes, tests: Tests) -> Exits | None:
    """Return the exits of trees; None where one has more than 64 leaves, or leads to a node twice."""
    fronts = _fronts(trees)
    if fronts is None:
        return None
    places, owners = map(np.concatenate, zip(*fronts, strict=True))
    is_leaf = trees.kinds[places] == LEAF
    leaves, leaf_owners = places[is_leaf], owners[is_leaf]
    numbers = _ranks(leaf_owners)
    if numbers.max(initial=0) >= _MOST_LEAVES:
        return None
    bits = np.zeros(len(trees.kinds), np.uint64)
    bits[leaves] = np.uint64(1) << numbers.astype(np.uint64)
    for front, _ in reversed(fronts):
        inner = front[trees.kinds[front] != LEAF]
        bits[inner] = bits[trees.yes[inner]] | bits[trees.no[inner]]
    inner, inner_owners = places[~is_leaf], owners[~is_leaf]
    ranks, n_trees = _ranks(inner_owners), len(trees.roots)
    shape = int(ranks.max(initial=-1)) + 1, n_trees
    nodes = np.zeros(shape, np.int64)
    if_yes, if_no = np.full((2, *shape), ~np.uint64(0))
    nodes[ranks, inner_owners] = inner
    if_yes[ranks, inner_owners] = ~bits[trees.no[inner]]
    if_no[ranks, inner_owners] = ~bits[trees.yes[inner]]
    table = np.zeros((n_trees, int(numbers.max(initial=0)) + 1), np.int64)
    table[leaf_owners, numbers] = leaves
    return Exits(tests.at(nodes), trees.features[nodes].reshape(-1), if_yes, if_no, bits[trees.roots], table)


def _fronts(trees: Nodes) -> list[tuple[Array, Array]] | None:
    """Return the nodes of each depth and their trees; None where two lead to one node."""
    front, owners = trees.roots.astype(np.int64), np.arange(len(trees.roots))
    fronts, n_seen = [], 0
    while len(front):
        n_seen += len(front)
        if n_seen > len(trees.kinds):
            return None
        fronts.append((front, owners))
        is_inner = trees.kinds[front] != LEAF
        inner, owners = front[is_inner], np.tile(owners[is_inner], 2)
        front = np.concatenate((trees.yes[inner], trees.no[inner])).astype(np.int64)
    seen = np.concatenate([front for front, _ in fronts]) if fronts else np.zeros(0, np.int64)
    return fronts if fronts and len(np.unique(seen)) == len(seen) else None


def _ranks(owners: Array) -> Array:
    """Return how many of the entries before each are equal to it."""
    order = np.argsort(owners, kind="stable")
    ranked = owners[order]
    ranks = np.empty(len(owners), np.int64)
    ranks[order] = np.arange(len(owners)) - np.searchsorted(ranked, ranked)
    return ranks
