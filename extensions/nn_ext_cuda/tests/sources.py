"""All CUDA sources that the kernels of a table launch for the samples of the conformance kit."""

import itertools
import math
import re

from nn_core.engine.dispatch.registry import spec_of
from nn_core.engine.graph.infer import infer, input_entries, made_outputs
from nn_core.errors import NNCoreError
from nn_core.ext import ArrayDesc, Call
from nn_core.operators.rules.arguments import resolve_args
from nn_core.testing.samples.registry import numbers_of, samples_of

#: One output for each element of an axis.
ENDLESS = ("Split",)


def calls(name, dtype):
    """Each sample of a function as a call."""
    spec = spec_of(name)
    for sample in samples_of(spec):
        inputs = numbers_of(spec, sample)
        shapes = tuple(None if array is None else array.shape for array in inputs)
        if (call := _call(spec, sample.args, inputs, shapes, dtype)) is not None:
            yield sample.name, call


def scaled_calls(name, dtype, n_elements):
    """Samples of a function with one length multiplied, wherever it is, so that the largest array has `n_elements`."""
    spec = spec_of(name)
    for sample in samples_of(spec) if name not in ENDLESS else ():
        inputs = numbers_of(spec, sample)
        shapes = [None if array is None else array.shape for array in inputs]
        asked = sample.args.get("shape")
        known = [*filter(None, shapes), *([asked] if isinstance(asked, (list, tuple)) else [])]
        largest = max(map(math.prod, known), default=0)
        lengths = dict.fromkeys(itertools.chain(*known)) if largest else {}
        for length in lengths:
            longer = {length: length * -(-n_elements // largest)}
            new = tuple(None if shape is None else tuple(longer.get(n, n) for n in shape) for shape in shapes)
            args = dict(sample.args)
            if known[-1] is asked:
                args["shape"] = [longer.get(n, n) for n in asked]
            if (call := _call(spec, args, inputs, new, dtype)) is not None:
                yield sample.name, call


def _call(spec, args, inputs, shapes, dtype):
    """The call of a function with inputs like these, but of these shapes; None where there is none."""
    try:
        args = resolve_args(spec, args, shapes)
        outputs = made_outputs(spec, infer(spec, args, shapes))
    except NNCoreError:
        return None
    entries = input_entries(spec, len(inputs))
    kinds = {"float": dtype, "index": "int64"}
    same = {k: dtype if a is not None and a.dtype.kind == "f" else getattr(a, "dtype", None) for k, a in enumerate(inputs)}
    descs = tuple(
        None if shape is None else ArrayDesc(shape, kinds.get(entry.dtype) or str(same[k]))
        for k, (entry, shape) in enumerate(zip(entries, shapes, strict=True))
    )
    first = next((desc.dtype for desc, entry in zip(descs, entries, strict=True) if desc and entry.dtype == "same"), dtype)
    results = tuple(ArrayDesc(shape, kinds.get(entry.dtype) or first) for entry, shape in outputs)
    return Call(spec, args, descs, results, dtype)


def programs(kernels, names, dtypes):
    """(function, sample, forward or backward, program) of everything that is not refused."""
    for name in names:
        for dtype in dtypes:
            for sample, call in calls(name, dtype):
                for direction, runner in runners(kernels[name], call):
                    yield name, sample, direction, runner


def runners(kernel, call):
    """(forward or backward, program) of a call, nothing where it is refused."""
    if kernel.refuse(call) is not None:
        return
    yield from both("forward", kernel.forward(call))
    if call.spec.differentiable:
        wanted = [desc is not None and desc.dtype == call.dtype for desc in call.inputs]
        runner = kernel.backward(call, wanted)
        if runner is not None:
            yield from both("backward", runner)


def both(direction, runner):
    """The runner, and the one that plans join with a sum, if there is one."""
    yield direction, runner
    if hasattr(runner, "summed"):
        yield f"{direction} with a sum", runner.summed()


def codes(found):
    """The different sources of programs."""
    return list(dict.fromkeys(launch.code for *_, program in found for launch in getattr(program, "launches", ())))


def different(pieces):
    """One source for each name; those that differ in the suffix of the name only are alike."""
    return list({re.sub(r"_[0-9a-f]{8}$", "", code.name) + code.real: code for code in pieces}.values())


def together(pieces):
    """Many sources as one: each in a namespace, its macros undone."""
    texts = []
    for number, code in enumerate(pieces):
        source = re.sub(r"\bshared_?\b", f"shared_{number}", code.source.replace('extern "C" ', ""))
        macros = "\n".join(f"#undef {name}" for name in set(re.findall(r"#define (\w+)", source)))
        texts.append(f"namespace piece_{number} {{\n{source}\n}}\n{macros}\n")
    return "\n".join(texts)
