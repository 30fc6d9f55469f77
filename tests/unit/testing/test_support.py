"""The support table."""

from nn_core.testing.samples.registry import samples_of
from nn_core.testing.support import Cell, Status, support_table


def test_the_reference_runs_everything_in_every_dtype():
    table = support_table(["reference"])
    for column in table.columns.values():
        assert {name for name, cell in column.items() if cell.status is Status.REFUSED} == set()
    assert all(samples_of(spec) for spec in table.functions)


def test_the_reference_has_no_column_beside_others():
    table = support_table(["reference"])
    table.columns["acme", "float32"] = dict.fromkeys([spec.name for spec in table.functions], Cell(Status.NATIVE))
    table.columns["acme", "float32"]["Tanh"] = Cell(Status.PARTLY, "takes nothing far from zero")
    page = table.markdown()
    assert "| function | acme float32 |" in page
    assert "The reference runs every function in float32, float64, float16" in page
    assert "- acme float32, Tanh: takes nothing far from zero" in page


def test_the_page_has_a_row_for_each_function():
    table = support_table(["reference"])
    page = table.markdown()
    assert "| function | reference float32 | reference float64 | reference float16 |" in page
    for spec in table.functions:
        assert f"| {spec.name} |" in page
