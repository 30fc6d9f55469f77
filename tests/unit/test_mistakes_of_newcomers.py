"""Mistakes in training, data, files and sequences: the error names what the caller wrote, and says what to do."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.data.array_sources import ArrayDataSource, ImageDataSource, ImageFolderDataSource
from nn_core.data.source import TransformedDataSource
from nn_core.errors import ArgumentError, MissingFileError, NNCoreError, ShapeError, SignatureError
from nn_core.ext_utils import get_extension_context
from nn_core.training import fit

X, T = np.ones((6, 5), np.float32), np.zeros((6, 1), np.int32)
FLAT, STATE = nn.Variable((4, 5)), nn.Variable((1, 1, 4, 3))
SQUARE = [nn.Variable((6, 6)) for _ in range(4)]


def network(x: nn.Variable) -> nn.Variable:
    return PF.affine(x, 3)


def assign(values: object) -> None:
    x = nn.Variable((2, 3))
    x.name = "images"
    x.d = values  # type: ignore[assignment]


#: The call, the class of the error, and what its text must match.
MISTAKES: Mapping[str, tuple[Callable[[], object], type[NNCoreError], str]] = {
    "fit(lr=)": (
        lambda: fit(network, (X, T), lr=0.1),
        SignatureError,
        r"^fit: got an unexpected keyword argument 'lr'\n  hint: solver=",
    ),
    "fit(optimizer=)": (
        lambda: fit(network, (X, T), optimizer="adam"),
        SignatureError,
        "^fit: .*'optimizer'\n  hint: solver=",
    ),
    "fit(early_stopping=)": (
        lambda: fit(network, (X, T), early_stopping=3),
        SignatureError,
        "^fit: .*'early_stopping'\n  hint: patience=",
    ),
    "fit(epoch=)": (lambda: fit(network, (X, T), epoch=3), SignatureError, "^fit: .*'epoch'; did you mean 'epochs'"),
    "fit without targets": (lambda: fit(network, X), ArgumentError, r"^fit: train must be a pair .*shape \(6, 5\)"),
    "fit with an unknown solver": (lambda: fit(network, (X, T), solver="adm"), ArgumentError, "^fit: solver must be .*'adm'"),
    "validation of another width": (
        lambda: fit(network, (X, T), validation=(X[:, :4], T)),
        ShapeError,
        r"^fit: samples of validation .*\(5,\), got \(4,\)",
    ),
    "solver.step()": (lambda: S.Sgd(0.1).step(), SignatureError, r"^Sgd.step: .*\n  hint: update\(\)"),  # type: ignore[call-arg]
    "ArrayDataSource(x, y)": (lambda: ArrayDataSource(X, T), ArgumentError, "^ArrayDataSource: arrays must be a dict"),  # type: ignore[arg-type]
    "a folder as a list of images": (
        lambda: ImageDataSource("/nowhere/x"),
        ArgumentError,
        "^ImageDataSource: paths must be a list of files, got '/nowhere/x'\n  hint: .* ImageFolderDataSource",
    ),
    "num_threads(2)": (
        lambda: nn.num_threads(2),  # type: ignore[arg-type]
        SignatureError,
        "^num_threads: must be called without arguments, got 2\n  hint: set_num_threads",
    ),
    "no folder of images": (lambda: ImageFolderDataSource("/nowhere"), MissingFileError, "^ImageFolderDataSource: .*/nowhere"),
    "lstm of a matrix": (lambda: PF.lstm(FLAT, STATE, STATE), ShapeError, r"^lstm: x must have 3 axes \(length, .*\(4, 5\)"),
    "gru of a matrix": (lambda: PF.gru(FLAT, STATE), ShapeError, "^gru: x must have 3 axes"),
    "rnn of a matrix": (lambda: PF.rnn(FLAT, STATE), ShapeError, "^rnn: x must have 3 axes"),
    "lstm of a flat state": (
        lambda: PF.lstm(nn.Variable((2, 4, 5)), FLAT, FLAT),
        ShapeError,
        r"^lstm: h must have 4 axes \(layers, directions",
    ),
    "attention of matrices": (
        lambda: F.multi_head_attention(FLAT, FLAT, FLAT, 2, *SQUARE),
        ShapeError,
        "^multi_head_attention: query must have 3 axes",
    ),
    "attention layer of matrices": (
        lambda: PF.multi_head_attention(FLAT, FLAT, FLAT, 2),
        ShapeError,
        "^multi_head_attention: query must have 3 axes",
    ),
    "axis of logsumexp": (lambda: F.logsumexp(FLAT, axis=5), ArgumentError, r"^logsumexp: axes must be in \[-2, 2\)"),
    "axis of argmax": (lambda: F.argmax(FLAT, axis=5), ArgumentError, "^argmax: axes must be in"),
    "axis of std": (lambda: F.std(FLAT, axis=5), ArgumentError, "^std: axes must be in"),
    "axis of var": (lambda: F.var(FLAT, axis=5), ArgumentError, "^var: axes must be in"),
    "context of a GPU": (lambda: get_extension_context("gpu"), NNCoreError, "hint: .*'cudnn'"),
    "weights of another framework": (
        lambda: nn.load_parameters("net.pkl"),
        ArgumentError,
        "hint: other formats come from plugins",
    ),
    "parameters into a network": (lambda: nn.save_parameters("net.onnx"), ArgumentError, "^save_parameters: .*'.onnx'"),
    "states into a network": (lambda: S.Sgd().save_states("net.pth"), ArgumentError, "^save_states: .*'.pth'"),
    "inputs and targets apart": (lambda: fit(network, X, T), ArgumentError, r"^fit: train must be a pair .*\n  hint: fit"),
    "augmentation without a generator": (
        lambda: TransformedDataSource(ArrayDataSource({"x": X, "t": T}), lambda x, t: (x, t)),
        ArgumentError,
        r"^TransformedDataSource: transform must be a function \(rng, x, t\), got",
    ),
    "values of another shape": (lambda: assign(np.ones((4, 5))), ShapeError, r"^variable 'images': .*\(4, 5\) for \(2, 3\)"),
    "no values": (lambda: assign(None), ArgumentError, "must be an array or a number, got None"),
    "ragged values": (lambda: assign([[1, 2], [3]]), ArgumentError, "must form an array"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_error_names_what_the_caller_wrote(mistake: str) -> None:
    call, kind, text = MISTAKES[mistake]
    with nn.parameter_scope("newcomer", {}), pytest.raises(kind, match=text):
        call()


def test_a_solver_by_name() -> None:
    with nn.parameter_scope("newcomer", {}):
        assert len(fit(network, (X, T), epochs=1, solver="adam", progress=False).history) == 1


def test_reading_a_gradient_that_is_never_computed_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    x, w = nn.Variable((2, 3)), nn.Variable((3, 4), need_grad=True)
    x.name = "pixels of a saliency map"
    x.d = w.d = 1
    y = F.sum(F.affine(x, w))
    y.forward()
    y.backward()
    assert not x.g.any()
    assert not x.g.any()
    (record,) = [record for record in caplog.records if "pixels" in record.message]
    assert "need_grad=False" in record.message
    assert w.g.any()
