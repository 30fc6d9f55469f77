"""Ensembles of decision trees: the leaves of each sample are found on the host, and their numbers are added up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from onnx import numpy_helper

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.host import on_host
from nn_ext_onnx.importing.ml import DOMAIN, label_at, labels_of, row, transformed
from nn_ext_onnx.importing.registry import Made, Node, operator
from nn_ext_onnx.importing.tree_exits import KINDS, LEAF, MEMBER, Exits, Tests, exits_of
from nn_ext_onnx.importing.values import Array, UnsupportedError

#: The sums and so on of what trees say, by name and by the code in TreeEnsemble.
_AGGREGATES: Final[dict[str, Callable[..., nn.Variable]]] = {"AVERAGE": F.mean, "SUM": F.sum, "MIN": F.min, "MAX": F.max}


@dataclass(slots=True)
class Trees:
    """Nodes of all trees, with places in these arrays in the place of numbers of nodes.

    Attributes:
        roots: of each tree.
        kinds: comparison of each node; `LEAF` for leaves.
        features: that are compared.
        values: that they are compared with.
        yes, no: the next node.
        missing: whether NaN goes to `yes`.
        members: the set that each node asks for, filled up with NaN, (nodes, largest set); None where none does.
    """

    roots: Array
    kinds: Array
    features: Array
    values: Array
    yes: Array
    no: Array
    missing: Array
    members: Array | None = None
    _tests: Tests = field(init=False, repr=False)
    _exits: Exits | None = field(init=False, repr=False)
    _next: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Say for twice the place of a node, and one more for yes, where it leads: leaves to themselves."""
        self._tests = Tests.of(self.kinds, self.values, self.missing, self.members)
        self._exits = exits_of(self, self._tests)
        self._next = np.stack((self.no, self.yes), axis=1).reshape(-1)
        leaves = np.flatnonzero(self.kinds == LEAF)
        self._next[2 * leaves] = self._next[2 * leaves + 1] = leaves

    def __call__(self, arrays: Sequence[Array | None]) -> list[Array]:
        """Return the leaf of each sample in each tree."""
        x = np.asarray(arrays[0], self.values.dtype)
        return [self._walked(x) if self._exits is None else self._exits.found(x)]

    def _walked(self, x: Array) -> Array:
        samples = np.arange(len(x))[:, None]
        places = np.broadcast_to(self.roots, (len(x), len(self.roots)))
        for _ in range(len(self.kinds) + 1):
            holds = self._tests.at(places).hold(x[samples, self.features[places]])
            after = self._next[2 * places + holds]
            if (after == places).all():
                return after.astype(np.int64)
            places = after
        raise UnsupportedError("a tree that has no end")


def _of_lists(node: Node) -> tuple[Trees, dict[tuple[int, int], int]]:
    """Return the trees of a classifier or a regressor, and the places of nodes by numbers of tree and node."""
    trees, numbers = node.attr("nodes_treeids"), node.attr("nodes_nodeids")
    keys = list(zip(trees, numbers, strict=True))
    places = {key: place for place, key in enumerate(keys)}
    if len(places) < len(keys):
        raise UnsupportedError("two nodes with one number")
    modes = node.attr("nodes_modes")
    if set(modes) - {*KINDS, "LEAF"}:
        raise UnsupportedError(f"nodes_modes {sorted(set(modes) - {*KINDS, 'LEAF'})}")
    kinds = np.array([LEAF if mode == "LEAF" else KINDS.index(mode) for mode in modes])

    def next_of(name: str) -> Array:
        given = node.attr(name)
        return np.array(
            [0 if kind == LEAF else places[tree, one] for tree, one, kind in zip(trees, given, kinds, strict=True)]
        )

    firsts = {tree: place for place, tree in reversed(list(enumerate(trees)))}
    missing = node.attr("nodes_missing_value_tracks_true") or [0] * len(kinds)
    values = np.asarray(_numbers(node, "nodes_values"))
    yes, no = next_of("nodes_truenodeids"), next_of("nodes_falsenodeids")
    roots = _roots(np.array(sorted(firsts.values())), np.asarray(trees), kinds, yes, no)
    made = Trees(roots, kinds, np.array(node.attr("nodes_featureids")), values, yes, no, np.array(missing, bool))
    return made, places


def _roots(firsts: Array, trees: Array, kinds: Array, yes: Array, no: Array) -> Array:
    """Return the node of each tree to which no other leads."""
    inner = kinds != LEAF
    is_next = np.zeros(len(kinds), bool)
    is_next[np.concatenate((yes[inner], no[inner])).astype(int)] = True
    candidates = np.flatnonzero(~is_next)
    if len(candidates) != len(firsts) or len(np.unique(trees[candidates])) != len(firsts):
        raise UnsupportedError("trees with another number of roots than one")
    n_seen, front = 0, candidates
    while len(front) and n_seen <= len(kinds):
        n_seen += len(front)
        front = front[inner[front]]
        front = np.concatenate((yes[front], no[front])).astype(int)
    if n_seen != len(kinds):
        raise UnsupportedError("nodes that are not reached once from a root")
    return candidates


def _numbers(node: Node, name: str) -> Array:
    """Return floating-point numbers, which may be a list or a tensor of another type."""
    tensor = node.attr(f"{name}_as_tensor")
    return np.asarray(node.attr(name), np.float32) if tensor is None else numpy_helper.to_array(tensor)


def _scores(node: Node, trees: Trees, weights: Array, aggregate: str, base: Any) -> nn.Variable:
    """Return what the leaves of each sample say together, (B, targets)."""
    if node.ndim != 2 or trees.features.max(initial=0) >= node.shape[1]:
        raise UnsupportedError(f"x of shape {node.shape} for trees that read feature {trees.features.max(initial=0)}")
    if aggregate not in _AGGREGATES:
        raise UnsupportedError(f"aggregate_function {aggregate!r}")
    (leaves,) = on_host(node.kind, trees, [node[0]], [(node.shape[0], len(trees.roots))])
    table = nn.Variable.from_numpy_array(weights.astype(np.float32))
    scores = _AGGREGATES[aggregate](F.gather(table, leaves, axis=0), axis=1)
    return scores + row(base) if base is not None and len(base) else scores


def _weights(node: Node, kind: str, places: dict[tuple[int, int], int], n_targets: int) -> Array:
    """Return the numbers of all nodes, (nodes, targets)."""
    weights = np.zeros((len(places), n_targets))
    given = [node.attr(f"{kind}_{name}") for name in ("treeids", "nodeids", "ids")]
    for tree, number, target, weight in zip(*given, _numbers(node, f"{kind}_weights"), strict=True):
        weights[places[tree, number], target] += weight
    return weights


def _base(node: Node) -> Array | None:
    has_any = node.attr("base_values") is not None or node.attr("base_values_as_tensor") is not None
    return _numbers(node, "base_values") if has_any else None


@operator("TreeEnsembleRegressor", domains=DOMAIN, takes_whole=True)
def _regressor(node: Node) -> nn.Variable:
    node.gives(np.dtype("float32"))
    trees, places = _of_lists(node)
    weights = _weights(node, "target", places, node.attr("n_targets", 1))
    return transformed(node, _scores(node, trees, weights, node.attr("aggregate_function", "SUM"), _base(node)))


@operator("TreeEnsembleClassifier", domains=DOMAIN, takes_whole=True)
def _classifier(node: Node) -> Made:
    labels = labels_of(node, "classlabels_int64s")
    node.gives(np.dtype("int64"), np.dtype("float32"))
    trees, places = _of_lists(node)
    classes = set(node.attr("class_ids"))
    if len(labels) == 2 and len(classes) == 1:
        return _binary(node, trees, places, labels, classes.pop())
    scores = _scores(node, trees, _weights(node, "class", places, len(labels)), "SUM", _base(node))
    return [label_at(labels, F.max(scores, axis=1, only_index=True)), transformed(node, scores)]


def _binary(node: Node, trees: Trees, places: dict[tuple[int, int], int], labels: list[int], target: int) -> Made:
    """Return label and scores of two classes of which one is counted: its probability, or its distance from 0."""
    base = _base(node)
    if base is not None and len(base) != 1:
        raise UnsupportedError(f"{len(base)} base_values for two classes of which one is counted")
    weights = _weights(node, "class", places, target + 1)[:, target:]
    score = _scores(node, trees, weights, "SUM", base)
    is_share = bool((_numbers(node, "class_weights") >= 0).all())
    kind = node.attr("post_transform", "NONE")
    if kind not in ("NONE", "LOGISTIC"):
        raise UnsupportedError(f"post_transform {kind!r} of two classes of which one is counted")
    label = label_at(labels, F.reshape(F.greater_scalar(score, 0.5 if is_share else 0.0), (-1,)))
    if is_share:
        return [label, F.concatenate(1.0 - score, score, axis=1)]
    both = F.concatenate(-score, score, axis=1)
    return [label, F.sigmoid(both) if kind == "LOGISTIC" else both]


def _sets(node: Node, kinds: Array, n_leaves: int) -> Array | None:
    """Return the set of each node that asks for one, in their order; in the model NaN ends each."""
    places = np.flatnonzero(kinds == MEMBER)
    if not len(places):
        return None
    values = numpy_helper.to_array(node.attr("membership_values"))
    ends = np.flatnonzero(np.isnan(values))
    if len(ends) < len(places):
        raise UnsupportedError(f"{len(ends)} sets of members for {len(places)} nodes")
    starts = [0, *(ends + 1)]
    table = np.full((len(kinds) + n_leaves, int(ends.max(initial=0)) + 1), np.nan, values.dtype)
    for place, start, end in zip(places, starts, ends, strict=False):
        table[place, : end - start] = values[start:end]
    return table


def _within(node: Node, name: str, limits: Any) -> Array:
    """Return numbers of nodes, leaves or targets, which must be below limits."""
    numbers = np.asarray(node.attr(name))
    wrong = numbers[(numbers < 0) | (numbers >= limits)]
    if wrong.size:
        raise UnsupportedError(f"{name} must be numbers below {np.max(limits)}, got {wrong[0]}")
    return numbers


@operator("TreeEnsemble", domains=DOMAIN, takes_whole=True)
def _tree_ensemble(node: Node) -> nn.Variable:
    """Build an ensemble whose leaves are numbered apart from the other nodes, and have one target each."""
    kinds = numpy_helper.to_array(node.attr("nodes_modes")).astype(int)
    if (kinds >= LEAF).any():
        raise UnsupportedError(f"nodes_modes {sorted(set(kinds[kinds >= LEAF].tolist()))}")
    n_targets = node.attr("n_targets", 1)
    weights, targets = numpy_helper.to_array(node.attr("leaf_weights")), _within(node, "leaf_targetids", n_targets)
    n_nodes, n_leaves = len(kinds), len(targets)

    def with_leaves(values: Any) -> Array:
        return np.concatenate((np.asarray(values), np.zeros(n_leaves, np.asarray(values).dtype)))

    def next_of(name: str) -> Array:
        is_leaf = np.asarray(node.attr(f"nodes_{name}leafs"), bool)
        places = _within(node, f"nodes_{name}nodeids", np.where(is_leaf, n_leaves, n_nodes))
        return with_leaves(np.where(is_leaf, places + n_nodes, places))

    missing = node.attr("nodes_missing_value_tracks_true") or [0] * n_nodes
    trees = Trees(
        _within(node, "tree_roots", n_nodes),
        np.concatenate((kinds, np.full(n_leaves, LEAF))),
        with_leaves(node.attr("nodes_featureids")),
        with_leaves(numpy_helper.to_array(node.attr("nodes_splits"))),
        next_of("true"),
        next_of("false"),
        with_leaves(np.asarray(missing, bool)),
        _sets(node, kinds, n_leaves),
    )
    table = np.zeros((n_nodes + n_leaves, n_targets))
    table[np.arange(n_leaves) + n_nodes, targets] = weights
    if node.attr("post_transform", 0):
        raise UnsupportedError("post_transform, whose numbers onnxruntime reads otherwise than the definition says")
    return _scores(node, trees, table, tuple(_AGGREGATES)[node.attr("aggregate_function", 1)], None)
