"""The door ``utils.load``: networks from files. Needs the package nn-ext-nnp."""

from typing import Any

from nn_core.context import Context
from nn_core.engine.error_messages.refusal import fitted
from nn_core.files.network_package import network_part


@fitted
def load(
    filenames: Any,
    prepare_data_iterator: bool = True,
    batch_size: int | None = None,
    exclude_parameter: bool = False,
    parameter_only: bool = False,
    extension: str = ".nntxt",
    context: Context | None = None,
) -> Any:
    """Read networks, and how to train and run them; parameters go into the current scope.

    Args:
        filenames: a path or an open file, or a list of them: .nnp, .nntxt, .prototxt, .protobuf, .h5.
        prepare_data_iterator: whether data sets get a ``data_iterator``, which opens them when it is called.
        batch_size: number of samples; None: as the file says.
        exclude_parameter: leave the parameters of the file alone.
        parameter_only: read nothing else.
        extension: format of open files.
        context: where to run; None: in the current context.

    Returns:
        An object with ``global_config``, ``training_config``, and dictionaries by name ``datasets``, ``networks``,
        ``optimizers``, ``monitors`` and ``executors``. A network has ``inputs``, ``outputs``, ``variables`` and
        ``parameters`` by name.

    Raises:
        FileFormatError: when a file is damaged or says what there is not; names file, line and function.
        BackendNotFoundError: when nn-ext-nnp is not installed.
    """
    return network_part("loading", "load")(
        filenames, prepare_data_iterator, batch_size, exclude_parameter, parameter_only, extension, context
    )
