"""Classical models, the domain ai.onnx.ml, beside onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from nn_core.ext import ArgumentError
from nn_ext_onnx import load
from nn_ext_onnx.backend import prepare
from nn_ext_onnx.exporting.verification import run_model
from nn_ext_onnx.importing.tree_exits import LEAF, MEMBER
from nn_ext_onnx.importing.trees import Trees

pytest.importorskip("onnxruntime", reason="the judge")

X = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def model_of(kind, attributes, inputs, n_outputs=1, version=3):
    names = [f"y{n}" for n in range(n_outputs)]
    types = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in inputs.items()}
    ports = [helper.make_tensor_value_info(name, types[name], array.shape) for name, array in inputs.items()]
    node = helper.make_node(kind, list(inputs), names, domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([node], "g", ports, [onnx.ValueInfoProto(name=name) for name in names])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def tree(rng, depth, nodes, leaves, number):
    """Add a random tree to lists of nodes and leaves; return the number of its root."""
    place = len(nodes)
    nodes.append(None)
    if depth == 0 or rng.random() < 0.2:
        nodes[place] = (number, place, 0, 0.0, "LEAF", 0, 0, 0)
        leaves.append((number, place))
        return place
    yes, no = (tree(rng, depth - 1, nodes, leaves, number) for _ in range(2))
    mode = MODES[rng.integers(6)] if number % 2 else "BRANCH_LEQ"
    value = float(X[rng.integers(20), feature := int(rng.integers(4))])
    nodes[place] = (number, place, feature, value, mode, yes, no, int(rng.integers(2)))
    return place


def ensemble(kind, n_targets, is_positive=False, seed=0, target=None):
    """Return the attributes of a random ensemble."""
    rng = np.random.default_rng(seed)
    nodes, leaves = [], []
    for number in range(5):
        tree(rng, 4, nodes, leaves, number)
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    columns = {f"nodes_{name}": list(column) for name, column in zip(names, zip(*nodes, strict=True), strict=True)}
    weights = rng.normal(size=len(leaves))
    return {
        **columns,
        f"{kind}_treeids": [one for one, _ in leaves],
        f"{kind}_nodeids": [one for _, one in leaves],
        f"{kind}_ids": [int(rng.integers(n_targets)) if target is None else target for _ in leaves],
        f"{kind}_weights": [float(abs(w) if is_positive else w) for w in weights],
    }


def apart():
    """Return the attributes of TreeEnsemble: one tree whose leaves are no nodes."""
    return {
        "n_targets": 2,
        "aggregate_function": 1,
        "tree_roots": [0],
        "nodes_modes": numpy_helper.from_array(np.array([0, 2, 1], np.uint8)),
        "nodes_featureids": [0, 2, 1],
        "nodes_splits": numpy_helper.from_array(np.array([0.1, -0.2, 0.3], np.float32)),
        "nodes_truenodeids": [1, 0, 1],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 2, 3],
        "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": numpy_helper.from_array(np.array([5.0, 12.0, -3.0, 2.0], np.float32)),
    }


LINEAR = {"coefficients": X[:3].reshape(-1).tolist(), "intercepts": [0.1, -0.2, 0.3]}
LABELS = {"classlabels_int64s": [7, 3, 5]}
GAPS = np.where(X > 1, np.float32(np.nan), X)
#: Operator, attributes, inputs by name, number of outputs.
CASES = {
    "scaler": ("Scaler", {"offset": [1.0, 2.0, 3.0, 4.0], "scale": [0.5, 1.0, 2.0, 3.0]}, {"x": X}, 1),
    "scaler_of_integers": ("Scaler", {"offset": [1.0], "scale": [0.5]}, {"x": (X * 9).astype(np.int64)}, 1),
    "normalizer_max": ("Normalizer", {"norm": "MAX"}, {"x": np.abs(X)}, 1),
    "normalizer_l1": ("Normalizer", {"norm": "L1"}, {"x": X * (np.arange(20) > 2)[:, None].astype(np.float32)}, 1),
    "normalizer_l2": ("Normalizer", {"norm": "L2"}, {"x": X}, 1),
    "binarizer": ("Binarizer", {"threshold": 0.25}, {"x": X}, 1),
    "imputer": (
        "Imputer", {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": float("nan")}, {"x": GAPS}, 1,
    ),
    "features": ("FeatureVectorizer", {"inputdimensions": [4, 2]}, {"x": X, "z": X[:, 1:3]}, 1),
    "columns": ("ArrayFeatureExtractor", {}, {"x": X, "i": np.array([2, 0, 3], np.int64)}, 1),
    "regression": ("LinearRegressor", {**LINEAR, "targets": 3}, {"x": X}, 1),
    "classification": (
        "LinearClassifier", {**LINEAR, "classlabels_ints": [7, 3, 5], "post_transform": "SOFTMAX"}, {"x": X}, 2,
    ),
    "logistic": ("LinearClassifier", {**LINEAR, "classlabels_ints": [7, 3, 5], "post_transform": "LOGISTIC"}, {"x": X}, 2),
    "trees": ("TreeEnsembleRegressor", {**ensemble("target", 3), "n_targets": 3}, {"x": X}, 1),
    "trees_missing": ("TreeEnsembleRegressor", {**ensemble("target", 2), "n_targets": 2}, {"x": GAPS}, 1),
    "trees_mean": (
        "TreeEnsembleRegressor",
        {**ensemble("target", 1), "n_targets": 1, "aggregate_function": "AVERAGE", "base_values": [0.5]}, {"x": X}, 1,
    ),
    "forest": ("TreeEnsembleClassifier", {**ensemble("class", 3, True), **LABELS}, {"x": X}, 2),
    "boosting": (
        "TreeEnsembleClassifier",
        {**ensemble("class", 3), **LABELS, "base_values": [0.1, 0.2, -0.1], "post_transform": "SOFTMAX"}, {"x": X}, 2,
    ),
    "two_classes": (
        "TreeEnsembleClassifier", {**ensemble("class", 2, target=0), "classlabels_int64s": [4, 9]}, {"x": X}, 2,
    ),
    "two_classes_logistic": (
        "TreeEnsembleClassifier",
        {**ensemble("class", 2, target=0), "classlabels_int64s": [4, 9], "post_transform": "LOGISTIC"}, {"x": X}, 2,
    ),
    "two_classes_shares": (
        "TreeEnsembleClassifier", {**ensemble("class", 2, True, target=0), "classlabels_int64s": [4, 9]}, {"x": X}, 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(CASES))
def test_results_are_those_of_onnxruntime(case):
    kind, attributes, inputs, n_outputs = CASES[case]
    model = model_of(kind, attributes, inputs, n_outputs)
    found, wanted = prepare(model).run(inputs), run_model(model, inputs)
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_leaves_that_are_numbered_apart():
    model = model_of("TreeEnsemble", apart(), {"x": X}, version=5)
    np.testing.assert_allclose(prepare(model).run({"x": X})[0], run_model(model, {"x": X})[0], rtol=1e-5)


def random_trees(rng, n_leaves, kinds):
    """Return trees with some numbers of leaves, grown leaf by leaf."""
    roots, nodes = [], []
    for count in n_leaves:
        leaves = [len(nodes)]
        roots.append(leaves[0])
        nodes.append([LEAF, 0, 0.0, 0, 0, False])
        while len(leaves) < count:
            place = leaves.pop(rng.integers(len(leaves)))
            yes = len(nodes)
            nodes[place] = [rng.choice(kinds), rng.integers(4), X[rng.integers(20), 0], yes, yes + 1, rng.random() < 0.3]
            nodes += [[LEAF, 0, 0.0, 0, 0, False] for _ in range(2)]
            leaves += [yes, yes + 1]
    kind, features, values, yes, no, missing = map(np.array, zip(*nodes, strict=True))
    members = rng.choice(X[:, 0], (len(nodes), 3)) if MEMBER in kinds else None
    return Trees(np.array(roots), kind, features, values, yes, no, missing, members)


@pytest.mark.parametrize("kinds", [(0,), (4,), (0, 1, 2, 3, 4, 5), (0, MEMBER)], ids=str)
@pytest.mark.parametrize("n_leaves", [(1,), (64,), (2, 1, 63, 64, 30)], ids=str)
def test_all_tests_at_once_lead_where_the_walk_leads(n_leaves, kinds):
    rng = np.random.default_rng(3)
    trees = random_trees(rng, n_leaves, kinds)
    assert trees._exits is not None
    x = rng.choice(X[:, 0], (3000, 4))
    x[rng.random(x.shape) < 0.1] = np.nan
    for samples in (x, x[:1], x[:0]):
        np.testing.assert_array_equal(trees([samples])[0], trees._walked(samples))


def test_trees_with_more_leaves_than_bits_are_walked():
    trees = random_trees(np.random.default_rng(0), (65, 3), (0,))
    assert trees._exits is None
    assert (trees.kinds[trees([X])[0]] == LEAF).all()


@pytest.mark.parametrize("name", ["tree_roots", "nodes_truenodeids", "nodes_falsenodeids", "leaf_targetids"])
@pytest.mark.parametrize("number", [99, -1])
def test_numbers_of_nodes_that_there_are_not_are_refused(name, number):
    attributes = apart()
    attributes[name] = [number, *attributes[name][1:]]
    with pytest.raises(ArgumentError, match=rf"{name} must be numbers below \d+, got {number}"):
        load(model_of("TreeEnsemble", attributes, {"x": X}, version=5))


@pytest.mark.parametrize(
    ("kind", "attributes", "message"),
    [
        ("LinearClassifier", {**LINEAR, "classlabels_strings": ["a", "b", "c"]}, "labels that are texts"),
        ("LinearRegressor", {**LINEAR, "targets": 2}, r"12 coefficients for 2 results of x \(20, 4\)"),
        ("LinearRegressor", {**LINEAR, "targets": 3, "post_transform": "PROBIT"}, "post_transform 'PROBIT'"),
        ("TreeEnsembleRegressor", {**ensemble("target", 1), "nodes_featureids": [9] * 200}, "trees that read feature 9"),
        ("TreeEnsemble", {**apart(), "post_transform": 1}, "post_transform, whose numbers onnxruntime reads otherwise"),
    ],
)
def test_models_that_cannot_be_built_are_refused(kind, attributes, message):
    n_outputs = 1 + kind.endswith("Classifier")
    with pytest.raises(ArgumentError, match=rf"ai\.onnx\.ml\.{kind} .*: .*{message}"):
        load(model_of(kind, attributes, {"x": X}, n_outputs, 5 if kind == "TreeEnsemble" else 3))


def test_trees_in_a_circle_are_refused():
    attributes = ensemble("target", 1)
    first = next(n for n, mode in enumerate(attributes["nodes_modes"]) if mode != "LEAF")
    attributes["nodes_truenodeids"][first] = attributes["nodes_nodeids"][first]
    with pytest.raises(ArgumentError, match="nodes that are not reached once from a root"):
        load(model_of("TreeEnsembleRegressor", attributes, {"x": X}))
