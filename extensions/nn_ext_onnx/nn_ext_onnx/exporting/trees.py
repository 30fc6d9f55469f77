"""Ensembles of decision trees as nodes of the domain ai.onnx.ml."""

from typing import Any, Final

import numpy as np
from onnx import numpy_helper

from nn_ext_onnx.exporting.registry import NotExportableError
from nn_ext_onnx.exporting.values import FLOAT, INT, GraphWriter, Value
from nn_ext_onnx.importing.tree_exits import KINDS, LEAF, MEMBER
from nn_ext_onnx.importing.trees import Trees

_DOMAIN: Final = "ai.onnx.ml"
_VERSION: Final = 3
#: float32 has all numbers of leaves up to here.
_MOST: Final = 2**24


def leaves(graph: GraphWriter, trees: Trees, x: Value) -> Value:
    """Return the leaf of each sample in each tree: a regressor in which each tree has a target, the number of its leaf.

    Raises:
        NotExportableError: when a node asks for members of a set, two lead to one node, or there are too many.
    """
    if (trees.kinds == MEMBER).any():
        raise NotExportableError("a tree that asks whether a feature is one of a set cannot be written")
    if len(trees.kinds) > _MOST:
        raise NotExportableError(f"trees must have at most {_MOST} nodes, got {len(trees.kinds)}")
    owners, places = _owners(trees)
    ends = places[trees.kinds[places] == LEAF]
    numbers: dict[str, Any] = {}
    for name, values in (("nodes_values", trees.values[places]), ("target_weights", ends)):
        if trees.values.dtype == FLOAT:
            numbers[name] = values.astype(np.float32).tolist()
        else:
            numbers[f"{name}_as_tensor"] = numpy_helper.from_array(values.astype(np.float64))
    graph.domains[_DOMAIN] = _VERSION
    found = graph.op(
        "TreeEnsembleRegressor",
        x.cast(trees.values.dtype),
        dtype=FLOAT,
        domain=_DOMAIN,
        n_targets=len(trees.roots),
        nodes_treeids=owners[places].tolist(),
        nodes_nodeids=places.tolist(),
        nodes_featureids=trees.features[places].tolist(),
        nodes_modes=["LEAF" if kind == LEAF else KINDS[kind] for kind in trees.kinds[places]],
        nodes_truenodeids=np.where(trees.kinds == LEAF, 0, trees.yes)[places].tolist(),
        nodes_falsenodeids=np.where(trees.kinds == LEAF, 0, trees.no)[places].tolist(),
        nodes_missing_value_tracks_true=trees.missing[places].astype(int).tolist(),
        target_treeids=owners[ends].tolist(),
        target_nodeids=ends.tolist(),
        target_ids=owners[ends].tolist(),
        **numbers,
    )
    return found.cast(INT)


def _owners(trees: Trees) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the tree of each node, -1 for nodes that no root leads to; and the nodes tree by tree, each from its root on, as
    onnxruntime needs them.
    """
    owners, order = np.full(len(trees.kinds), -1), []
    for tree, root in enumerate(trees.roots):
        front = [int(root)]
        while front:
            place = front.pop()
            if owners[place] >= 0:
                raise NotExportableError("a tree with a node to which two lead cannot be written")
            owners[place] = tree
            order.append(place)
            if trees.kinds[place] != LEAF:
                front += [int(trees.no[place]), int(trees.yes[place])]
    return owners, np.array(order)
