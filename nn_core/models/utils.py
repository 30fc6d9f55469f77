"""The folder of the files of weights, and the address from which they may be fetched."""

from pathlib import Path

from nn_core.engine.error_messages.refusal import fitted
from nn_core.errors import ArgumentError
from nn_core.settings import is_nnabla_program, settings
from nn_core.utils.download import get_data_home


@fitted
def get_model_home() -> str:
    """Return the folder of the files of weights, ``nnp_models`` in that of `nn_core.utils.download.get_data_home`; made if
    needed.

    Example:
        >>> from nn_core.models.utils import get_model_home
        >>> from pathlib import Path
        >>> Path(get_model_home()).name
        'nnp_models'
    """
    folder = Path(get_data_home()) / "nnp_models"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


@fitted
def get_model_url_base_from_env() -> str | None:
    """Return the address in NN_CORE_MODELS_URL_BASE, with a slash at the end; None when there is none.

    Under ``nn-core run`` the address in NNABLA_MODELS_URL_BASE takes the place of one that is missing.

    Example:
        >>> from nn_core.models.utils import get_model_url_base_from_env
        >>> get_model_url_base_from_env() is None
        True
    """
    base = settings().models_url_base or (settings().nnabla_models_url_base if is_nnabla_program() else None)
    return None if base is None else base.rstrip("/") + "/"


@fitted
def get_model_url_base() -> str:
    """Return the address below which the files of weights are, as NN_CORE_MODELS_URL_BASE says; nothing is fetched without it.

    Raises:
        ArgumentError: when the setting is empty.

    Example:
        >>> from nn_core.models.utils import get_model_url_base
        >>> get_model_url_base()
        Traceback (most recent call last):
        nn_core.errors.ArgumentError: get_model_url_base: NN_CORE_MODELS_URL_BASE must be an address, got none
    """
    base = get_model_url_base_from_env()
    if base is None:
        raise ArgumentError("get_model_url_base: NN_CORE_MODELS_URL_BASE must be an address, got none")
    return base
