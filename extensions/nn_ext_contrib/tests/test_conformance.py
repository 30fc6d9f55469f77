"""The operators on every installed backend; see `nn_core.testing`. Their samples are in the package."""

from pathlib import Path

import nn_ext_contrib.plugin
from nn_core.testing.conformance import *  # noqa: F403

(_PACKAGE,) = nn_ext_contrib.plugin.nn_core_functions()
FUNCTIONS = tuple(
    line.partition(":")[2].strip()
    for line in Path(_PACKAGE.spec).read_text("utf-8").splitlines()
    if line.startswith("- name:")
)
