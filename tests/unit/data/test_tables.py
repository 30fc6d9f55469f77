"""Tables in CSV files: the same samples whichever way a file is read, in little memory, and not copied to workers."""

import csv
import io
import pickle
import tracemalloc

import numpy as np
import pytest

from nn_core.data import csv_rows as lines
from nn_core.data.iterator import DataIterator
from nn_core.data.table import CsvDataSource
from nn_core.errors import FileFormatError

TEXTS = {
    "plain": "x__0,x__1,y\n1,2.5,3\n-4e-3,nan,inf\n",
    "windows": "x__0,x__1,y\r\n1,2.5,3\r\n-4e-3,nan,inf\r\n",
    "old mac": "x__0,x__1,y\r1,2.5,3\r-4e-3,nan,inf\r",
    "mixed": "x__0,x__1,y\r\n1,2.5,3\n-4e-3,nan,inf",
    "mark": "\ufeffx__0,x__1,y\n1,2.5,3\n-4e-3,nan,inf\n",
    "empty lines": "x__0,x__1,y\n\n1,2.5,3\n\n\n-4e-3,nan,inf\n\n",
    "quotes": 'x__0,x__1,"y:a, label"\n"1","2.5",3\n-4e-3,nan,"inf"\n',
    "spaces": "x__0,x__1,y\n 1, 2.5 ,3\n-4e-3,nan , inf\n",
    "words": "x__0,x__1,y:größe\n1,2_0.5e-1,3\n-4e-3,NaN,Infinity\n".replace("2_0.5e-1", "2.5"),
    "underscores": "x__0,x__1,y\n1,0_2.5,3\n-4e-3,nan,inf\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("chunk", [7, 1 << 24])
def test_tables_have_the_same_samples_however_they_are_written(tmp_path, monkeypatch, name, chunk):
    monkeypatch.setattr(lines, "_CHUNK", chunk)
    (tmp_path / "t.csv").write_bytes(TEXTS[name].encode())
    source = CsvDataSource(tmp_path / "t.csv")
    assert (source.size, tuple(source.variables)) == (2, ("x", "y"))
    (x, y), (x2, y2) = source.next(), source.next()
    assert x.dtype == y.dtype == np.float32
    np.testing.assert_array_equal(x, np.float32([1, 2.5]))
    np.testing.assert_array_equal(x2, np.float32([-4e-3, np.nan]))
    assert y.tolist() == [3.0] and y2.tolist() == [np.inf]


@pytest.mark.parametrize("chunk", [11, 1 << 24])
def test_rows_are_those_of_the_csv_module(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(lines, "_CHUNK", chunk)
    rng = np.random.default_rng(3)
    cells = ["1.5", "a,b", 'say "x"', "", "zwei\nZeilen", "ü.npy", " b ", "\u2028", "\x0b"]
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        for plain in (False, True):
            known = [cell for cell in cells if not plain or not set(cell) & set(',"\n')]
            rows = [["x", "y", "z"], *rng.choice(known, (40, 3)).tolist()]
            rows = [row for row in rows if any(row)]
            file = io.StringIO()
            csv.writer(file, quoting=quoting).writerows(rows)
            (tmp_path / "t.csv").write_bytes(file.getvalue().encode())
            found = lines.CsvRows(tmp_path / "t.csv")
            assert [found.titles, *[found.row(index)[1] for index in range(len(found))]] == rows


@pytest.mark.parametrize("cell", ["1e39", "0x10", "1 2", "", "1;2", "x"])
def test_numbers_that_are_none_are_told_at_their_sample(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"x__0,x__1\n1,2\n3,{cell}\n5,6\n")
    source = CsvDataSource(tmp_path / "t.csv")
    assert source.next()[0].tolist() == [1.0, 2.0]
    with pytest.raises(FileFormatError, match=r"t.csv, line 3, column 'x__1': a cell of an element must hold a number, got"):
        source.next()


def test_variables_whose_columns_are_apart(tmp_path):
    (tmp_path / "t.csv").write_text("x__0,y,x__1\n1,2,3\n")
    x, y = CsvDataSource(tmp_path / "t.csv").next()
    assert x.tolist() == [1.0, 3.0] and y.tolist() == [2.0]


@pytest.fixture
def long(tmp_path):
    """Return a table of 60,000 rows, 1.4 MB."""
    values = np.random.default_rng(0).standard_normal((60_000, 3)).round(5).astype(np.float32)
    rows = "\n".join(",".join(map(str, row)) for row in values.tolist())
    (tmp_path / "long.csv").write_text(f"x__0,x__1,y\n{rows}\n")
    return tmp_path / "long.csv", values


@pytest.mark.parametrize("has_names", [False, True])
def test_a_table_takes_less_than_three_times_its_file(long, has_names):
    path, _ = long
    if has_names:
        path.write_text(path.read_text() + "1,2,image.png\n")
    tracemalloc.start()
    source = CsvDataSource(path, shuffle=True)
    source.reset()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size < 3 * path.stat().st_size and (source._rows.values is None) == has_names


def test_workers_read_the_table_themselves(long):
    path, values = long
    source = CsvDataSource(path)
    content = pickle.dumps(source)
    assert len(content) < 10_000
    with DataIterator(source, 1000, workers=1, worker_type="process") as data:
        np.testing.assert_array_equal(data.next()[0], values[:1000, :2])
    path.write_text("x__0,x__1,y\n1,2,3\n")
    with pytest.raises(
        FileFormatError, match=r"long.csv: the file must be the one that was opened, got another or a changed one"
    ):
        pickle.loads(content)
