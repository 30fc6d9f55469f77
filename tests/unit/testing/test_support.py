"""The support table."""

from nn_core.testing.samples.registry import samples_of
from nn_core.testing.support import Status, support_table


def test_the_reference_runs_everything_in_every_dtype():
    table = support_table(["reference"])
    for column in table.columns.values():
        assert {name for name, cell in column.items() if cell.status is Status.REFUSED} == set()
    assert all(samples_of(spec) for spec in table.functions)


def test_the_page_has_a_row_for_each_function():
    table = support_table(["reference"])
    page = table.markdown()
    assert "| function | reference float32 | reference float64 | reference float16 |" in page
    for spec in table.functions:
        assert f"| {spec.name} |" in page
