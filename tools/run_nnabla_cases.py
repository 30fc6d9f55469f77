"""Run cases of compare_nnabla.py: one program for both packages, in an interpreter that has the one to run.

    python run_nnabla_cases.py FOLDER FIRST

runs the cases of FOLDER (cases.json and <number>.npz, the inputs of each case) with the package nnabla and writes
<number>.nnabla.npz, the results, and <number>.nnabla.json, the errors. Cases before FIRST are left out, so that a run
continues after a case that ended the process. Nothing but nnabla and numpy is needed.
"""

import importlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

#: Results by name: out0, out1, ...; grad_<input>; in_<input>, the inputs as the run leaves them.
Results = dict[str, np.ndarray]


def run(package: str, case: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> tuple[Results, dict[str, str]]:
    """Return the results of a case with `package`, and the last line of the error of each pass that fails.

    With inputs named by "second" the gradients are those of their gradients; "held" is what gradients hold before, and
    "wants_loss" asks for the number of which the gradients are taken.
    """
    nn, functions = importlib.import_module(package), importlib.import_module(f"{package}.functions")
    wrt = case["wrt"]
    variables = {name: _variable(nn, array, name in wrt, case.get("held", 0)) for name, array in arrays.items()}
    inputs = [None if name is None else variables[name] for name in case["inputs"]]
    named = {key: variables[name] for key, name in case["named"].items()}
    settings = {key: _setting(value) for key, value in case["settings"].items()}
    results: Results = {}
    try:
        with nn.auto_forward(case["dynamic"]):
            outputs = getattr(functions, case["api"])(*inputs, **named, **settings)
            outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            sources = case["sources"] or range(len(outputs))
            loss = _weighted_sum(nn, functions, [outputs[n] for n in sources])
            if case.get("second"):
                loss = _weighted_sum(nn, functions, nn.grad([loss], [variables[name] for name in case["second"]]))
        if not case["dynamic"]:
            for end in [*(outputs if case.get("second") else ()), loss]:
                end.forward()
        if case.get("wants_loss"):
            results["loss"] = np.array(loss.d)
        results.update({f"out{n}": np.array(output.d) for n, output in enumerate(outputs)})
        results.update({f"in_{name}": np.array(value.d) for name, value in variables.items()})
    except Exception as error:
        return results, {"forward": _last_line(error)}
    if wrt:
        try:
            loss.backward()
            results.update({f"grad_{name}": np.array(variables[name].g) for name in wrt})
        except Exception as error:
            return results, {"backward": _last_line(error)}
    return results, {}


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


def _weighted_sum(nn: Any, functions: Any, outputs: Any) -> Any:
    """A scalar that passes the gradient cos(1), cos(2), ... to the elements of each output."""
    total = None
    for output in outputs:
        weights = np.cos(1.0 + np.arange(int(np.prod(output.shape)))).reshape(output.shape).astype(np.float32)
        term = functions.sum(output * nn.Variable.from_numpy_array(weights))
        total = term if total is None else total + term
    return total


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
