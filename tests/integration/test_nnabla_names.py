"""The table of NNabla's public names is that of today, and tells of each missing name what to use instead."""

from nn_core.compat.substitutes import substitute
from tools.nnabla.nnabla_names import PAGE, is_there, missing, modules, page


def test_the_table_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.nnabla.nnabla_names"


def test_each_missing_name_has_a_substitute():
    gone = [f"{module}.{name}" for module, names in missing().items() for name in names]
    assert [name for name in gone if not substitute(name)] == []


def test_a_missing_class_stands_for_its_members():
    assert not is_there("nnabla", "ProtoVariable.clone") and missing()["nnabla"].count("ProtoVariable") == 1
    assert not any(name.startswith("ProtoVariable.") for name in missing()["nnabla"])


def test_few_names_are_missing():
    gone = [name for module, names in modules() for name in names if not is_there(module, name)]
    assert len(gone) < 150
