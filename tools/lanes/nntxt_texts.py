"""Draw texts that use all kinds of messages and fields, and let NNabla print them: data for the tests of nn_ext_nnp.

    python tools/lanes/nntxt_texts.py --nnabla-python PYTHON --output extensions/nn_ext_nnp/tests/data/text_digests.json

The texts are drawn from the schema, in a layout that neither package prints. The file has the SHA-256 of what NNabla's
protobuf classes print after they have read a text; nothing of NNabla's is kept.
"""

import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

N_TEXTS = 40
#: Program for NNabla's interpreter: read and print each text of a folder.
_PRINT = """
import pathlib, sys
from google.protobuf import text_format
from nnabla.utils import nnabla_pb2
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.nntxt")):
    made = nnabla_pb2.NNablaProtoBuf()
    text_format.Merge(path.read_bytes().decode(), made)
    path.with_suffix(".printed").write_bytes(text_format.MessageToString(made).encode())
"""
_STRINGS = ("x", "conv/W", "@net/ReLU_out", "a b", "{L}[0]", 'say "no"', "it's", "back\\slash",
            "line\nend", "Übergang", "重み", "")  # fmt: skip
_FLOATS = ("0.0", "1.0", "-1.5", "0.1", "1e-05", "3.4e38", "1e-40", "123456.78", "1e16", "inf", "-inf", "16777216.0")
_DOUBLES = (*_FLOATS, "0.30000000000000004", "1e300", "-2.5e-308")
#: Messages are no deeper than this.
_DEPTH = 5


def drawn_text(seed: int) -> str:
    """Return a text of all messages that a network, a training or an executor has, a part of the functions' among them."""
    from nn_ext_nnp.schema import message

    rng = random.Random(seed)
    return _fields(message("NNablaProtoBuf").DESCRIPTOR, rng, 0)


def _fields(descriptor: Any, rng: random.Random, depth: int) -> str:
    chosen: dict[Any, Any] = {}  # of each union, the member that is written
    for union in descriptor.oneofs:
        chosen[union.name] = rng.choice(union.fields)
    parts = []
    for field in descriptor.fields:
        union = field.containing_oneof
        if (union is not None and chosen[union.name] is not field) or (depth and rng.random() < 0.3):
            continue
        if field.message_type is not None and depth >= _DEPTH:
            continue
        count = rng.choice((0, 1, 2, 3)) if _is_repeated(field) and depth else (2 if _is_repeated(field) else 1)
        parts += [_field(field, rng, depth) for _ in range(count)]
    rng.shuffle(parts)  # fields may come in any order
    return " ".join(parts)


def _is_repeated(field: Any) -> bool:
    return bool(getattr(field, "is_repeated", False)) or getattr(field, "label", 0) == 3


def _field(field: Any, rng: random.Random, depth: int) -> str:
    if field.message_type is not None:
        if field.message_type.GetOptions().map_entry:
            return f"{field.name} {{ {_entry(field.message_type, rng, depth)} }}"
        return f"{field.name} {{ {_fields(field.message_type, rng, depth + 1)} }}"
    return f"{field.name}: {_value(field, rng)}"


def _entry(descriptor: Any, rng: random.Random, depth: int) -> str:
    return " ".join(_field(field, rng, depth + 1) for field in descriptor.fields)


def _value(field: Any, rng: random.Random) -> str:
    kind = field.cpp_type
    if kind == field.CPPTYPE_BOOL:
        return rng.choice(("true", "false"))
    if kind == field.CPPTYPE_STRING:
        return "".join(_quoted(rng.choice(_STRINGS)))
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice(_FLOATS if kind == field.CPPTYPE_FLOAT else _DOUBLES)
    if kind == field.CPPTYPE_ENUM:
        return str(rng.choice(field.enum_type.values).name)
    numbers = (0, 1, -1, 7, -(2**31), 2**31 - 1) if kind == field.CPPTYPE_INT32 else (0, 1, -1, 2**31, 2**62, -(2**63))
    if kind in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64):
        numbers = (0, 1, 7, 255, 2**16, 2**31)
    return str(rng.choice(numbers))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def digest(text: bytes) -> str:
    """Of a printed text."""
    return hashlib.sha256(text).hexdigest()


@click.command()
@click.option("--nnabla-python", required=True, help="An interpreter in which NNabla can be imported.")
@click.option("--output", required=True, type=click.Path(path_type=Path), help="File of the digests, as JSON.")
def main(nnabla_python: str, output: Path) -> None:
    """Draw the texts, print them by NNabla, write the digests."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for seed in range(N_TEXTS):
            (folder / f"{seed:03d}.nntxt").write_bytes(drawn_text(seed).encode())
        subprocess.run([nnabla_python, "-c", _PRINT, name], check=True)
        found = [digest(path.read_bytes()) for path in sorted(folder.glob("*.printed"))]
    output.write_text("[\n" + ",\n".join(json.dumps(text) for text in found) + "\n]\n")
    click.echo(f"{len(found)} texts")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()
