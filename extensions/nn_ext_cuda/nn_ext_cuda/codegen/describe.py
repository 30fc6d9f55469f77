"""Descriptions of the arrays of a call, in the order in which runners receive them, and their names."""

from collections.abc import Sequence

from nn_core.ext import ArrayDesc, Call


def forward_arrays(call: Call) -> list[ArrayDesc | None]:
    """Return inputs and outputs (aux outputs included)."""
    return [*call.inputs, *call.outputs]


def backward_arrays(call: Call, wanted: Sequence[bool]) -> list[ArrayDesc | None]:
    """Return inputs and outputs that the gradient needs, gradients of the visible outputs, gradients of the wanted inputs."""
    needs = call.spec.needed(call.args)
    inputs = [desc if name in needs else None for name, desc in zip(declared_names(call), call.inputs, strict=True)]
    outputs = [desc if name in needs else None for name, desc in zip(output_names(call), call.outputs, strict=True)]
    gradients = [desc if want else None for desc, want in zip(call.inputs, wanted, strict=True)]
    return [*inputs, *outputs, *call.outputs[: n_visible(call)], *gradients]


def forward_names(call: Call) -> list[str]:
    """Names of `forward_arrays`; the inputs of a variadic one are numbered."""
    return [*input_names(call), *output_names(call)]


def backward_names(call: Call) -> list[str]:
    """Names of `backward_arrays`: a gradient is called d and the name of its array."""
    visible = [f"d{name}" for name in output_names(call)[: n_visible(call)]]
    return [*input_names(call), *output_names(call), *visible, *[f"d{name}" for name in input_names(call)]]


def input_names(call: Call) -> list[str]:
    """Return the name of each input; those of a variadic one are x_0, x_1, ..."""
    names = declared_names(call)
    if not call.spec.variadic:
        return names
    fixed = len(call.spec.inputs) - 1
    return [name if k < fixed else f"{name}_{k - fixed}" for k, name in enumerate(names)]


def declared_names(call: Call) -> list[str]:
    """Return the name of each input in the specification; a variadic one repeats its name."""
    names = [entry.name for entry in call.spec.inputs]
    return (names + names[-1:] * (len(call.inputs) - len(names)))[: len(call.inputs)]


def output_names(call: Call) -> list[str]:
    """Return the name of each output; a variadic one repeats its name."""
    names = [entry.name for entry in call.spec.outputs]
    return (names + names[-1:] * (len(call.outputs) - len(names)))[: len(call.outputs)]


def n_visible(call: Call) -> int:
    """Return number of outputs that the caller of the function gets."""
    return len(call.outputs) - sum(entry.aux for entry in call.spec.outputs)
