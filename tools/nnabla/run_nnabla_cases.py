"""Run cases of compare_nnabla.py: one program for both packages, in an interpreter that has the one to run.

    python run_nnabla_cases.py FOLDER FIRST

runs the cases of FOLDER (cases.json and <number>.npz, the inputs of each case) with the package nnabla and writes
<number>.nnabla.npz, the results, and <number>.nnabla.json, the errors. Cases before FIRST are left out, so that a run
continues after a case that ended the process. Nothing but nnabla and numpy is needed.
"""

import functools
import importlib
import json
import operator
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

#: Results by name: out0, out1, ...; grad_<input>; in_<input>, the inputs as the run leaves them.
Results = dict[str, np.ndarray]
#: The error where a call makes more functions than one, which have no gradient that runs alone.
SEVERAL = "a function of functions"


def run(package: str, case: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> tuple[Results, dict[str, str]]:
    """Return the results of a case with `package`, and the last line of the error of each pass that fails.

    With inputs named by "second" the gradients are those of their gradients; "held" is what gradients hold before, and
    "wants_loss" asks for the number of which the gradients are taken. The "manner" is "reset" for inputs that had another
    shape in a pass before, "recompute" for values that are dropped and computed again by the backward pass, "reset, recompute"
    for both, "add" and "write" for the gradient of the function alone, which is added to what its inputs hold or written over
    it.
    """
    nn, functions = importlib.import_module(package), importlib.import_module(f"{package}.functions")
    wrt = case["wrt"]
    manner = case.get("manner", "")
    resets, drops = "reset" in manner, "recompute" in manner
    first = longer(arrays) if resets else arrays
    variables = {name: _variable(nn, array, name in wrt, case.get("held", 0)) for name, array in first.items()}
    results: Results = {}
    try:
        with nn.recompute(drops):
            outputs, terms, loss = _graph(nn, functions, case, variables)
        if resets:
            loss.forward(clear_no_need_grad=drops)
            loss.backward(clear_buffer=drops)
            _reset(nn, variables, arrays, case["held"])
            for value, factor in terms:
                value.forward()
                factor.reset_shape(value.shape, True)
                factor.d = _factors(value.shape)
            _reset(nn, variables, arrays, case["held"])
        if not case["dynamic"]:
            for end in [*(outputs if case.get("second") else ()), loss]:
                end.forward(clear_no_need_grad=drops)
        if case.get("wants_loss"):
            results["loss"] = np.array(loss.d)
        if not drops:
            results.update({f"out{n}": np.array(output.d) for n, output in enumerate(outputs)})
        results.update({f"in_{name}": np.array(value.d) for name, value in variables.items()})
    except Exception as error:
        return results, {"forward": _last_line(error)}
    if wrt:
        try:
            if manner in ("add", "write"):
                _backward_alone(outputs, [value for value, _ in terms], accumulate=manner == "add")
            else:
                loss.backward(clear_buffer=drops)
            results.update({f"grad_{name}": np.array(variables[name].g) for name in wrt})
        except Exception as error:
            return results, {"backward": _last_line(error)}
    return results, {}


def _graph(nn: Any, functions: Any, case: Mapping[str, Any], variables: Mapping[str, Any]) -> tuple[Any, list[Any], Any]:
    """Call the function; returns its results, the terms of the loss as pairs of a value and its factor, and the loss."""
    inputs = [None if name is None else variables[name] for name in case["inputs"]]
    named = {key: variables[name] for key, name in case["named"].items()}
    settings = {key: _setting(value) for key, value in case["settings"].items()}
    with nn.auto_forward(case["dynamic"]):
        outputs = getattr(functions, case["api"])(*inputs, **named, **settings)
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        ends = [outputs[n] for n in case["sources"] or range(len(outputs))]
        loss, factors = _weighted_sum(nn, functions, ends)
        terms = list(zip(ends, factors, strict=True))
        if case.get("second"):
            gradients = nn.grad([loss], [variables[name] for name in case["second"]])
            loss, factors = _weighted_sum(nn, functions, gradients)
            terms += zip(gradients, factors, strict=True)
    return outputs, terms, loss


def longer(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return arrays that are twice as long, along the first axis of the first one and of those that are as long there."""
    length = next((array.shape[:1] for array in arrays.values()), ())
    return {
        name: np.concatenate([array, array]) if length and array.shape[:1] == length else array
        for name, array in arrays.items()
    }


def _reset(nn: Any, variables: Mapping[str, Any], arrays: Mapping[str, np.ndarray], held: float) -> None:
    """Give the variables the shapes and values of `arrays`, and their gradients what these hold before the pass."""
    for name, variable in variables.items():
        variable.reset_shape(arrays[name].shape, True)
        variable.data = nn.NdArray.from_numpy_array(arrays[name].copy())
        if variable.need_grad:
            variable.grad.fill(held) if held else variable.grad.zero()


def _backward_alone(outputs: Any, ends: Any, accumulate: bool) -> None:
    """Run the gradient of the only function between inputs and outputs, of which `ends` are part of the loss."""
    node = outputs[0].parent
    if node is None or any(value.parent is not None for value in node.inputs) or len(node.outputs) != len(outputs):
        raise ValueError(SEVERAL)
    for output in outputs:
        output.g = _factors(output.shape) if any(output is end for end in ends) else 0
    node.backward(node.inputs, outputs, accum=[accumulate] * len(node.inputs))


def _variable(nn: Any, array: np.ndarray, need_grad: bool, held: float) -> Any:
    """Return a variable with `array`, whose gradient holds `held` before the pass."""
    variable = nn.Variable.from_numpy_array(array.copy(), need_grad=need_grad)
    if need_grad:
        variable.grad.fill(held) if held else variable.grad.zero()
    return variable


def _setting(value: Any) -> Any:
    """`value`; "np.int8" stands for the dtype, and lists for tuples."""
    if isinstance(value, str) and value.startswith("np."):
        return getattr(np, value[3:])
    return tuple(value) if isinstance(value, list) else value


def _weighted_sum(nn: Any, functions: Any, outputs: Any) -> tuple[Any, list[Any]]:
    """Return a scalar that passes the gradient cos(1), cos(2), ... to the elements of each output, and these factors."""
    factors = [nn.Variable.from_numpy_array(_factors(output.shape)) for output in outputs]
    terms = [functions.sum(output * factor) for output, factor in zip(outputs, factors, strict=True)]
    return functools.reduce(operator.add, terms), factors


def _factors(shape: tuple[int, ...]) -> np.ndarray:
    return np.cos(1.0 + np.arange(int(np.prod(shape)))).reshape(shape).astype(np.float32)


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


def main(folder: Path, first: int) -> None:
    """Run the cases from number `first` on with NNabla."""
    cases = json.loads((folder / "cases.json").read_text())
    for number, case in enumerate(cases[first:], first):
        with np.load(folder / f"{number}.npz") as file:
            results, errors = run("nnabla", case, dict(file))
        np.savez(folder / f"{number}.nnabla.npz", **results)
        (folder / f"{number}.nnabla.json").write_text(json.dumps(errors))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
