"""The page of functions and formats is up to date."""

import pytest

from nn_ext_onnx import table

pytest.importorskip("nn_ext_nnp", reason="lists the functions of NNP files")
pytest.importorskip("nn_ext_c", reason="writes the functions as C")


def test_the_page_is_up_to_date():
    assert table.PAGE.read_text() == table.page(table.names_of_files()), "run python -m nn_ext_onnx.table"
