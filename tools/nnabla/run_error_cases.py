"""Run cases of error_classes.py with one package: which class of exception does each call raise?

    python run_error_cases.py PACKAGE FOLDER

A line of FOLDER/PACKAGE.json for each case: the names of the exception's class and of its bases, the stage in which it was
raised (call, forward or backward) and its first line; an empty list where there was none. The cases run in forks, since NNabla
ends the process in some. Nothing but the package and numpy is needed.
"""

import importlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

#: Seconds after which a case is stopped.
LIMIT = 20


def run(package: str, case: Mapping[str, Any]) -> list[Any]:
    """Return the classes of the exception of a case, the stage and the text; an empty list where there was none."""
    nn, functions = importlib.import_module(package), importlib.import_module(f"{package}.functions")
    stage = "call"
    try:
        positional = [_value(nn, value) for value in case["inputs"]]
        named = {key: _value(nn, value) for key, value in case["named"].items()}
        with nn.auto_forward(case["dynamic"]):
            outputs = getattr(functions, case["api"])(*positional, **named)
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        stage = "forward"
        for output in outputs:
            output.forward()
        stage = "backward"
        if any(output.need_grad for output in outputs):
            outputs[0].backward()
    except Exception as error:
        text = (str(error).strip().splitlines() or [""])[-1 if package == "nnabla" else 0]
        return [[kind.__name__ for kind in type(error).__mro__], stage, text[:200]]
    return []


def _value(nn: Any, value: Any) -> Any:
    """Return an argument: a Variable of {"variable": array}, an array, a dtype, or what stands in the case."""
    if not isinstance(value, dict):
        return tuple(map(tuple_of, value)) if isinstance(value, list) else _dtype(value)
    if "array" in value:
        return np.array(value["array"], value["dtype"]).reshape(value["shape"])
    if "list" in value:
        return value["list"]
    array = np.array(value["variable"], value["dtype"]).reshape(value["shape"])
    return nn.Variable.from_numpy_array(array, need_grad=array.dtype.kind == "f")


def tuple_of(value: Any) -> Any:
    """Return tuples in place of lists, which JSON has instead."""
    return tuple(map(tuple_of, value)) if isinstance(value, list) else value


def _dtype(value: Any) -> Any:
    return getattr(np, value[3:]) if isinstance(value, str) and value.startswith("np.") else value


def in_processes(package: str, cases: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """Run cases in forks of this process, a new one after each case that ends its process."""
    number = 0
    while number < len(cases):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            for case in cases[number:]:
                signal.alarm(LIMIT)  # which ends the process
                os.write(writing, (json.dumps(run(package, case)) + "\n").encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as file:
            for line in file:
                number += 1
                yield json.loads(line)
        os.waitpid(child, 0)
        if number < len(cases):
            number += 1
            yield [["the process ends"], "", ""]


def main(package: str, folder: Path) -> None:
    """Run all cases of `folder` with `package`."""
    importlib.import_module(f"{package}.functions")
    if package == "nn_core":
        importlib.import_module("nn_core.compat.unchanged").run_unchanged()
    cases = json.loads((folder / "cases.json").read_text())
    results = list(in_processes(package, cases))
    (folder / f"{package}.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
