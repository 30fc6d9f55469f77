"""The names in docs/from_chainer.md exist, and those with a star are this package's."""

import re
from operator import attrgetter
from pathlib import Path

import pytest

import nn_core.functions as F
import nn_core.parametric_functions as PF

PAGE = Path(__file__).parents[3] / "docs" / "from_chainer.md"
ROWS = [row.split(" | ") for row in PAGE.read_text("utf-8").splitlines() if row.startswith("| ")]
NAME = re.compile(r"\b(P?F)\.((?:contrib\.)?\w+)[^`|]*`(\*?)")
NAMES = sorted({found for row in ROWS for cell in row[1:] for found in NAME.findall(cell)})
STARRED_ROWS = {name for row in ROWS if "the same*" in row[1] for name in re.findall(r"F\.([\w.]+)", row[1])}


@pytest.mark.parametrize(("module", "name", "star"), NAMES)
def test_a_name_exists_and_is_marked_where_it_is_of_this_package(module, name, star):
    assert callable(attrgetter(name)({"F": F, "PF": PF}[module]))
    assert name.startswith("contrib.") == bool(star or name in STARRED_ROWS)


def test_every_function_of_this_package_has_a_row():
    page = PAGE.read_text("utf-8")
    backward = "roi_average_pooling_2d_backward"  # the gradient of another one
    without_link = [name for name in dir(F.contrib) if f"F.contrib.{name}" not in page]
    assert without_link in ([], [backward])
