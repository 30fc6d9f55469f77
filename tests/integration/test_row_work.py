"""The table of calls that networks make: what it holds, and that no row takes far more time than others for as much work."""

from dataclasses import replace

import pytest

from benchmarks.row_table import rows
from benchmarks.rows import Timed, cliffs, measured, remaining_cliffs, summary

pytest.importorskip("nn_ext_cpu")


def test_the_table_has_thousands_of_rows_that_differ():
    table = list(rows())
    assert len(table) > 3000
    assert len({str(row) for row in table}) == len(table)
    assert {"convolution", "depthwise", "product", "reduction", "norm", "move", "sort"} <= {row.kind for row in table}


def test_a_row_that_takes_far_more_than_its_class_is_found():
    some = [row for row in rows() if row.kind == "convolution"][:9]
    usual = [Timed(replace(row, work=10**6 + k), 2.0) for k, row in enumerate(some)]
    slow = Timed(replace(some[0], work=10**6), 15.0)
    assert cliffs(usual) == []
    assert [result for result, _ in cliffs([*usual, slow])] == [slow]
    short = Timed(replace(some[0], work=10**6), 2.1)
    assert cliffs([*[replace(result, ours=0.4) for result in usual], short]) == []  # within the floor


def test_the_summary_names_the_worst():
    results = [Timed(row, ours, 1.0) for row, ours in zip(rows(), (0.5, 4.0, 1.0), strict=False)]
    text = summary(results, 1)
    assert str(results[1].row) in text and str(results[0].row) not in text.partition("rows,")[0]
    assert "3 rows: geometric mean 1.260, 1 above 1 (33.3 %), 1 above 2" in text


def is_known(row) -> bool:
    """Tell whether a row is known to take more.

    That are a composite of several functions, what the C library computes in float64, and extremes of short rows, which are
    searched one after the other, as by PyTorch.
    """
    by_library = row.dtype == "float64" and row.name in ("cos", "erf", "sin", "tan")
    of_short_rows = row.name in ("max over (3,)", "min over (3,)") and row.shapes[0][-1] < 32
    return row.name == "mish" or by_library or of_short_rows


@pytest.mark.slow
def test_no_row_takes_far_more_than_its_class():
    some = [row for row in rows() if row.kind not in ("element-wise", "broadcast", "loss") and row.work < 1 << 26][::3]
    some = [row for row in some if not is_known(row)]
    assert remaining_cliffs([measured(row, None, 2, 0.002) for row in some], 3, 0.004) == []
