"""Networks with loops, written out."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final

from nn_core.ext import FileFormatError, budget
from nn_ext_nnp.codec import LOOP_FUNCTIONS
from nn_ext_nnp.places import place
from nn_ext_nnp.schema import message

#: Parts of loops that every step has, and those that are there once.
_INSIDE: Final = ("RepeatStart", "RecurrentInput", "Delay")
_OUTSIDE: Final = ("RepeatEnd", "RecurrentOutput")


def expand_loops(network: Any, file: str) -> Any:
    """Return a network without loops: functions and variables with `repeat_id` once for each step.

    Variables get ``<name>_<id>[n]``, or ``[n]`` in place of ``{id}`` in their names.

    Raises:
        FileFormatError: when a loop is not described, or would give more than a million functions, or when a function uses
            what is in a loop that the function is not in.
    """
    times = {info.id: info.times for info in network.repeat_info}
    for function in network.function:
        if function.type in ("RepeatStart", "RepeatEnd", "Delay"):
            times.setdefault(function.repeat_param.repeat_id, function.repeat_param.times)
        elif function.type in ("RecurrentInput", "RecurrentOutput"):
            times.setdefault(function.recurrent_param.repeat_id, function.recurrent_param.length)
    if not times and not any(function.type in LOOP_FUNCTIONS for function in network.function):
        return network
    return _Expansion(network, times, file).result()


class _Expansion:
    def __init__(self, network: Any, times: Mapping[str, int], file: str) -> None:
        self.network = network
        self.times = times
        self.file = file
        self.loops_of = {variable.name: list(variable.repeat_id) for variable in network.variable}

    def result(self) -> Any:
        made = message("Network", name=self.network.name, batch_size=self.network.batch_size)
        seen: set[str] = set()
        for variable in self.network.variable:
            for steps in self._steps(list(variable.repeat_id)):
                name = self._name(variable.name, steps)
                if name in seen:  # a parameter that all steps share
                    continue
                seen.add(name)
                copy = made.variable.add()
                copy.CopyFrom(variable)
                copy.name = name
                del copy.repeat_id[:]
        for function in self.network.function:
            self._add(made, function)
        return made

    def _add(self, made: Any, function: Any) -> None:
        loops = list(function.repeat_id)
        for steps in self._steps(loops):
            self._require_loops(function, steps)
            getattr(self, f"_{function.type}", self._plain)(made, function, steps)
            self._require_budget(len(made.function))

    def _plain(self, made: Any, function: Any, steps: Mapping[str, int]) -> None:
        copy = made.function.add()
        copy.CopyFrom(function)
        copy.name = self._name_in(function.name, list(function.repeat_id), steps)
        del copy.repeat_id[:]
        for names in (copy.input, copy.output):
            names[:] = [self._name(name, steps) for name in names]

    def _RepeatStart(self, made: Any, function: Any, steps: Mapping[str, int]) -> None:  # noqa: N802  # named as the function
        """Compute the first input at the first step, the second of the step before at the others."""
        loop = _loop_of(function)
        self._require_inputs(function, 2)
        self._identity(made, function, self._first_or_before(function.input[0], function.input[1], steps, loop), steps)

    def _RepeatEnd(self, made: Any, function: Any, steps: Mapping[str, int]) -> None:  # noqa: N802
        """Compute the input at the last step."""
        loop = _loop_of(function)
        self._require_inputs(function, 1)
        self._identity(made, function, self._name(function.input[0], {**steps, loop: self._count(loop) - 1}), steps)

    def _Delay(self, made: Any, function: Any, steps: Mapping[str, int]) -> None:  # noqa: N802
        """Compute the second input at the first step, the first of the step before at the others."""
        loop = _loop_of(function)
        self._require_inputs(function, 2)
        self._identity(made, function, self._first_or_before(function.input[1], function.input[0], steps, loop), steps)

    def _RecurrentInput(self, made: Any, function: Any, steps: Mapping[str, int]) -> None:  # noqa: N802
        """Compute the parts along an axis, one for each step: made once, at the first of them."""
        loop = _loop_of(function)
        self._require_inputs(function, 1)
        if steps[loop]:
            return
        copy = self._new(made, function, "Split", steps)
        copy.input.append(self._name(function.input[0], steps))
        copy.output.extend(self._name(function.output[0], {**steps, loop: n}) for n in range(self._count(loop)))
        copy.split_param.axis = function.recurrent_param.axis

    def _RecurrentOutput(self, made: Any, function: Any, steps: Mapping[str, int]) -> None:  # noqa: N802
        """Compute the values of all steps, stacked along an axis."""
        loop = _loop_of(function)
        self._require_inputs(function, 1)
        copy = self._new(made, function, "Stack", steps)
        copy.input.extend(self._name(function.input[0], {**steps, loop: n}) for n in range(self._count(loop)))
        copy.output.append(self._name(function.output[0], steps))
        copy.stack_param.axis = function.recurrent_param.axis

    def _first_or_before(self, first: str, looped: str, steps: Mapping[str, int], loop: str) -> str:
        step = steps[loop]
        return self._name(first, steps) if step == 0 else self._name(looped, {**steps, loop: step - 1})

    def _identity(self, made: Any, function: Any, source: str, steps: Mapping[str, int]) -> None:
        copy = self._new(made, function, "Identity", steps)
        copy.input.append(source)
        copy.output.append(self._name(function.output[0], steps))

    def _new(self, made: Any, function: Any, kind: str, steps: Mapping[str, int]) -> Any:
        name = self._name_in(function.name, list(function.repeat_id), steps)
        return made.function.add(name=name, type=kind)

    def _require_loops(self, function: Any, steps: Mapping[str, int]) -> None:
        """Refuse what would be taken from one step of a loop, no matter which, since the function is not in that loop."""
        loop, known = _loop_of(function), set(steps)
        if function.type in _INSIDE and loop not in steps:
            raise self._misplaced(function, f"in the loop that it names, got {loop!r} and the loops {list(steps)}")
        if function.type in _OUTSIDE:
            if loop in steps:
                raise self._misplaced(function, f"outside of the loop that it ends, got {loop!r}")
            self._count(loop)
            known.add(loop)
        for name in (*function.input, *function.output):
            for missing in (other for other in self.loops_of.get(name, []) if other not in known):
                got = f"got the loops {sorted(known)}"
                raise self._misplaced(function, f"in loop {missing!r} to read or compute {name!r}, {got}")

    def _misplaced(self, function: Any, must_be: str) -> FileFormatError:
        return FileFormatError(f"{self._place(function)}: {function.type} {function.name!r} must be {must_be}")

    def _place(self, function: Any) -> str:
        return place(self.file, "function", function.name, self.network.name)

    def _require_inputs(self, function: Any, count: int) -> None:
        if len(function.input) != count or len(function.output) != 1:
            raise FileFormatError(
                f"{self._place(function)}: {function.type} {function.name!r} must have {count} inputs and 1 output, "
                f"got {len(function.input)} and {len(function.output)}"
            )

    def _steps(self, loops: Sequence[str]) -> list[dict[str, int]]:
        counts = [self._count(loop) for loop in loops]
        total = 1
        for count in counts:
            total *= count
        self._require_budget(total)
        return [dict(zip(loops, step, strict=True)) for step in product(*map(range, counts))]

    def _require_budget(self, n_functions: int) -> None:
        if n_functions > budget().nodes:
            where = place(self.file, "network", self.network.name)
            budget().require("nodes", n_functions, f"{where}: functions of the loops of network {self.network.name!r}")

    def _count(self, loop: str) -> int:
        count = self.times.get(loop, 0)
        if count < 1:
            where = f"{place(self.file, 'network', self.network.name)}: network {self.network.name!r}"
            raise FileFormatError(f"{where} must say how often {loop!r} repeats, got {count}")
        return count

    def _name(self, name: str, steps: Mapping[str, int]) -> str:
        return self._name_in(name, self.loops_of.get(name, []), steps)

    def _name_in(self, name: str, loops: Sequence[str], steps: Mapping[str, int]) -> str:
        for loop in loops:
            step = steps[loop]
            place = "{" + loop + "}"
            name = name.replace(place, f"[{step}]") if place in name else f"{name}_{loop}[{step}]"
        return name


def _loop_of(function: Any) -> str:
    """Return the loop that a part of one names, "" if it names none."""
    return str(function.recurrent_param.repeat_id or function.repeat_param.repeat_id)
