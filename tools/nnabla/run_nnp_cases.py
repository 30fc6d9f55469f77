"""Run cases of compare_nnp.py: one program for both packages, in an interpreter that has the one to run.

    python run_nnp_cases.py FOLDER PACKAGE write|read FIRST

`write` saves a network of each case of FOLDER as <number>.<package>.nnp and computes it; `read` loads the networks that the
other package has saved, and computes those. Cases before FIRST are left out, so that a run continues after a case that ended
the process. Nothing but the package and numpy is needed.
"""

import importlib
import json
import sys
from pathlib import Path

import numpy as np

PACKAGES = ("nn_core", "nnabla")


def write(nn, package, case, arrays, path):
    """Save the network of a case and return its results."""
    functions = importlib.import_module(f"{package}.functions")
    save = importlib.import_module(f"{package}.utils.save").save
    variables = {name: nn.Variable.from_numpy_array(array.copy()) for name, array in arrays.items()}
    inputs = [None if name is None else variables[name] for name in case["inputs"]]
    named = {key: variables[name] for key, name in case["named"].items()}
    settings = {key: setting(value) for key, value in case["settings"].items()}
    outputs = getattr(functions, case["api"])(*inputs, **named, **settings)
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    for output in outputs:
        output.persistent = True
    network = {
        "name": "net",
        "batch_size": 1,
        "names": variables,
        "outputs": {f"y{n}": output for n, output in enumerate(outputs)},
    }
    executor = {"name": "run", "network": "net", "data": list(variables), "output": list(network["outputs"])}
    compute(functions, outputs)  # before, because some graphs of NNabla give zeros once they have been saved
    results = {f"y{n}": np.array(output.d) for n, output in enumerate(outputs)}
    save(str(path), {"networks": [network], "executors": [executor]}, variable_batch_size=False)
    return results


def read(nn, package, case, arrays, path):
    """Load the network of a case and return its results."""
    loader = importlib.import_module(f"{package}.utils.nnp_graph").NnpLoader(str(path))
    network = loader.get_network("net", batch_size=1)
    for name, array in arrays.items():
        if name in network.inputs:
            network.inputs[name].d = array
    outputs = {name: variable for name, variable in network.variables.items() if name.startswith("y") and name[1:].isdigit()}
    for output in outputs.values():
        output.persistent = True
    compute(importlib.import_module(f"{package}.functions"), list(outputs.values()))
    return {name: np.array(variable.d) for name, variable in outputs.items()}


def setting(value):
    """Return a setting as both packages take it."""
    if isinstance(value, str) and value.startswith("np."):
        return getattr(np, value.removeprefix("np."))
    return tuple(value) if isinstance(value, list) else value


def compute(functions, outputs):
    """Compute all outputs in one pass. NNabla's forward_all clears some that are to be kept."""
    (outputs[0] if len(outputs) == 1 else functions.sink(*outputs)).forward()


def main(folder, package, stage, first):
    """Run the cases from `first` on."""
    nn = importlib.import_module(package)
    other = PACKAGES[1 - PACKAGES.index(package)]
    cases = json.loads((folder / "cases.json").read_text())
    for number, case in enumerate(cases[first:], first):
        (folder / f"{package}.{stage}.at").write_text(str(number))
        with np.load(folder / f"{number}.npz") as file:
            arrays = {name: file[name] for name in file.files}
        path = folder / f"{number}.{package if stage == 'write' else other}.nnp"
        if stage == "read" and not path.exists():
            continue
        nn.clear_parameters()
        try:
            results = (write if stage == "write" else read)(nn, package, case, arrays, path)
            np.savez(folder / f"{number}.{package}.{stage}.npz", **results)
        except Exception as error:
            last = (str(error).strip() or type(error).__name__).splitlines()
            (folder / f"{number}.{package}.{stage}.txt").write_text(f"{type(error).__name__}: {' '.join(last)[:400]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
