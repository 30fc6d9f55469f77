"""Mistakes with files, commands and whole numbers, and the number of mistakes in all tables."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import training
from nn_core.__main__ import main
from nn_core.data.array_sources import Hdf5DataSource, ImageFolderDataSource, NumpyDataSource, ParquetDataSource
from nn_core.data.combined_sources import ZippedDataSource
from nn_core.data.iterators import data_iterator_concat_datasets, data_iterator_csv_dataset
from nn_core.errors import (
    ArgumentError,
    DiskFullError,
    FileFormatError,
    MissingFileError,
    NNCoreError,
    PluginError,
    ShapeError,
)
from nn_core.io import load_keras_parameters, load_pytorch_parameters
from nn_core.models.transformer import GPT
from tests.unit import test_mistakes, test_mistakes_by_class, test_mistakes_of_newcomers

M, FLAT = MissingFileError, nn.Variable((4, 5))

#: Calls that read a file which does not exist.
READERS: dict[str, Callable[[], object]] = {
    "load_parameters: no h5": lambda: nn.load_parameters("no.h5"),
    "load_parameters: no npz": lambda: nn.load_parameters("no.npz"),
    "load_parameters: no safetensors": lambda: nn.load_parameters("no.safetensors"),
    "load_parameters: no pth": lambda: nn.load_parameters("no.pth"),
    "load_parameters: no onnx": lambda: nn.load_parameters("no.onnx"),
    "Module.load_parameters": lambda: nn.Sequential().load_parameters("no.h5"),
    "load_states": lambda: S.Sgd().load_states("no.h5"),
    "load_checkpoint": lambda: training.load_checkpoint("no.npz"),
    "load_pytorch_parameters": lambda: load_pytorch_parameters("no.safetensors"),
    "load_keras_parameters": lambda: load_keras_parameters("no.h5"),
    "NumpyDataSource": lambda: NumpyDataSource("no.npz"),
    "NumpyDataSource of several": lambda: NumpyDataSource({"x": "no.npy"}),
    "Hdf5DataSource": lambda: Hdf5DataSource("no.h5"),
    "ParquetDataSource": lambda: ParquetDataSource("no.parquet"),
    "ImageFolderDataSource": lambda: ImageFolderDataSource("no"),
    "data_iterator_csv_dataset": lambda: data_iterator_csv_dataset("no.csv", 2),
}
#: The words after `nn-core`, and what is printed.
COMMANDS = {
    "explan convolution": "No such command 'explan'. Did you mean 'explain'",
    "explain convolutoin": "explain: the name of a function must be given, got 'convolutoin'; did you mean 'convolution'",
    "explain convolution --context gpu": "No such option '--context'",
    "ops soft": "ops: PATTERN must fit a function, got 'soft'; did you mean '\\*soft\\*'",
    "ops --topic actvation": "ops: PATTERN must fit a function, .*'actvation'",
    "bench --peer caffe": "bench: --peer must be one of .*torch, .*got 'caffe'",
    "run missing.py": "run: PROGRAM must be a file, got 'missing.py'",
    "new-extension Acme! --kind backend": "new-extension: NAME must be lower-case .*got 'Acme!'",
    "new-operator x": "new-operator: NAME must be a capital letter .*got 'x'",
    "check-extension missing": "check-extension: must be a folder .*got 'missing'",
    "summary missing.h5": "'FILE': File 'missing.h5' does not exist",
    "doctor --jsn": "No such option '--jsn'. Did you mean '--json'",
    "info x": "unexpected extra argument \\(x\\)",
}
#: Calls with half a number where a whole one must be: the function is named, and what was given.
HALVES: dict[str, Callable[[], object]] = {
    **{f"{name}: axis": lambda name=name: getattr(F, name)(FLAT, axis=1.5)  # type: ignore[misc]
       for name in ("sum", "mean", "prod", "max", "min", "argmax", "argmin", "std", "var", "norm", "logsumexp", "cumsum",
                    "softmax", "log_softmax", "squeeze", "expand_dims", "split", "sort")},
    "tile: reps": lambda: F.tile(FLAT, 1.5),
    "flip: axes": lambda: F.flip(FLAT, 1.5),
    "top_k_data: k": lambda: F.top_k_data(FLAT, 1.5),
    "reshape: shape": lambda: F.reshape(FLAT, (2.5, 8)),
    "broadcast: shape": lambda: F.broadcast(FLAT, (2.5, 5)),
    "slice: start": lambda: F.slice(FLAT, (0.5, 0), (2, 2), (1, 1)),
    "randint: high": lambda: F.randint(0, 1.5, (2,)),
    "randn: shape": lambda: F.randn(shape=(2.5,)),
    "constant: shape": lambda: F.constant(0, (2.5,)),
    "convolution: kernel": lambda: PF.convolution(nn.Variable((1, 3, 8, 8)), 4, (3, 2.5)),
    "layer_normalization: axis": lambda: F.layer_normalization(FLAT, None, None, batch_axis=1.5),
    "Variable: shape": lambda: nn.Variable((2.5,)),
    "NdArray: shape": lambda: nn.NdArray((2.5,)),
    "reset_shape: every length": lambda: FLAT.reset_shape((2.5,), True),
    "set_num_threads: threads": lambda: nn.set_num_threads(1.5),
    "seed: the seed": lambda: nn.seed(1.5),
}  # fmt: skip


def gpt() -> GPT:
    return GPT(n_tokens=5, n_positions=4, n_layers=1, n_features=4, n_heads=2)


#: The call in words, the call, the class of its error, and what the text must match.
OTHERS: dict[str, tuple[Callable[[], object], type[NNCoreError], str]] = {
    "concat: a path": (
        lambda: data_iterator_concat_datasets("a.csv", 2), ArgumentError, "^ConcatDataSource: .* of data sources, got 'a.csv'",
    ),
    "zip: arrays": (lambda: ZippedDataSource([np.ones(3)]), ArgumentError, "^ZippedDataSource: .* list of data sources, got"),
    "a folder as a file": (lambda: nn.load_parameters("folder.h5"), FileFormatError, "folder.h5: it must be a regular file"),
    "save: to a missing folder": (lambda: nn.save_parameters("no/w.h5", {"w": FLAT}), M, "the folder must exist.*mkdir"),
    "x.g of another shape": (lambda: setattr(FLAT, "g", np.ones((3, 3))), ShapeError, r"\(3, 3\) for \(4, 5\)"),
    "generate: text": (lambda: gpt().generate("hello", 2), ArgumentError, "^generate: prompt 0 must hold .*got 'hello'"),
    "generate: a number": (lambda: gpt().generate(3, 2), ArgumentError, "^generate: prompt 0 must hold .*got 3"),
    "generate: nothing": (lambda: gpt().generate([], 2), ArgumentError, r"^generate: prompt 0 must hold .*got \[\]"),
    "generate: no token": (lambda: gpt().generate([1, 9], 1), ArgumentError, "^generate: prompt 0 .* from 0 to 4, got 9"),
    "generate: below 0": (lambda: gpt().generate([[1], [-1]], 1), ArgumentError, "^generate: prompt 1 .* from 0 to 4, got -1"),
    "generate: stop": (lambda: gpt().generate([1], 1, stop="."), ArgumentError, r"^generate: stop .* whole numbers, got '\.'"),
    "affine: samples alone": (
        lambda: PF.affine(nn.Variable((8,)), 3), ArgumentError, r"^affine: .*of 1 axis, got 1\n  hint: .*reshape\(x, ",
    ),
    "lstm: a size in place of a state": (
        lambda: PF.lstm(nn.Variable((2, 3, 4)), 6), ArgumentError, "^lstm: h must be Variable, NdArray or None, got 6",
    ),
    "generate: too long": (lambda: gpt().generate([1, 2], 9), ArgumentError, "^generate: .* at most 4, got 2 and 9"),
    "generate: temperature": (lambda: gpt().generate([1], 1, temperature=-1), ArgumentError, "^generate: temperature .*-1"),
    "generate: top_k": (lambda: gpt().generate([1], 1, top_k=0), ArgumentError, "^generate: top_k .*got 0"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder.h5").mkdir()


@pytest.mark.parametrize("call", READERS.values(), ids=READERS)
def test_a_missing_file_is_named(call: Callable[[], object]) -> None:
    with pytest.raises(MissingFileError, match=r"must exist, got no") as caught:
        call()
    assert re.search(r"\bno\b", str(caught.value))


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_say_what_they_must_get(words: str) -> None:
    result = CliRunner().invoke(main, words.split())
    assert result.exit_code != 0
    assert re.search(COMMANDS[words], result.output), result.output


@pytest.mark.parametrize("name", HALVES)
def test_half_a_number_is_refused_by_the_function_that_was_called(name: str) -> None:
    function, _, argument = name.partition(": ")
    with nn.parameter_scope("halves", {}), pytest.raises(NNCoreError, match=rf"^{function}: .*got .*\d\.5") as caught:
        HALVES[name]()
    assert argument in str(caught.value)


@pytest.mark.parametrize("name", OTHERS)
def test_the_class_and_what_it_names(name: str) -> None:
    call, kind, text = OTHERS[name]
    with pytest.raises(kind) as caught:
        call()
    assert re.search(text, str(caught.value), re.DOTALL), str(caught.value)


def test_a_full_disk_is_told_with_file_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda number: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
    with pytest.raises(
        DiskFullError, match=r"w.h5: there must be room for the whole file, about [1-9].* bytes, got none after"
    ):
        nn.save_parameters("w.h5", {"w": FLAT})


def test_num_threads_is_a_number() -> None:
    assert isinstance(nn.num_threads(), int) and nn.num_threads() >= 1


def test_a_function_is_no_kernel() -> None:
    from nn_core.engine.dispatch.admission import check_kernel

    with pytest.raises(PluginError, match="must have the methods refuse, forward and backward, got a function\n  hint: "):
        check_kernel("backend 'acme': the kernel of F.relu", lambda x, y: None)


def test_there_are_three_hundred() -> None:
    tables: list[list[str]] = [
        list(test_mistakes.MISTAKES),
        [row[0] for row in test_mistakes_by_class.ROWS],
        list(test_mistakes_of_newcomers.MISTAKES),
        *(list(table) for table in (READERS, COMMANDS, HALVES, OTHERS)),
    ]
    names = [name for table in tables for name in table]
    assert len(set(names)) >= 500
    for table in tables:
        assert len(set(table)) == len(table)
