"""The optional parts of backends, kernels, runners and steps."""

import re
from pathlib import Path

import pytest

from nn_core.typing import BackendExtras, KernelExtras, extra

ROOT = Path(__file__).parents[2]
BACKEND = [name for name in vars(BackendExtras) if not name.startswith("_")]
KERNEL = [name for name in vars(KernelExtras) if not name.startswith("_")]


class Plain:
    """A backend, kernel, runner or step that has nothing beyond its protocol."""


@pytest.mark.parametrize("name", BACKEND + KERNEL)
def test_what_is_missing_has_a_default_that_does_nothing(name):
    assert not extra(Plain(), name)
    assert not extra(None, name)


def test_what_is_there_is_taken():
    class Fast:
        parameter_dtypes = {"bfloat16": "float32"}  # noqa: RUF012  # as backends have it

    assert extra(Fast(), "parameter_dtypes") == {"bfloat16": "float32"}


@pytest.mark.parametrize(("name", "former"), [("flush", "settle"), ("inference_fusions", "joins"), ("accumulating", "adding")])
def test_former_names_serve_where_the_present_ones_are_missing(name, former):
    old = type("Old", (), {former: "old"})
    both = type("Both", (), {former: "old", name: "new"})
    assert extra(old(), name) == "old"
    assert extra(both(), name) == "new"


def test_a_name_that_is_no_extra_is_a_mistake_of_the_engine():
    with pytest.raises(AttributeError):
        extra(Plain(), "fuze")


@pytest.mark.parametrize("name", BACKEND)
def test_the_guide_for_authors_has_a_row_for_each(name):
    guide = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{name}[`(]", guide, re.MULTILINE)


@pytest.mark.parametrize(("cls", "names"), [(BackendExtras, BACKEND), (KernelExtras, KERNEL)])
def test_each_is_described(cls, names):
    described = re.findall(r"^        (\w+): ", cls.__doc__, re.MULTILINE)
    assert described == names
