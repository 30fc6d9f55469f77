"""A look at what a module that does not train has built: functions that do what they do in training."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from nn_core.logger import logger
from nn_core.variable import Variable

#: Functions that training needs, with the setting that says so where there is one.
_OF_TRAINING: Final = {"Dropout": "p", "BatchNormalization": "batch_stat", "FusedBatchNormalization": "batch_stat"}
_REMEDIES: Final = {
    "Dropout": "F.dropout(x, p) if self.training else x",
    "BatchNormalization": "PF.batch_normalization(x, batch_stat=self.training)",
}


def warn_of_training(module: Any, given: Any, result: Any) -> None:
    """Log that functions between what a module was given and its results drop or normalize as in training."""
    found = functions_of_training(given, result)
    if not found:
        return
    remedies = "; ".join(_REMEDIES[name] for name in found if name in _REMEDIES)
    logger.warning(
        "%s: a module with training=False should do nothing that only training does, got %s, whatever the flag says%s",
        type(module).__name__,
        ", ".join(found),
        f"\n  hint: {remedies}" if remedies else "",
    )


def functions_of_training(given: Any, result: Any) -> list[str]:
    """Return the names of functions between what a network was given and its results that do what only training needs."""
    return sorted(set(_functions(result, set(_variables(given)))))


def _functions(result: Any, given: set[Variable]) -> Iterator[str]:
    """Yield the names of the functions of a graph that do what training needs, down to the variables that are given."""
    waiting, seen = list(_variables(result)), set(given)
    while waiting:
        variable = waiting.pop()
        if variable in seen:
            continue
        seen.add(variable)
        function = variable.parent
        if function is None:
            continue
        setting = _OF_TRAINING.get(function.name)
        if setting is not None and function.args.get(setting):
            yield function.name
        waiting += function.inputs


def _variables(value: Any) -> Iterator[Variable]:
    if isinstance(value, Variable):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _variables(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _variables(inner)
