"""Files with several networks and executors."""

import json
import random
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from nn_ext_nnp.codec import parse_text
from tools.lanes.drawn import arrays, layers, pointwise
from tools.lanes.drawn.loops import recur, repeat
from tools.lanes.drawn.network import BATCH, Call, Net, Var, expanded_names, quoted

Draw = Callable[[Net, Var], Var]
#: The functions to draw: least and largest number of axes of their input, how often they are chosen.
STEPS: Sequence[tuple[int, int, int, Draw]] = (
    (1, 5, 20, pointwise.unary),
    (2, 5, 8, pointwise.binary),
    (2, 5, 3, pointwise.loss),
    (2, 5, 3, pointwise.several),
    (2, 5, 2, pointwise.drawn_values),
    (2, 5, 6, layers.affine),
    (4, 4, 12, layers.convolution),
    (4, 4, 4, layers.depthwise_convolution),
    (4, 4, 4, layers.deconvolution),
    (4, 4, 8, layers.pooling),
    (4, 4, 3, layers.squeeze_excite),
    (2, 4, 4, layers.batch_normalization),
    (3, 4, 4, layers.normalization),
    (2, 4, 2, layers.normalized_weights),
    (2, 4, 2, layers.prelu),
    (2, 4, 1, layers.embed),
    (2, 2, 2, layers.classification),
    (2, 4, 1, layers.quantization),
    (3, 3, 3, layers.recurrent),
    (2, 4, 1, layers.mean_subtraction),
    (3, 4, 3, layers.matmul),
    (2, 5, 4, arrays.reshape),
    (2, 5, 4, arrays.reduction),
    (2, 4, 1, arrays.whole_reduction),
    (3, 5, 3, arrays.transpose),
    (2, 5, 3, arrays.cut),
    (3, 4, 2, arrays.padded),
    (2, 4, 4, arrays.joined),
    (2, 4, 1, arrays.split),
    (2, 4, 3, arrays.repeated),
    (2, 4, 1, arrays.broadcast_to),
    (2, 4, 1, arrays.gathered),
    (2, 3, 1, arrays.diagonal),
    (2, 4, 2, arrays.doubled),
    (4, 4, 2, arrays.resized),
    (2, 4, 1, arrays.sized),
)
#: Arrays with more elements for each sample are reduced.
_LARGE = 400


@dataclass(frozen=True)
class Drawn:
    """A drawn file: its text, and what is to be known to run it."""

    text: str
    about: dict[str, Any]


def step(net: Net, x: Var) -> Var:
    """Return some function of `x` that its number of axes allows."""
    size = 1
    for n in x.inner:
        size *= n
    if size > _LARGE and x.ndim > 1:
        return arrays.reduction(net, x) if x.ndim > 2 else layers.affine(net, x)
    fitting = [(weight, draw) for least, most, weight, draw in STEPS if least <= x.ndim <= most]
    if not fitting:
        return arrays.reshape(net, x, (size,))
    return net.rng.choices([draw for _, draw in fitting], [weight for weight, _ in fitting])[0](net, x)


def body(net: Net, x: Var, length: int) -> Var:
    """Return some functions, the first of them of `x`, with loops among them."""
    end = len(net.calls) + length
    x = step(net, x)
    while len(net.calls) < end:
        if net.loops and net.rng.random() < 0.7:
            x = step(net, x)  # in loops, what is computed leads to what goes back
            continue
        picked = net.pick(1) or x
        x = _loop_or_step(net, picked)
    return x


def _loop_or_step(net: Net, x: Var) -> Var:
    if len(net.times) >= net.max_loops or len(net.loops) > 1 or net.rng.random() > net.loop_share or x.ndim < 2:
        return step(net, x)
    length = net.rng.randint(2, 5)
    if x.ndim >= 3 and 1 < max(x.inner) <= 6 and net.rng.random() < 0.6:
        return recur(net, x, body, length)
    return repeat(net, x, body, length)


def drawn_network(name: str, rng: random.Random, parameters: dict[str, Any], max_loops: int, given: bool) -> Net:
    """Return a network of 10 to 60 functions."""
    net = Net(name, rng, parameters, given=given)
    net.max_loops = max_loops
    net.prefix = "重み" if rng.random() < 0.05 else ""  # NNabla's NnpLoader takes only ASCII
    length = rng.randint(10, 45)
    for _ in range(rng.randint(1, 2)):
        inner = rng.choice(((rng.randint(1, 3), rng.randint(4, 8), rng.randint(4, 8)), (rng.randint(2, 5), rng.randint(2, 6)),
                            (rng.randint(2, 10),)))  # fmt: skip
        body(net, net.input((BATCH, *inner)), 3)
    if max_loops:
        source = net.pick(2)
        assert source is not None
        target = net.pick(3) if rng.random() < 0.7 else None
        if target is not None and 1 < max(target.inner) <= 6:
            recur(net, target, body, rng.randint(2, 5))
        else:
            repeat(net, source, body, rng.randint(2, 5))
    while len(net.calls) < length:
        body(net, net.pick(1) or net.input((BATCH, 4)), 1)
    return net


def for_validation(net: Net, name: str) -> Net:
    """Return the same network with the statistics and random functions of inference, as the Console writes it beside the
    first.
    """
    calls = [
        replace(call, settings={**call.settings, **({"batch_stat": False} if "batch_stat" in call.settings else {})})
        for call in net.calls
    ]
    calls = [Call(c.name, "Identity", c.inputs, c.outputs, c.loops, {}) if c.kind == "Dropout" else c for c in calls]
    return replace(net, name=name, calls=calls)


def drawn_file(seed: int, given: bool = False) -> Drawn:
    """Return the file of a seed; it gives all parameters if `given`, else leaves some to initializers."""
    rng = random.Random(seed)
    parameters: dict[str, tuple[Var, list[str], Any]] = {}
    first = drawn_network("Main", rng, parameters, rng.choice((0, 1, 1, 2, 3)), given)
    networks = [first]
    if rng.random() < 0.4:
        networks.append(for_validation(first, "MainValidation"))
    if rng.random() < 0.5:
        name = rng.choice(("Other", "Net 2", "Runtime"))
        networks.append(drawn_network(name, rng, parameters, rng.choice((0, 1, 2)), given))
    overwritten = {net.name: sorted(net.overwrite()) for net in networks}
    batch_size = rng.randint(2, 4)
    executors = [_executor(net, number) for number, net in enumerate(networks)]
    parts = ['global_config { default_context { backends: "cpu:float" array_class: "CpuCachedArray" device_id: "0" } }']
    parts += [net.text(batch_size) for net in networks]
    parts.append('dataset { name: "Training" uri: "data.csv" batch_size: 2 }')
    parts += [text for text, _ in executors]
    parts += [_parameter_text(*entry) for entry in parameters.values() if entry[2] is not None]
    about = {
        "seed": seed,
        "batch_sizes": [batch_size, rng.choice((1, batch_size + 1, 5))],
        "networks": {net.name: _about(net, overwritten[net.name]) for net in networks},
        "executors": {name: list(outputs) for _, (name, outputs) in executors},
    }
    return Drawn("\n".join(parts) + "\n", about)


def _about(net: Net, overwritten: list[str]) -> dict[str, Any]:
    hidden = net.random_names()
    return {
        "inputs": net.inputs,
        "generators": {name: kind for name, (kind, _) in net.generators.items()},
        "random": sorted(set(chain.from_iterable(expanded_names(v, net.times) for v in net.variables if v.name in hidden))),
        "overwritten": sorted(
            set(chain.from_iterable(expanded_names(v, net.times) for v in net.variables if v.name in overwritten))
        ),
        "kinds": sorted({call.kind for call in net.calls}),
        "functions": len(net.calls),
        "loops": len(net.times),
    }


def _executor(net: Net, number: int) -> tuple[str, tuple[str, list[str]]]:
    """Return the message of an executor, its name, and the names of its results."""
    rng, name = net.rng, f"Executor{number or ''}"
    lines = [f"executor {{ name: {quoted(name)} network_name: {quoted(net.name)} num_evaluations: {rng.choice((0, 1, 2))}"]
    lines.append(f"  repeat_evaluation_type: {quoted(rng.choice(('', 'mean', 'last')))}")
    data = [n for n in net.inputs if n not in net.generators]
    lines += [f"  data_variable {{ variable_name: {quoted(n)} data_name: {quoted(n)} }}" for n in data]
    for n, (kind, multiplier) in net.generators.items():
        lines.append(f"  generator_variable {{ variable_name: {quoted(n)} type: {quoted(kind)} multiplier: {multiplier} }}")
    chosen = _results(net)
    lines += [f"  output_variable {{ variable_name: {quoted(n)} data_name: {quoted('y of ' + n)} }}" for n in chosen]
    return "\n".join([*lines, "}"]), (name, chosen)


def _results(net: Net) -> list[str]:
    """Names of the variables that an executor reads: those that nothing else does, and some others."""
    hidden = {call.inputs[0] for call in net.calls if call.settings.get("inplace")}
    # NNabla's load takes another variable for some ends of loops, or finds none.
    hidden |= {call.outputs[0] for call in net.calls if call.kind == "RepeatEnd"}
    made = [v for call in net.calls for v in call.outputs if not v.loops and v not in hidden]
    final = [v for v in net.outputs() if v in made]
    return [v.name for v in dict.fromkeys([*final, *net.rng.sample(made, min(2, len(made)))])]


def _parameter_text(variable: Var, names: list[str], values: Any) -> str:
    lines = []
    for name, copy in zip(names, values, strict=True):
        numbers = " ".join(f"data: {value:g}" for value in copy.ravel())
        shape = " ".join(f"dim: {n}" for n in variable.shape)
        lines.append(f"parameter {{ variable_name: {quoted(name)} shape {{ {shape} }} {numbers} need_grad: true }}")
    return "\n".join(lines)


def write(drawn: Drawn, folder: Path) -> Path:
    """Write a drawn file, as a text or an archive, and what is to be known about it."""
    seed = drawn.about["seed"]
    (folder / f"{seed}.json").write_text(json.dumps(drawn.about))
    if seed % 3:
        path = folder / f"{seed}.nntxt"
        path.write_text(drawn.text, encoding="utf-8")
        return path
    message = parse_text(drawn.text.encode(), "drawn")
    path = folder / f"{seed}.nnp"
    network = drawn.text.partition("\nparameter {")[0]
    del message.network[:], message.dataset[:], message.executor[:]
    message.ClearField("global_config")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("nnp_version.txt", "0.1\n")
        archive.writestr("network.nntxt", network)
        archive.writestr("parameter.protobuf", message.SerializeToString())
    return path
