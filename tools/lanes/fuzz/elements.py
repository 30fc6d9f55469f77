"""Each sample of each function with one number of its inputs, or one of its settings, replaced by one that is out of range.

Boxes, indices, probabilities, coordinates and sizes come as numbers in arrays, whose values only the kernels see. Whatever
they are, a call gives a result or an error of nn_core, and so do the gradients of what gives a result. Each function is tried
in a process of its own, which has little memory and time.
"""

import multiprocessing
import resource
import signal
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import numpy as np

import nn_core as nn
from nn_core.engine.graph.apply import operator_of
from nn_core.errors import NNCoreError
from nn_core.operators.spec.builtin import SPECS
from nn_core.operators.spec.model import FunctionSpec
from nn_core.testing.cases import context_of
from nn_core.testing.samples.registry import numbers_of, samples_of
from nn_core.variable import forward_all

#: Values that take the place of a number, by the kind of the array. 1e10 and 2**33 are counts that fit no memory.
FLOATS: Final = (np.nan, np.inf, -np.inf, 1e30, -1e30, 1e10, -1e10, -1.0, 0.0)
INTEGERS: Final = (-1, 2**33, -(2**33), 2**62, -(2**62), 2**31 - 1)
SETTINGS: Final = (-1, 2**40, 2**62, -(2**62))
#: Bytes that the process of one function may take beyond what it has, and seconds of the processor for one call.
MEMORY: Final = 1 << 30
SECONDS: Final = 10
#: Settings that say how often something is done: a large one takes as long as it says.
REPETITIONS: Final = ("itr",)
#: The first and the last number stand for all places.
PLACES: Final = (0, -1)
#: Samples of each function.
SAMPLES: Final = 2


class Slow(BaseException):
    """A call took too long; no handler of exceptions holds it up."""


@dataclass(frozen=True)
class Call:
    """A call with one number changed.

    Attributes:
        what: What was changed in which sample.
        may_be_large: Whether the program asked for so much memory itself, by a setting.
    """

    what: str
    inputs: Sequence[Any]
    settings: Mapping[str, Any]
    has_gradient: bool
    may_be_large: bool


def drawn(count: int, seed: int) -> list[FunctionSpec]:
    """So many functions in the order of the specification, all of them if `count` is 0."""
    chosen = np.random.default_rng(seed).permutation(len(SPECS))[: count or None]
    return [SPECS[n] for n in sorted(chosen)]


def changed_calls(spec: FunctionSpec) -> Iterator[Call]:
    """Return the calls of a function with one number changed."""
    for sample in samples_of(spec)[:SAMPLES]:
        arrays = [
            array if array is None or array.dtype.kind != "f" else array.astype(np.float32)
            for array in numbers_of(spec, sample)
        ]
        for position, array in enumerate(arrays):
            for what, other in _changed_arrays(array):
                changed = [*arrays[:position], other, *arrays[position + 1 :]]
                yield Call(f"{sample.name}: {what} of input {position}", changed, sample.args, sample.gradient, False)
        for name, value in ((name, value) for name, value in sample.args.items() if name not in REPETITIONS):
            for other in _changed_values(value):
                yield Call(f"{sample.name}: {name}={other}", arrays, {**sample.args, name: other}, sample.gradient, True)


def _changed_arrays(array: Any) -> Iterator[tuple[str, Any]]:
    if array is None or not array.size or array.dtype.kind not in "fiu":
        return
    for place in PLACES:
        for number in FLOATS if array.dtype.kind == "f" else INTEGERS:
            other = array.copy()
            other.reshape(-1)[place] = number
            yield f"{number:g} at {place}", other


def _changed_values(value: Any) -> Iterator[Any]:
    """Return the values of a setting with one number changed."""
    if isinstance(value, (tuple, list)):
        for position, part in enumerate(value):
            for other in _changed_values(part):
                yield (*value[:position], other, *value[position + 1 :])
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from FLOATS if isinstance(value, float) else SETTINGS


def verdict(spec: FunctionSpec, call: Call) -> str:
    """Run a call and its gradients; what should not have happened, or an empty text."""
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        with np.errstate(all="ignore"):
            given = [None if array is None else _variable(array) for array in call.inputs]
            results = operator_of(spec)(*given, **call.settings)
            results = list(results) if isinstance(results, tuple) else [results]
            forward_all(results)
            for result in results if call.has_gradient and spec.differentiable else ():
                if result.need_grad and result.dtype.kind == "f":
                    result.backward(1)
    except NNCoreError:
        return ""
    except MemoryError as error:
        return "" if call.may_be_large else f"MemoryError: {error}"
    except Slow:
        return f"Slow: longer than {SECONDS} s"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def _variable(array: Any) -> nn.Variable:
    return nn.Variable.from_numpy_array(array, need_grad=array.dtype.kind == "f")


def _try_all(spec: FunctionSpec, backend: str, answers: Connection) -> None:
    """Try all calls of a function in this process, and send the number of calls and the findings."""

    def stop(*_: object) -> None:
        raise Slow

    signal.signal(signal.SIGPROF, stop)
    with suppress(OSError):  # where there is no /proc, memory is not limited
        limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    warnings.simplefilter("error")
    with nn.context_scope(context_of(backend, "float32")):
        for call in changed_calls(spec):
            answers.send((call.what, None))
            answers.send((call.what, verdict(spec, call)))
    answers.send(None)


def check(spec: FunctionSpec, backend: str) -> Iterator[str]:
    """Try all calls of a function; yields a text for each, which is empty if it ended as it should."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    process = fork.Process(target=_try_all, args=(spec, backend, theirs))
    process.start()
    theirs.close()
    what = "before the first call"
    try:
        while True:
            if not ours.poll(60):
                yield f"{spec.name} on {backend}, {what}: no answer within 60 s"
                return
            answer = ours.recv()
            if answer is None:
                return
            what, found = answer
            if found is not None:
                yield f"{spec.name} on {backend}, {what}: {found}" if found else ""
    except EOFError:
        process.join()
        yield f"{spec.name} on {backend}, {what}: the process ended with {process.exitcode}"
    finally:
        process.kill()
        process.join()
        ours.close()
