"""The mode in which programs written for NNabla run unchanged: one setting, and the table of its effects."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nn_core.compat.aliases import install
from nn_core.settings import is_nnabla_program, set_nnabla_program

#: Every effect of the mode beyond NNabla's names, by subject.
EFFECTS: Final[Mapping[str, str]] = {
    "subprocesses": "interpreters that the program starts have NNabla's names and this mode as well: PYTHONPATH leads to them",
    "log": "messages from level INFO on are printed to stderr in NNabla's layout, unless logging is set up already",
    "data": "get_data_home() is ~/nnabla_data, unless NN_CORE_DATA names a folder",
    "weights": "NNabla's names of files of weights are found too, and NNABLA_MODELS_URL_BASE says from where to fetch them",
    "contexts": "get_extension_context ignores a keyword that the extension does not know, with one warning",
    "attributes": "what NNabla takes and never reads is taken, with one warning: lr of a subclass of Adam, name of a Module",
    "uncomputed": "y.d and y.g of a function that has not run are zeros, which cannot be written to, with one warning; "
    "so is what was unlinked from it for functions",
}

#: Packages called nnabla and nnabla_ext that import nn_core: for interpreters that start later.
_NAMES: Final = str(Path(__file__).parent / "names")
_LAYOUT: Final = "%(asctime)s [%(name)s][%(levelname)s]: %(message)s"


def run_unchanged() -> None:
    """Let the program of this process, which was written for NNabla, run as it is; a second call does nothing.

    The names of NNabla are installed as ``import nn_core.compat.nnabla`` does, and the effects that docs/from_nnabla.md
    lists take place. ``nn-core run`` calls it. Only the program may, and no library: it changes the process and its
    environment.

    Raises:
        ImportError: when NNabla itself is already imported.
    """
    install()
    _prepare_interpreters()
    if not is_nnabla_program():
        set_nnabla_program(True)
    logging.basicConfig(level=logging.INFO, format=_LAYOUT)


def report() -> list[str]:
    """Return the lines of ``nn-core doctor`` about the mode: whether it is on, and what it does."""
    state = "on" if is_nnabla_program() else "off; `nn-core run` switches it on"
    return [f"mode for unchanged programs of NNabla: {state}", *(f"  {name}: {text}" for name, text in EFFECTS.items())]


def _prepare_interpreters() -> None:
    """Let interpreters that inherit the environment find the names of NNabla."""
    os.environ["NN_CORE_NNABLA_PROGRAM"] = "1"
    folders = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder and folder != _NAMES]
    os.environ["PYTHONPATH"] = os.pathsep.join([_NAMES, *folders])
