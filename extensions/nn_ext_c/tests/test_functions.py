"""Every function that can be exported gives in C what nn_core computes, on the samples of the conformance kit."""

from collections import defaultdict

import numpy as np
import pytest

import nn_core as nn
import nn_core.testing.samples  # fills the table
from extensions.nn_ext_c.tests.compiled import Library, difference
from nn_core.engine.graph.apply import apply
from nn_core.ext import ArgumentError, function_spec
from nn_core.testing.samples.registry import numbers_of, samples_of
from nn_ext_c import export_source
from nn_ext_c.emitting.topics import emitters

#: The refusals of functions that can be exported otherwise, by parts of the reasons.
REFUSALS = (
    "arrays must not be empty",
    "pad_mode must be",
    "batch_dims must be 0",
    "is for training",
    "equation must have no",
    "mode must be",
)


#: So many samples are compiled at once.
PART = 90


def calls_by_topic():
    """The samples of functions that can be exported, by topic and part."""
    found = defaultdict(list)
    for name in sorted(emitters()):
        spec = function_spec(name)
        if spec.topic != "random":
            found[spec.topic] += [(spec, s) for s in samples_of(spec) if not s.name.startswith(("large", "dropout"))]
    return {f"{k}-{n // PART}": calls[n : n + PART] for k, calls in found.items() for n in range(0, len(calls), PART)}


TOPICS = calls_by_topic()


def built(spec, sample):
    """The inputs by name, and the outputs of a call."""
    arrays = numbers_of(spec, sample)
    variables = [None if a is None else nn.Variable.from_numpy_array(np.asarray(a, np.float32)) for a in arrays]
    made = apply(spec, tuple(variables), sample.args)
    outputs = [output for output in (made if isinstance(made, (tuple, list)) else [made]) if output is not None]
    return {f"x{n}": v for n, v in enumerate(variables) if v is not None}, {f"y{n}": v for n, v in enumerate(outputs)}


@pytest.mark.parametrize("topic", sorted(TOPICS))
def test_functions_compute_the_same(topic, tmp_path):
    sources, graphs, refused = {}, {}, defaultdict(list)
    for number, (spec, sample) in enumerate(TOPICS[topic]):
        inputs, outputs = built(spec, sample)
        try:
            sources[f"f{number}"] = export_source(outputs, inputs, name=f"f{number}", batch_statistics=True)
        except ArgumentError as error:
            refused[str(error).rpartition(": ")[2]].append(f"{spec.name}-{sample.name}")
        else:
            graphs[f"f{number}"] = (f"{spec.name}-{sample.name}", inputs, list(outputs.values()), sample.loose)
    library = Library(tmp_path, sources)
    wrong = {}
    for name, (title, inputs, outputs, loose) in graphs.items():
        arrays = [np.array(v.d) for v in inputs.values()]  # some functions rewrite an input
        for output in outputs:
            output.forward()
        found = library.run(name, arrays, [o.shape for o in outputs])
        largest = max(difference(a, np.asarray(o.d)) for a, o in zip(found, outputs, strict=True))
        if largest > 1e-5 * loose:
            wrong[title] = largest
    assert wrong == {}
    assert {k: v for k, v in refused.items() if not any(part in k for part in REFUSALS)} == {}
