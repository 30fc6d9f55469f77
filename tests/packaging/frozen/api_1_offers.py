"""A plugin that offers a file format and a solver."""

import json

import numpy as np

from nn_core.ext import Entry, FileFormatInfo, SolverInfo, hookimpl

PLUGIN_API = 1
REQUIRES_CORE = ">=0.1,<1"


def read(file):
    """Read all arrays."""
    return {name: Entry(np.asarray(values, np.float32), {}) for name, values in json.load(file).items()}


def write(file, entries):
    """Write all arrays."""
    file.write(json.dumps({name: entry.values.tolist() for name, entry in entries.items()}).encode())


@hookimpl
def nn_core_file_formats():
    """Formats of files."""
    return [FileFormatInfo(name="plain", extensions=(".plain",), read=read, write=write)]


@hookimpl
def nn_core_solvers():
    """Solvers."""
    return [SolverInfo(name="Plain", target="nn_core.solvers:Sgd", updates={"host": "json:loads"})]
