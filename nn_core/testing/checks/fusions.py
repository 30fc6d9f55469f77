"""The result of a fusion: that of its chain, function by function, in float64."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nn_core.context import context_scope
from nn_core.engine.dispatch.plugin_manager import REFERENCE
from nn_core.engine.graph.apply import operator_of
from nn_core.engine.graph.forward import KEEP_OUTPUTS, forward_plan
from nn_core.engine.graph.node import forward_order
from nn_core.errors import NNCoreError, PluginError
from nn_core.settings import without
from nn_core.testing.assertions import assert_allclose, require
from nn_core.testing.cases import context_of
from nn_core.testing.fusions import Chain, FusionCase, chains_of
from nn_core.testing.tolerance import CHAIN, terms, tolerance
from nn_core.variable import Variable

#: A plan binds its steps in the second pass.
PASSES: Final = 2
#: Numbers that are put in the place of the first ones: fused or not, they have to give the same pattern.
SPECIALS: Final = (np.nan, np.inf, -np.inf, 0.0)


def check_fusion(case: FusionCase) -> None:
    """Require that a fusion gives what its chain gives, for all samples that it takes, NaN and infinities too."""
    fusion = case.load()
    chains = list(fusion.chains())
    require(len(chains) > 0, f"{case}: chain must have two functions or more, got {len(fusion.links)}")
    taken = sum(_is_right(case, chain, fusion.function) for names in chains for chain in chains_of(case, names))
    require(
        taken > 0,
        f"{case}: some graph of {', '.join(chains[0])} must be run as {fusion.function}, got none of those that samples make"
        " (hint: nn_core.testing.chain_sample adds one)",
    )


def _is_right(case: FusionCase, chain: Chain, function: str) -> bool:
    """Return whether a chain is run as one function; if it is, compare the results."""
    with context_scope(case.context):
        try:
            y = chain.build()
            y.shape  # noqa: B018  # where shapes do not fit
        except NNCoreError:
            return False
        if not _runs(y, function):
            return False
        leaves = _leaves(y)
        for special in (False, True):
            if special and not _plant(leaves):
                break
            expected = _expected(y, leaves)
            for _ in range(PASSES if expected is not None else 0):
                _compare(case, chain, y, leaves, expected)
    return True


def _runs(y: Variable, function: str) -> bool:
    """Return whether a pass without gradients runs the function in place of the chain."""
    plan = forward_plan((y,), KEEP_OUTPUTS)
    last = None if plan is None or not plan.entries else plan.entries[-1].node
    return last is not None and last is not y.producer and last.spec.name == function


def _leaves(y: Variable) -> list[Variable]:
    inputs = [value for node in forward_order((y,)) for value in node.inputs]
    return list(dict.fromkeys(value for value in inputs if isinstance(value, Variable) and value.is_leaf))


def _plant(leaves: Sequence[Variable]) -> bool:
    """Put special numbers into the first input; whether it can hold some."""
    found = leaves[0].data.get_data("rw")
    if found.dtype.kind in "iub" or not found.size:
        return False
    flat = found.reshape(-1)
    flat[: len(SPECIALS)] = SPECIALS[: flat.size]
    return True


def _expected(y: Variable, leaves: Sequence[Variable]) -> Any:
    """Return the result function by function in float64 from the same numbers; None where a function refuses them."""
    values = {leaf.storage: np.array(leaf.data.get_data("r")) for leaf in leaves}
    with context_scope(context_of(REFERENCE, "float64")), without("inference_fusion"):
        try:
            return _computed(y, values)
        except NNCoreError:
            return None


def _computed(y: Variable, values: dict[Any, Any]) -> Any:
    made: dict[Any, Variable] = {}
    for storage, array in values.items():
        made[storage] = Variable.from_numpy_array(array.astype(np.float64) if array.dtype.kind not in "iub" else array)
    for node in forward_order((y,)):
        inputs = [None if value is None else made[value.storage] for value in node.inputs]
        made[node.storages[0]] = operator_of(node.spec)(*inputs, **node.args)
    result = made[y.storage]
    result.forward()
    return np.array(result.data.get_data("r"))


def _compare(case: FusionCase, chain: Chain, y: Variable, leaves: Sequence[Variable], expected: Any) -> None:
    try:
        y.forward(clear_buffer=True)
    except PluginError as error:  # the first pass compares by itself
        raise AssertionError(f"{case}, samples {chain.name}: {error}") from error
    n_terms = terms([leaf.shape for leaf in leaves], y.shape)
    rtol, atol = tolerance(case.dtype, n_terms, expected)
    factor = CHAIN * chain.loose
    given = np.array(y.data.get_data("r"))
    require(given.shape == expected.shape, f"{case}: the result must have shape {expected.shape}, got {given.shape}")
    wide = given if given.dtype.kind in "iub" else given.astype(np.float64)
    assert_allclose(wide, expected, rtol * factor, atol * factor, err_msg=f"{case}, samples {chain.name}")
