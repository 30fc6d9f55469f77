"""Functions and settings in the C source that NNabla's converter writes: data for the tests of nn_ext_nnp.

    python tools/nnabla/nnabla_c_source.py extensions/nn_ext_nnp/tests/data/functions.json.xz c_source_settings.json

It runs in an interpreter that has NNabla 1.39 and nothing of nn_core. Networks of one function are converted, and names and
numbers are taken from the source; nothing else of it is kept. Functions that the C runtime has are listed in
nn_ext_nnp/nnb/functions.py.
"""

import contextlib
import io
import json
import lzma
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nnabla.utils.cli.cli import main

_FUNCTION = re.compile(r"\(c->(f\d+)\)\.num_of_inputs = (\d+);(.*?)allocate_(\w+)_local_context\(", re.DOTALL)
_OUTPUTS = re.compile(r"num_of_outputs = (\d+);")
_SETTING = re.compile(r"_local_context\)->(\w+) = ([^;]+);")


def source_of(text: str, folder: Path) -> str | None:
    """Return the source for the network of a text; None when NNabla refuses it."""
    (folder / "net.nntxt").write_text(text)
    sys.argv = ["nnabla_cli", "convert", "-O", "CSRC", "-b", "1", str(folder / "net.nntxt"), str(folder)]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()
    found = list(folder.glob("*_inference.c"))
    return found[0].read_text() if found else None


def functions_in(source: str) -> list[Any]:
    """Name, number of inputs and outputs, and settings of each function in the order in which they run."""
    found = []
    for name, n_inputs, body, kind in _FUNCTION.findall(source):
        outputs = _OUTPUTS.search(body)
        settings: dict[str, Any] = {}
        for setting, value in _SETTING.findall(body):
            listed = value.startswith("arg_")
            settings[setting] = re.findall(rf"arg_{name}_{setting}\.data\[\d+\] = (-?\d+);", body) if listed else value
        found.append([kind, int(n_inputs), int(outputs[1]) if outputs else 0, settings])
    executed = re.findall(r"exec_(\w+)\(", source)
    assert executed == [kind for kind, *_ in found], executed
    return found


if __name__ == "__main__":
    recorded_path, output = map(Path, sys.argv[1:3])
    with lzma.open(recorded_path) as recorded:
        texts = {api: entry["text"] for api, entry in json.load(recorded).items()}
    made = {}
    for api, text in texts.items():
        with TemporaryDirectory() as temporary:
            source = source_of(text, Path(temporary))
        if source is not None:
            made[api] = functions_in(source)
    output.write_text(json.dumps(made, sort_keys=True) + "\n")
