"""States of solvers in files: moving means and the like, by parameter."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import nn_core as nn
from nn_core.ext import Entry, FileFormatError
from nn_core.solvers.states import SolverState
from nn_ext_nnp.archive import Member
from nn_ext_nnp.parameters import h5_bytes
from nn_ext_nnp.schema import message


def state_members(
    optimizers: Sequence[Mapping[str, Any]], parameters: Mapping[str, nn.Variable], extension: str
) -> list[Member]:
    """Return the members of an archive that hold the states of all solvers."""
    if extension == ".protobuf":
        proto = message("NNablaProtoBuf")
        for part in optimizers:
            target = proto.optimizer.add(name=part["name"])
            target.solver.type = part["solver"].name
            read_states(target.solver, part["solver"], parameters)
        return [Member("optimizer.protobuf.optimizer", proto.SerializeToString(deterministic=True))] if optimizers else []
    members: list[Member] = []
    for part in optimizers:
        entries: dict[str, Entry] = {}
        for position, (name, state) in enumerate(named_states(part["solver"], parameters).items()):
            group = {"index": position}
            for index, (key, variable) in enumerate(state.pstate.items()):
                entries[f"{name}/{key}"] = Entry(variable.d.astype(np.float32), {"index": index}, group)
            entries[f"{name}/t"] = Entry(np.asarray(state.t, np.int64), {}, group)
        members.append(Member(f"{part['name']}_{part['solver'].name}_optimizer.h5.optimizer", h5_bytes(entries)))
    return members


def named_states(solver: Any, parameters: Mapping[str, nn.Variable]) -> dict[str, SolverState]:
    """Return the states of a solver by the names that `parameters` gives its parameters."""
    names = {variable: name for name, variable in parameters.items()}
    return {names.get(solver.get_parameters()[key], key): state for key, state in solver.get_states().items()}


def read_states(target: Any, solver: Any, parameters: Mapping[str, nn.Variable]) -> None:
    """Put the states of a solver into a Solver message."""
    for name, state in named_states(solver, parameters).items():
        made = target.states[name]
        made.t = state.t
        for key, variable in state.pstate.items():
            part = made.state_parameter[key]
            part.shape.dim.extend(variable.shape)
            part.shape.SetInParent()
            part.data.extend(variable.d.astype(np.float32).ravel().tolist())


def states_of_entries(entries: Mapping[str, Entry], file: str) -> dict[str, SolverState]:
    """Return the states that a file of arrays holds.

    Raises:
        FileFormatError: when a parameter has no number of updates.
    """
    arrays: dict[str, dict[str, Any]] = {}
    for name, entry in entries.items():
        parameter, _, key = name.rpartition("/")
        arrays.setdefault(parameter, {})[key] = entry.values
    found: dict[str, SolverState] = {}
    for name, values in arrays.items():
        t = values.pop("t", None)
        if t is None or t.size != 1:
            raise FileFormatError(f"{file}: {name!r} must have a number of updates t, got {t}")
        found[name] = SolverState({k: nn.Variable.from_numpy_array(v) for k, v in values.items()}, int(t.reshape(())))
    return found


def states_of_message(solver: Any, file: str) -> dict[str, SolverState]:
    """Return the states that a Solver message holds.

    Raises:
        FileFormatError: when an array contradicts its shape.
    """
    found: dict[str, SolverState] = {}
    for name, state in solver.states.items():
        pstate: dict[str, nn.Variable] = {}
        for key, part in state.state_parameter.items():
            values, shape = np.fromiter(part.data, np.float32, len(part.data)), tuple(part.shape.dim)
            if any(dim < 0 for dim in shape) or np.prod(shape, dtype=object) != values.size:
                raise FileFormatError(
                    f"{file}: state {key!r} of {name!r} must fill the shape {shape}, got {values.size} values"
                )
            pstate[key] = nn.Variable.from_numpy_array(values.reshape(shape))
        found[name] = SolverState(pstate, state.t)
    return found
