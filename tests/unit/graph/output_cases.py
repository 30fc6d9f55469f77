"""Calls with several results or optional inputs, and how many inputs and outputs the function behind each shows.

``python output_cases.py nnabla > nnabla_outputs.json`` records what the package of this name answers.
"""

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np


class Calls:
    """Makes the calls with the package `package`."""

    def __init__(self, package: str) -> None:
        self.nn = importlib.import_module(package)
        self.functions = importlib.import_module(f"{package}.functions")
        self.parametric = importlib.import_module(f"{package}.parametric_functions")
        self.rng = np.random.RandomState(313)

    def leaf(self, *shape: int) -> Any:
        """Return a variable with numbers from 0.5 to 1.5."""
        return self.nn.Variable.from_numpy_array((self.rng.rand(*shape) + 0.5).astype(np.float32), need_grad=True)

    def all(self) -> dict[str, Callable[[], Any]]:
        """Return the calls by name."""
        return {**self.normalizations(), **self.orders(), **self.recurrent(), **self.others()}

    def normalizations(self) -> dict[str, Callable[[], Any]]:
        """Return normalizations with and without their statistics."""
        F, PF, leaf = self.functions, self.parametric, self.leaf
        x, (beta, gamma, mean, variance) = leaf(2, 4, 3, 3), [leaf(1, 4, 1, 1) for _ in range(4)]
        flags = {"": {}, ", output_stat": {"output_stat": True}}
        calls: dict[str, Callable[[], Any]] = {}
        for text, flag in flags.items():
            calls |= {
                f"batch{text}": lambda flag=flag: F.batch_normalization(x, beta, gamma, mean, variance, **flag),
                f"batch without beta{text}": lambda flag=flag: F.batch_normalization(x, None, gamma, mean, variance, **flag),
                f"batch without gamma{text}": lambda flag=flag: F.batch_normalization(x, beta, None, mean, variance, **flag),
                f"fused batch{text}": lambda flag=flag: F.fused_batch_normalization(x, beta, gamma, mean, variance, **flag),
                f"fused batch and z{text}": lambda flag=flag: F.fused_batch_normalization(
                    x, beta, gamma, mean, variance, x, **flag
                ),
                f"layer{text}": lambda flag=flag: F.layer_normalization(x, leaf(1, 4, 3, 3), leaf(1, 4, 3, 3), **flag),
                f"layer, bare{text}": lambda flag=flag: F.layer_normalization(x, None, None, **flag),
                f"instance{text}": lambda flag=flag: F.instance_normalization(x, beta, gamma, **flag),
                f"instance, bare{text}": lambda flag=flag: F.instance_normalization(x, None, None, **flag),
                f"group{text}": lambda flag=flag: F.group_normalization(x, beta, gamma, 2, **flag),
                f"weight standardization{text}": lambda flag=flag: F.weight_standardization(x, **flag),
                f"PF.batch_normalization{text}": lambda flag=flag: PF.batch_normalization(x, **flag),
                f"PF.layer_normalization{text}": lambda flag=flag: PF.layer_normalization(x, **flag),
            }
        calls["batch, frozen"] = lambda: F.batch_normalization(x, beta, gamma, mean, variance, batch_stat=False)
        for output_u in (False, True):
            calls[f"spectral, output_u={output_u}"] = lambda output_u=output_u: F.spectral_norm(
                leaf(4, 2), leaf(4), output_u=output_u
            )
        return calls

    def orders(self) -> dict[str, Callable[[], Any]]:
        """Return functions that find values, places, or both."""
        F, leaf = self.functions, self.leaf
        x = leaf(4, 5)
        calls: dict[str, Callable[[], Any]] = {}
        for name in ("max", "min", "sort"):
            for with_index, only_index in ((False, False), (True, False), (False, True), (True, True)):
                flags = {"with_index": with_index, "only_index": only_index}
                calls[f"{name}, {flags}"] = lambda name=name, flags=flags: getattr(F, name)(x, axis=1, **flags)
        calls["top_k_data"] = lambda: F.top_k_data(x, 2)
        calls["top_k_data, with_index"] = lambda: F.top_k_data(x, 2, with_index=True)
        return calls

    def recurrent(self) -> dict[str, Callable[[], Any]]:
        """Recurrent layers, of one and of two layers in two directions."""
        F, leaf = self.functions, self.leaf
        x, state, states = leaf(3, 2, 4), leaf(1, 1, 2, 5), leaf(2, 2, 2, 5)
        return {
            "rnn": lambda: F.rnn(x, state, leaf(1, 5, 9)),
            "lstm": lambda: F.lstm(x, state, state, leaf(1, 4, 5, 9)),
            "lstm, two layers": lambda: F.lstm(
                x, states, states, leaf(2, 4, 5, 9), leaf(1, 2, 4, 5, 15), leaf(2, 2, 4, 5), num_layers=2, bidirectional=True
            ),
            "gru": lambda: F.gru(x, state, leaf(1, 3, 5, 9)),
        }

    def others(self) -> dict[str, Callable[[], Any]]:
        """Other functions with several results, or with inputs that may be left out."""
        F, leaf = self.functions, self.leaf
        image, kernel = leaf(1, 2, 4, 4), leaf(3, 2, 3, 3)
        offsets = leaf(1, 18, 4, 4)
        return {
            "split": lambda: F.split(leaf(4, 2), axis=0),
            "meshgrid": lambda: F.meshgrid(leaf(3), leaf(2)),
            "stft": lambda: F.stft(leaf(1, 32), 8, 4, 8),
            "convolution": lambda: F.convolution(image, kernel),
            "convolution with bias": lambda: F.convolution(image, kernel, leaf(3)),
            "fused_convolution": lambda: F.fused_convolution(image, kernel),
            "deformable_convolution": lambda: F.deformable_convolution(image, kernel, offsets, pad=(1, 1)),
            "deformable_convolution with mask": lambda: F.deformable_convolution(
                image, kernel, offsets, leaf(1, 9, 4, 4), leaf(3), pad=(1, 1)
            ),
            "affine": lambda: F.affine(leaf(2, 3), leaf(3, 4)),
            "affine with bias": lambda: F.affine(leaf(2, 3), leaf(3, 4), leaf(4)),
            "sink": lambda: F.sink(leaf(2), leaf(3)),
            "pack_padded_sequence": lambda: F.pack_padded_sequence(
                leaf(5, 2, 4), self.nn.Variable.from_numpy_array(np.array([5, 3]))
            ),
        }


def shown(call: Callable[[], Any]) -> dict[str, Any]:
    """Return the number of results of a call, and of inputs and outputs of the function behind the first one."""
    results = call()
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    function = results[0].parent
    return {
        "returned": len(results),
        "function": function.info.type_name,
        "inputs": [list(variable.shape) for variable in function.inputs],
        "outputs": [list(variable.shape) for variable in function.outputs],
        "same": [given == output for given, output in zip(results, function.outputs, strict=False)],
    }


if __name__ == "__main__":
    found = {name: shown(call) for name, call in Calls(sys.argv[1]).all().items()}
    sys.stdout.write("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(says)}" for name, says in found.items()) + "\n}\n")
