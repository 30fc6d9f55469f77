"""The door ``utils.save``: networks into files. Needs the package nn-ext-nnp."""

import os
from collections.abc import Mapping
from typing import IO, Any

from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.graph.parameter_sources import ParameterSource
from nn_core.files.network_package import network_part


@fitted
def save(
    filename: str | os.PathLike[str] | IO[bytes],
    contents: Mapping[str, Any],
    include_params: bool = False,
    variable_batch_size: bool = True,
    extension: str = ".nnp",
    parameters: ParameterSource | None = None,
    parameter_format: str = ".h5",
    include_solver_state: bool = False,
    solver_state_format: str = ".h5",
) -> None:
    """Write networks, and how to train and run them, to a file that takes the place of an older one when it is complete.

    Args:
        filename: path that ends in .nnp, .nntxt, .prototxt or .protobuf, or a binary file open for writing.
        contents: dictionary of

            - ``networks``: a list of ``{"name", "batch_size", "outputs": {name: Variable}, "names": {name: Variable}}``;
            - ``executors``: ``{"name", "network", "data": [name], "output": [name]}``;
            - ``optimizers``: ``{"name", "solver", "network", "dataset"}`` and ``weight_decay``, ``lr_decay``,
              ``lr_decay_interval``, ``update_interval``, ``data_variables``, ``loss_variables``;
            - ``monitors``: ``{"name", "network", "dataset"}``; ``datasets``: ``{"name", "uri", "variables", ...}``;
            - ``training_config``: ``{"max_epoch", "iter_per_epoch", "save_best"}``;
            - ``global_config``: ``{"default_context": Context}``.
        include_params: write the parameters into .nntxt and .protobuf files too.
        variable_batch_size: let the first axis of inputs be any number of samples; refused for graphs that work for one
            number only.
        extension: format of an open file.
        parameters: what to write into archives: Variables by name, a module, or the name of a scope; None: all of the current
            scope, and of the modules in the networks.
        parameter_format: ".h5" or ".protobuf", of the parameters in archives.
        include_solver_state: write what solvers remember, in archives.
        solver_state_format: ".h5" or ".protobuf".

    Raises:
        ArgumentError: when `contents` lacks something, a function has no place in files, or a graph works for one number
            of samples only.
        BackendNotFoundError: when nn-ext-nnp is not installed.
    """
    network_part("saving", "save")(
        filename,
        contents,
        include_params,
        variable_batch_size,
        extension,
        parameters,
        parameter_format,
        include_solver_state,
        solver_state_format,
    )


@fitted
def create_proto(
    contents: Mapping[str, Any],
    include_params: bool = False,
    variable_batch_size: bool = True,
    save_solver_in_proto: bool = False,
) -> Any:
    """Make the message that `save` writes; arguments as there."""
    return network_part("saving", "create_proto")(contents, include_params, variable_batch_size, save_solver_in_proto)
