"""The table of NNabla's public names is that of today, and tells of each missing name what to use instead."""

import subprocess
import sys

from nn_core.compat.substitutes import substitute
from tools.nnabla.nnabla_names import PAGE, is_there, missing, modules, page


def test_the_table_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.nnabla.nnabla_names"


def test_each_missing_name_has_a_substitute():
    gone = [f"{module}.{name}" for module, names in missing().items() for name in names]
    assert [name for name in gone if not substitute(name)] == []


#: Reads each missing name as programs do, and prints those whose error does not say what to use instead.
READS = """
import nn_core.compat.nnabla
from nn_core.compat.aliases import advice
from nn_core.compat.substitutes import substitute
for module, name in {names!r}:
    first, _, member = name.partition(".")
    code = f"from {{module}} import {{name}}" if not member else f"from {{module}} import {{first}}; {{first}}.{{member}}"
    try:
        exec(code if name else f"import {{module}}", {{}})
        print(module, name, "is there")
    except (ImportError, AttributeError) as error:
        said = f"{{error}} {{advice(error)}}"
        if substitute(f"{{module}}.{{name}}".rstrip(".")) not in said:
            print(module, name, said)
"""


def test_the_error_of_each_missing_name_says_what_to_use():
    names = [(module, name) for module, names in missing().items() for name in names]
    names += [(module, "") for module, names in modules() if not names]
    assert len(names) > 100
    code = READS.format(names=names)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == ""


def test_a_missing_class_stands_for_its_members():
    assert not is_there("nnabla", "ProtoVariable.clone") and missing()["nnabla"].count("ProtoVariable") == 1
    assert not any(name.startswith("ProtoVariable.") for name in missing()["nnabla"])


def test_few_names_are_missing():
    gone = [name for module, names in modules() for name in names if not is_there(module, name)]
    assert len(gone) < 150
