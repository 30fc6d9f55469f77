"""Run the files of compare_networks.py: one program for both packages, in an interpreter that has the one to run.

    python run_network_cases.py FOLDER nnabla|nn_core|perturbed FIRST

Each file of FOLDER is loaded with both of its numbers of samples, by ``load`` and by NnpLoader. Results of executors and
values of all variables go to <seed>.<package>.npz, their names and errors to <seed>.<package>.json. NNabla writes the
parameters that it draws to <seed>.parameters.h5, which nn_core reads. Files before FIRST are left out, so that a run continues
after one that ended the process. `perturbed` is nn_core with inputs and parameters changed by about a millionth. Nothing but
the package and numpy is needed.
"""

import importlib
import json
import logging
import sys
import zlib
from pathlib import Path

import numpy as np

#: How the executors of the two packages name their parts; NNabla has variables that stand for others.
_PLAIN = {"nnabla": lambda variable: variable.variable_instance, "nn_core": lambda variable: variable}


def values_of(name, shape, kind):
    """Return the numbers of an input, which follow from its name and shape."""
    rng = np.random.RandomState(zlib.crc32(f"{name} {shape}".encode()))
    return rng.randn(*shape) if kind == "normal" else rng.randint(0, kind, shape)


class Package:
    """One of the packages, and the file that it runs."""

    def __init__(self, name, folder, about):
        self.noise = 1e-6 if name == "perturbed" else 0.0
        self.name = name = "nn_core" if self.noise else name
        self.folder, self.about = folder, about
        self.nn = importlib.import_module(name)
        self.load = importlib.import_module(f"{name}.utils.load").load
        self.NnpLoader = importlib.import_module(f"{name}.utils.nnp_graph").NnpLoader
        self.functions = importlib.import_module(f"{name}.functions")
        seed = about["seed"]
        self.path = next(path for path in (folder / f"{seed}.nntxt", folder / f"{seed}.nnp") if path.exists())
        self.drawn = folder / f"{seed}.parameters.h5"

    def run_executors(self, batch_size):
        """Return the results of all executors, as the commands infer and forward compute them."""
        sources = [str(self.path)] + ([str(self.drawn)] if self.name == "nn_core" else [])
        self.nn.clear_parameters()
        info = self.load(sources, prepare_data_iterator=False, batch_size=batch_size)
        if self.name == "nnabla" and not self.drawn.exists():
            self.nn.save_parameters(str(self.drawn))
        elif self.name == "nnabla":
            self.nn.load_parameters(str(self.drawn))
        self._perturb(self.nn.get_parameters(grad_only=False).values())
        found = {}
        for name, executor in info.executors.items():
            found.update(self._outputs(name, executor))
        return found

    def _outputs(self, name, executor):
        plain = _PLAIN[self.name]
        kept = self._parameters()
        inputs = self.about["networks"][executor.network.name]["inputs"]
        for assigned, data in executor.dataset_assign.items():
            variable = plain(assigned)
            variable.d = values_of(data, variable.shape, inputs[data])
            self._perturb([variable] if inputs[data] == "normal" else [])
        outputs = {data: plain(variable) for variable, (_, data) in executor.output_assign.items()}
        for variable in outputs.values():
            variable.persistent = True
        passes = []
        for _ in range(executor.num_evaluations or 1):
            self._generate(executor, plain)
            self._forward(list(outputs.values()))
            passes.append([np.array(variable.d) for variable in outputs.values()])
        for parameter, values in kept:
            parameter.d = values
        is_last = executor.repeat_evaluation_type == "last"
        combined = [found[-1] if is_last else np.mean(found, axis=0) for found in zip(*passes, strict=True)]
        return {f"{name}: {data}": values for data, values in zip(outputs, combined, strict=True)}

    def _generate(self, executor, plain):
        """Fill generator variables with numbers of their own; random ones are the same in both packages."""
        kinds = self.about["networks"][executor.network.name]["generators"]
        for (assigned, how), (name, kind) in zip(executor.generator_assign.items(), kinds.items(), strict=True):
            variable = plain(assigned)
            if kind == "Constant":
                value = how[1] if self.name == "nn_core" else float(np.ravel(how(()))[0])
                variable.d = np.full(variable.shape, value)
            else:
                variable.d = values_of(name, variable.shape, "normal")

    def _perturb(self, variables):
        """Change numbers a little, to see which results follow from rounding."""
        rng = np.random.RandomState(0)
        for variable in variables if self.noise else ():
            variable.d = variable.d * (1 + self.noise * rng.randn(*variable.shape))

    def _parameters(self):
        return [(p, p.d.copy()) for p in self.nn.get_parameters(grad_only=False).values()]

    def _forward(self, outputs):
        (outputs[0] if len(outputs) == 1 else self.functions.sink(*outputs)).forward()

    def run_networks(self, batch_size):
        """Return the values of all variables of each network, as NnpLoader makes it."""
        found = {}
        self.nn.clear_parameters()
        loader = self.NnpLoader(str(self.path))
        if self.name == "nn_core":
            self.nn.load_parameters(str(self.drawn))
        networks = {name: loader.get_network(name, batch_size=batch_size) for name in self.about["networks"]}
        if not self.drawn.exists():
            self.nn.save_parameters(str(self.drawn))
        elif self.name == "nnabla":  # it draws again what the scope has
            self.nn.load_parameters(str(self.drawn))
            parameters = self.nn.get_parameters(grad_only=False)
            for network in networks.values():
                for key in parameters.keys() & network.variables.keys():
                    network.variables[key].d = parameters[key].d
        self._perturb(self.nn.get_parameters(grad_only=False).values())
        for name, network in networks.items():
            self._values(name, network, found)
        return found

    def _values(self, name, network, found):
        about, parameters = self.about["networks"][name], self.nn.get_parameters(grad_only=False)
        kept = [(variable, variable.d.copy()) for key, variable in network.variables.items() if key in parameters]
        for key, variable in network.inputs.items():
            if key in about["inputs"]:
                variable.d = values_of(key, variable.shape, about["inputs"][key])
        self._perturb(variable for key, variable in network.inputs.items() if about["inputs"].get(key) == "normal")
        for variable in network.variables.values():
            variable.persistent = True
        self._forward(list(network.outputs.values()))
        for key, variable in network.variables.items():
            if key not in about["overwritten"] and key not in parameters:
                found[f"{name}: {key}"] = np.array(variable.d)
        for part in ("inputs", "outputs"):
            found[f"{name} {part}"] = np.array(sorted(getattr(network, part)))
        for parameter, values in kept:
            parameter.d = values


def run(name, folder, seed):
    """Run a file, and write what came of it."""
    about = json.loads((folder / f"{seed}.json").read_text())
    package = Package(name, folder, about)
    arrays, errors = {}, {}
    for batch_size in about["batch_sizes"]:
        for way in (package.run_executors, package.run_networks):
            try:
                found = way(batch_size)
            except Exception as error:
                last = " ".join((str(error).strip() or type(error).__name__).split())
                errors[f"{way.__name__} {batch_size}"] = f"{type(error).__name__}: {last[:600]}"
            else:
                arrays.update({f"{way.__name__} {batch_size} {key}": value for key, value in found.items()})
    np.savez(folder / f"{seed}.{name}.npz", **{f"a{n}": value for n, value in enumerate(arrays.values())})
    (folder / f"{seed}.{name}.json").write_text(json.dumps({"names": list(arrays), "errors": errors}))


def main(folder, package, first):
    """Run the files from `first` on."""
    logging.disable(logging.CRITICAL)
    seeds = json.loads((folder / "seeds").read_text())
    for number, seed in enumerate(seeds[first:], first):
        (folder / f"{package}.at").write_text(str(number))
        run(package, folder, seed)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
