"""Parameters as a JSON text: {name: [need_grad, nested lists]}."""

import json
from collections.abc import Mapping
from typing import IO

import numpy as np

from nn_core.ext import Entry


def write(file: IO[bytes], entries: Mapping[str, Entry]) -> None:
    """Write all arrays."""
    table = {name: [entry.attributes.get("need_grad", True), entry.values.tolist()] for name, entry in entries.items()}
    file.write(json.dumps(table).encode())


def read(file: IO[bytes]) -> dict[str, Entry]:
    """Read all arrays; what is wrong with a file is a ValueError, KeyError or TypeError."""
    table = json.load(file)
    return {
        name: Entry(np.asarray(values, np.float32), {"need_grad": bool(need_grad)})
        for name, (need_grad, values) in table.items()
    }
