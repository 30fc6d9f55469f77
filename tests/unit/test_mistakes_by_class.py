"""Mistakes in training, layers, data, files, solvers, distributed runs and commands: the class of the error, and what it
must name.
"""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.layers as L
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import training
from nn_core.communicators import LocalCommunicator, shard_states
from nn_core.data.array_sources import ArrayDataSource, ImageFolderDataSource, ParquetDataSource
from nn_core.data.iterators import (
    data_iterator,
    data_iterator_cache,
    data_iterator_concat_datasets,
    data_iterator_csv_dataset,
    data_iterator_simple,
)
from nn_core.errors import (
    ArgumentError,
    BackendNotFoundError,
    FileFormatError,
    MissingFileError,
    NNCoreError,
    ShapeError,
    SignatureError,
    UnknownAttributeError,
)
from nn_core.ext_utils import get_extension_context
from nn_core.training import fit

X, T = np.ones((4, 3), np.float32), np.zeros(4, np.int64)
FLAT = nn.Variable((3, 4))
IMAGES = nn.Variable((2, 6, 8, 8))
A, G, H = ArgumentError, SignatureError, ShapeError
Row = tuple[str, Callable[[], object], type[NNCoreError], str]


def fitted(**settings: object) -> object:
    return fit(lambda x: PF.affine(x, 2), (X, T), **{"progress": False, "epochs": 1, **settings})


def predicted(x: np.ndarray) -> object:
    with nn.parameter_scope("mistake", {}):  # what is trained must not be in the way of other tests
        return fitted().predict(x)


def solver(name: str = "Adam") -> S.Solver:
    made: S.Solver = getattr(S, name)()
    made.set_parameters({"w": nn.Variable.from_numpy_array(np.ones(2, np.float32), need_grad=True)})
    return made


def sequences(*shapes: tuple[int, ...]) -> list[nn.Variable]:
    return [nn.Variable(shape) for shape in shapes]


def labels(value: float) -> nn.Variable:
    return nn.Variable.from_numpy_array(np.full((3, 1), value, np.float32))


def written(name: str, content: bytes) -> Callable[[Callable[[str], object]], Callable[[], object]]:
    def of(call: Callable[[str], object]) -> Callable[[], object]:
        def run() -> object:
            Path(name).write_bytes(content)
            return call(name)

        return run

    return of


def in_dynamic_graph() -> None:
    with nn.auto_forward():
        F.embed(labels(0.5), nn.Variable((3, 2)))


def after_close() -> None:
    data = data_iterator_simple(lambda i: (i,), 4, 2)
    data.close()
    data.next()


#: The call in words, the call, the class of its error, and what the text must match.
ROWS: list[Row] = [
    # -- fit ---------------------------------------------------------------------------------------------------------------
    ("fit: network None", lambda: fit(None, (X, T)), A, "^fit: network must be a function or a module .*got None"),
    ("fit: a Variable", lambda: fit(FLAT, (X, T)), A, "^fit: network must be a function or a module .*got Variable"),
    ("fit: a number", lambda: fit(lambda x: 3, (X, T)), A, "^fit: network must return a Variable, or a tuple of some, got 3"),
    (
        "predict: samples of another width",
        lambda: predicted(np.ones((2, 7))),
        H,
        r"^predict: samples must have the shape that the network was built for, \(3,\), got \(7,\)",
    ),
    ("fit: until", lambda: fitted(until=3), G, r"^fit: .*'until'\n  hint: epochs=, patience= or extensions=\[early_stop"),
    ("fit: device", lambda: fitted(device="cuda"), G, r"^fit: .*'device'\n  hint: nn.set_default_context"),
    ("fit: validation_split", lambda: fitted(validation_split=0.2), G, r"'validation_split'\n  hint: validation=0.2"),
    ("fit: no epochs", lambda: fitted(epochs=0), A, "^fit: epochs must be a number greater than 0, got 0"),
    ("fit: epochs '3'", lambda: fitted(epochs="3"), A, "^fit: epochs must be a number greater than 0, got '3'"),
    ("fit: epochs None", lambda: fitted(epochs=None), A, "^fit: epochs must be a number greater than 0, got None"),
    ("fit: batch_size 0", lambda: fitted(batch_size=0), A, "^fit: batch_size must be a whole number .*got 0"),
    ("fit: batch_size '3'", lambda: fitted(batch_size="3"), A, "^fit: batch_size must be a whole number .*got '3'"),
    ("fit: batch_size 2.5", lambda: fitted(batch_size=2.5), A, "^fit: batch_size must be a whole number .*got 2.5"),
    ("fit: patience 0", lambda: fitted(patience=0), A, "^fit: patience must be a whole number of at least 1, or None, got 0"),
    ("fit: patience 'a'", lambda: fitted(patience="a"), A, "^fit: patience must be a whole number of at least 1, or None"),
    (
        "fit: seed 'a'",
        lambda: fitted(seed="a"),
        A,
        "^fit: seed must be a whole number from 0 to 2\\*\\*32 - 1, or None, got 'a'",
    ),
    ("fit: seed -1", lambda: fitted(seed=-1), A, "^fit: seed must be a whole number from 0 to .*, got -1"),
    ("fit: seed 1.5", lambda: fitted(seed=1.5), A, "^fit: seed must be a whole number from 0 to .*, got 1.5"),
    ("fit: out 3", lambda: fitted(out=3), A, "^fit: out must be the path of a folder, or None, got 3"),
    (
        "fit: callbacks 3",
        lambda: fitted(callbacks=3),
        A,
        "^fit: callbacks must be a list of functions of epoch and values, got 3",
    ),
    ("fit: callbacks [3]", lambda: fitted(callbacks=[3]), A, "^fit: callbacks must be a list of functions"),
    ("fit: callbacks print", lambda: fitted(callbacks=print), A, "^fit: callbacks must be a list of functions"),
    ("fit: extensions 3", lambda: fitted(extensions=3), A, "^fit: extensions must be a list of extensions of the trainer"),
    ("fit: extensions [3]", lambda: fitted(extensions=[3]), A, "^fit: extensions must be a list of extensions of the trainer"),
    (
        "fit: schedule 0.1",
        lambda: fitted(schedule=0.1),
        A,
        "^fit: schedule must be a scheduler or a function of the iteration",
    ),
    ("fit: loss 'mse'", lambda: fitted(loss="mse"), A, "^fit: loss must be a function of predictions and targets, got 'mse'"),
    (
        "fit: metrics 'acc'",
        lambda: fitted(metrics=["acc"]),
        A,
        "^fit: metrics must be functions or names .*accuracy.*got 'acc'",
    ),
    ("fit: metrics 3", lambda: fitted(metrics=3), A, "^fit: metrics must be a list of names and functions"),
    ("fit: task", lambda: fitted(task="cls"), A, "^fit: task must be one of classification, regression, got 'cls'"),
    ("fit: solver 3", lambda: fitted(solver=3), A, "^fit: solver must be a solver, or the name of one .*adam.*got 3"),
    (
        "fit: class_weight dict",
        lambda: fitted(class_weight={1: 2, 5: 1}),
        A,
        "^fit: class_weight must have a weight for each class from 0, got {1: 2, 5: 1}",
    ),
    (
        "fit: class_weight 'even'",
        lambda: fitted(class_weight="even"),
        A,
        "^fit: class_weight must be a list of numbers, or 'balanced', got 'even'",
    ),
    (
        "fit: balanced without a class",
        lambda: fit(lambda x: PF.affine(x, 2), (X, T + 1), class_weight="balanced"),
        A,
        "^fit: class_weight='balanced' must find samples of each class, got none of 0",
    ),
    (
        "fit: balanced batches",
        lambda: fit(lambda x: PF.affine(x, 2), [(X, T), (X, T)], class_weight="balanced"),
        A,
        "^fit: class_weight='balanced' must go with arrays",
    ),
    ("fit: a share of 1.5", lambda: fitted(validation=1.5), A, "^fit: validation must be a pair of arrays, or a share .* 1.5"),
    (
        "fit: a share of nothing",
        lambda: fitted(validation=0.01),
        A,
        "^fit: validation must leave samples on both sides, .* of 4",
    ),
    (
        "fit: a share of batches",
        lambda: fit(lambda x: PF.affine(x, 2), [(X, T), (X, T)], 0.2),
        A,
        "^fit: a share as validation must be of arrays",
    ),
    (
        "fit: two targets",
        lambda: fit(lambda x: PF.affine(x, 2), (X, (T, X[:, :1]))),
        A,
        "^fit: loss must be given where a network has several outputs or targets, got none for 1 outputs and 2 arrays",
    ),
    (
        "fit: three arrays",
        lambda: fit(lambda x: PF.affine(x, 2), (X, T, T)),
        A,
        "^fit: train must be a pair of arrays",
    ),
    (
        "fit: class_weight of 3",
        lambda: fitted(class_weight=[1, 2, 3]),
        A,
        "^fit: class_weight must have one for each of 2 classes",
    ),
    ("fit: sample_weight", lambda: fitted(sample_weight="a"), A, "^fit: sample_weight must be a list of numbers, got 'a'"),
    (
        "fit: two sample_weights",
        lambda: fitted(sample_weight=[1, 2]),
        A,
        "^fit: sample_weight must have one for each of 4 samples",
    ),
    ("fit: clip_norm -1", lambda: fitted(clip_norm=-1), A, "^fit: clip_norm must be a number greater than 0, or None, got -1"),
    ("fit: weight_decay 'a'", lambda: fitted(weight_decay="a"), A, "^fit: weight_decay must be a number, or None, got 'a'"),
    ("fit: accumulate 0", lambda: fitted(accumulate=0), A, "^fit: accumulate must be a whole number .*got 0"),
    (
        "fit: loss_scale 'a'",
        lambda: fitted(loss_scale="a"),
        A,
        "^fit: loss_scale must be a LossScale, a number, or None, got 'a'",
    ),
    ("fit: groups", lambda: fitted(groups={"*/X": {}}), A, "^fit: a pattern of groups must match .*, got '\\*/X'"),
    ("fit: overwrite 'yes'", lambda: fitted(overwrite="yes"), A, "^fit: overwrite must be True or False, got 'yes'"),
    ("fit: progress 'yes'", lambda: fitted(progress="yes"), A, "^fit: progress must be True or False, got 'yes'"),
    ("fit: fresh and go_on", lambda: fitted(fresh=True, go_on=True), A, "^fit: fresh must be False with resume or go_on"),
    ("fit: validation 3", lambda: fitted(validation=3), A, "^fit: validation must be a pair of arrays"),
    (
        "fit: no samples",
        lambda: fit(lambda x: PF.affine(x, 2), (X[:0], T[:0])),
        A,
        "^fit: there must be as many targets as inputs",
    ),
    (
        "fit: label 5 of 2",
        lambda: fit(lambda x: PF.affine(x, 2), (X, T + 5), progress=False),
        A,
        "^fit: targets must be labels below 2, .* got 5",
    ),
    (
        "fit: optimiser",
        lambda: fitted(optimizer="adam"),
        G,
        "^fit: got an unexpected keyword argument 'optimizer'\n  hint: solver=",
    ),
    ("fit: no network", fit, G, "^fit: network must be given"),
    # -- training ----------------------------------------------------------------------------------------------------------
    ("every: 0", lambda: training.every(0), A, "^every: the period must be greater than 0, got 0"),
    ("every: None", lambda: training.every(None), A, "^every: the period must be a number, got None"),
    (
        "early_stop: patience",
        lambda: training.early_stop("loss", 0, "min"),
        A,
        "^early_stop: patience must be at least 1, got 0",
    ),
    (
        "early_stop: mode",
        lambda: training.early_stop("loss", 1, "least"),
        A,
        "^early_stop: mode must be 'min' or 'max', got 'least'",
    ),
    (
        "plateau: factor",
        lambda: training.ReduceOnPlateau("loss", 2),
        A,
        "^ReduceOnPlateau: factor must be between 0 and 1, got 2",
    ),
    ("average: decay", lambda: training.MovingAverage({"w": FLAT}, 2), A, "^MovingAverage: decay must be from 0 to 1, got 2"),
    ("average: nothing", lambda: training.MovingAverage(3), A, "^MovingAverage: parameters must be Variables by name"),
    ("clip_values", lambda: training.clip_values(-1), G, "^clip_values: high must be given, got none"),
    (
        "checkpoint: none",
        lambda: training.load_checkpoint("no.npz"),
        MissingFileError,
        "^no.npz: the file must exist, got none",
    ),
    (
        "checkpoint: object",
        lambda: training.save_checkpoint("c.npz", a=object()),
        A,
        "^save_checkpoint: a state must be made of",
    ),
    (
        "checkpoint: pickle",
        lambda: training.save_checkpoint("c.pkl", a=1),
        A,
        "^save_checkpoint: the extension must be one of",
    ),
    ("cross_entropy: weights", lambda: training.cross_entropy(FLAT, nn.Variable((3,)), 0, [1]), A, "must have 4 weights"),
    (
        "focal_loss: labels",
        lambda: training.focal_loss(FLAT, nn.Variable((5,))),
        H,
        "^focal_loss: t must have the shape \\(3, 1\\)",
    ),
    ("training: Optimizer", lambda: training.Optimizer, UnknownAttributeError, "has no attribute 'Optimizer'"),
    # -- solvers -----------------------------------------------------------------------------------------------------------
    (
        "minimize: None",
        lambda: solver().minimize(None),
        A,
        "^minimize: loss must be a Variable or a function that returns one",
    ),
    (
        "minimize: array",
        lambda: solver().minimize(np.ones(3)),
        A,
        "^minimize: loss must be a Variable or a function .*ndarray",
    ),
    ("minimize: batch", lambda: solver().minimize(F.sum(FLAT), X), A, "^minimize: batch must be empty beside a Variable"),
    (
        "minimize: clip",
        lambda: solver().minimize(F.sum(FLAT), clip_norm="a"),
        A,
        "^minimize: clip_norm must be a number, got 'a'",
    ),
    (
        "set_learning_rate: None",
        lambda: solver().set_learning_rate(None),
        A,
        "^set_learning_rate: learning_rate must be a number",
    ),
    ("weight_decay: None", lambda: solver().weight_decay(None), A, "^weight_decay: decay_rate must be a number, got None"),
    ("scale_grad: text", lambda: solver().scale_grad("a"), A, "^scale_grad: scale must be a number, got 'a'"),
    (
        "clip global: text",
        lambda: solver().clip_grad_by_global_norm("a"),
        A,
        "^clip_grad_by_global_norm: clip_norm must be a number",
    ),
    (
        "remove_parameters: 3",
        lambda: solver().remove_parameters(3),
        A,
        "^remove_parameters: keys must be a list of names, got 3",
    ),
    (
        "remove_parameters: text",
        lambda: solver().remove_parameters("w"),
        A,
        "^remove_parameters: keys must be a list of names, got 'w'",
    ),
    (
        "set_parameters: reset",
        lambda: solver().set_parameters({}, reset="no"),
        A,
        "^set_parameters: reset: must be True or False",
    ),
    (
        "groups: lr",
        lambda: solver().set_groups({"w": {"lr": 1}}),
        A,
        "^set_groups: groups\\['w'\\]: .*hint: learning_rate_multiplier",
    ),
    (
        "groups: nothing",
        lambda: solver().set_groups({"v": {}}),
        A,
        "^set_groups: a pattern of groups must match .*got 'v' for w",
    ),
    (
        "states: other",
        lambda: solver("Momentum").set_state(solver().get_state()),
        A,
        "^Momentum.set_state: the state must be that of",
    ),
    ("states: nothing", lambda: solver().set_state(3), A, "^Adam.set_state: the state must be a dictionary with string keys"),
    ("states: number", lambda: solver().set_states(3), A, "^set_states: states must be of the type Mapping, got 3"),
    (
        "states: to a number",
        lambda: solver().save_states(3),
        A,
        "^save_states: path must be a text, a Path or an open file, got 3",
    ),
    ("states: to a pickle", lambda: solver().save_states("s.pkl"), A, "^save_states: the extension must be one of"),
    (
        "Lookahead: text",
        lambda: S.Lookahead("adam"),
        A,
        "^Lookahead: solver must be a solver such as S.Adam\\(\\), got 'adam'",
    ),
    ("Lookahead: no solver", S.Lookahead, G, "^Lookahead: solver must be given"),
    ("SAM: rho", lambda: S.SAM(S.Sgd(), rho=-1), A, "^SAM: rho must be at least 0 and finite, got -1"),
    (
        "SAM: update",
        lambda: solver_of(S.SAM(S.Sgd())).update(),
        NNCoreError,
        "^SAM.update: the loss must be computed several times",
    ),
    ("SAM: array", lambda: S.SAM(S.Sgd(), rho=np.zeros(0)), A, "^SAM: rho must be a number"),
    ("Lookahead: array", lambda: S.Lookahead(S.Sgd(), slow_step=np.zeros(0)), A, "^Lookahead: slow_step must be a number"),
    ("LBFGS: long history", lambda: S.LBFGS(history=2**31), A, "^LBFGS: history must be at most 1000"),
    ("Module: training", lambda: nn.Sequential().train(np.zeros(0)), A, "^training: must be True or False"),
    ("LBFGS: history", lambda: S.LBFGS(history=0), A, "^LBFGS: history must be a whole number .*got 0"),
    ("S.SGD", lambda: S.SGD, UnknownAttributeError, "did you mean 'Sgd'"),
    # -- layers and modules ------------------------------------------------------------------------------------------------
    ("Linear: 0", lambda: L.Linear(0), A, "n_outmaps must be a positive integer, got 0"),
    ("Linear: '3'", lambda: L.Linear("3"), A, "n_outmaps must be a positive integer, got '3'"),
    ("Linear: nothing", L.Linear, G, "n_outmaps must be given, got none"),
    ("Linear: bias", lambda: L.Linear(3, bias=False), G, "'bias'; did you mean 'with_bias'"),
    ("Linear: array", lambda: L.Linear(3)(np.ones((2, 3))), A, "^affine: input x must be a Variable .*hint: wrap it"),
    ("Linear: list", lambda: L.Linear(3)([1]), A, "^affine: inp must be Variable or NdArray, got \\[1\\]"),
    ("Conv: no kernel", lambda: L.Conv(4), G, "^Conv: kernel must be given, got none"),
    ("Conv: of a matrix", lambda: L.Conv(4, (3, 3))(FLAT), H, "^convolution: x must have a channel axis and a spatial axis"),
    ("Dropout: 2", lambda: L.Dropout(2), A, "^Dropout: p must be at least 0 and less than 1, got 2"),
    ("LSTM: of a matrix", lambda: L.LSTM(3)(FLAT), H, "^LSTM: x must have 3 axes \\(length, batch, features\\)"),
    ("GRU: 'a'", lambda: L.GRU("a"), A, "^GRU: n_units must be a positive integer, got 'a'"),
    ("BatchNorm: axes", lambda: L.BatchNorm(axes=9)(FLAT), A, "^batch_normalization: axes must be axes of an array of shape"),
    (
        "LayerNorm: 'a'",
        lambda: L.LayerNorm(batch_axis="a")(FLAT),
        A,
        "^layer_normalization: batch_axis must be axes of an array",
    ),
    ("LayerNorm: 1.5", lambda: L.LayerNorm(batch_axis=1.5)(FLAT), A, "^layer_normalization: batch_axis must be"),
    ("GroupNorm: groups", lambda: L.GroupNorm(4)(IMAGES), H, "^group_normalization: the channels of x must be a multiple"),
    ("Embed: one size", lambda: L.Embed(3), G, "^Embed: n_features must be given, got none"),
    ("layers: Dense", lambda: L.Dense, UnknownAttributeError, "has no attribute 'Dense'"),
    ("Sequential: 3", lambda: nn.Sequential(3), A, "^Sequential: every layer must be a Module or a function, got 3"),
    # -- functions that are made of others name themselves -------------------------------------------------------------------
    (
        "attention: keys",
        lambda: F.scaled_dot_product_attention(*sequences((2, 5, 8), (2, 7, 8), (2, 6, 8))),
        H,
        "^scaled_dot_product_attention: k and v must have the same length, got 7 and 6",
    ),
    (
        "attention: width",
        lambda: F.scaled_dot_product_attention(*sequences((2, 5, 8), (2, 7, 6), (2, 7, 8))),
        H,
        "^scaled_dot_product_attention: q and k must have the same number of features",
    ),
    (
        "heads: keys",
        lambda: PF.multi_head_attention(*sequences((5, 2, 8), (7, 2, 8), (6, 2, 8)), 2),
        H,
        "^multi_head_attention: key and value must have the same length \\(axis 0\\), got 7 and 6",
    ),
    (
        "heads: batch",
        lambda: PF.multi_head_attention(*sequences((5, 2, 8), (5, 3, 8), (5, 3, 8)), 2),
        H,
        "^multi_head_attention: query, key and value must have the same batch \\(axis 1\\), got 2, 3, 3",
    ),
    (
        "heads: 0",
        lambda: F.multi_head_attention(*sequences((5, 2, 8), (5, 2, 8), (5, 2, 8)), 0, *sequences(*[(8, 8)] * 4)),
        A,
        "^multi_head_attention: num_heads must be at least 1, got 0",
    ),
    ("norm: axis", lambda: F.norm(FLAT, axis=5), A, "^norm: axes must be in \\[-2, 2\\)"),
    ("cumsum: axis", lambda: F.cumsum(FLAT, axis=5), A, "^cumsum: axis must be in \\[-2, 2\\)"),
    (
        "label 0.5",
        lambda: F.softmax_cross_entropy(FLAT, labels(0.5)).forward(),
        A,
        "^softmax_cross_entropy: target: .*whole numbers, got 0.5",
    ),
    (
        "label NaN",
        lambda: F.softmax_cross_entropy(FLAT, labels(np.nan)).forward(),
        A,
        "^softmax_cross_entropy: target: .*must be finite",
    ),
    (
        "label 0.5 of an NdArray",
        lambda: F.one_hot(nn.NdArray.from_numpy_array(np.full((3, 1), 0.5)), (4,)),
        A,
        "^one_hot: x: .*whole numbers",
    ),
    ("index 0.5 in a dynamic graph", in_dynamic_graph, A, "^embed: x0: .*whole numbers, got 0.5"),
    # -- data --------------------------------------------------------------------------------------------------------------
    ("arrays: none", lambda: ArrayDataSource({}), A, "^ArrayDataSource: there must be at least one array, got none"),
    ("arrays: lengths", lambda: ArrayDataSource({"x": X, "t": T[:2]}), A, "^ArrayDataSource: arrays must have one length"),
    ("arrays: None", lambda: ArrayDataSource({"x": None}), A, "^ArrayDataSource: x must be an array with rows, got None"),
    ("arrays: name", lambda: ArrayDataSource({3: X}), A, "^ArrayDataSource: names of arrays must be texts, got 3"),
    (
        "arrays: shuffle",
        lambda: ArrayDataSource({"x": X}, shuffle="yes"),
        A,
        "^ArrayDataSource: shuffle: must be True or False",
    ),
    (
        "images: no folder",
        lambda: ImageFolderDataSource("nowhere"),
        MissingFileError,
        "^ImageFolderDataSource: folder must exist, got no",
    ),
    (
        "images: empty",
        lambda: ImageFolderDataSource("."),
        FileFormatError,
        "there must be images in a folder for each class, got none",
    ),
    (
        "parquet: none",
        lambda: ParquetDataSource("no.parquet"),
        MissingFileError,
        "^ParquetDataSource: files must exist, got none",
    ),
    ("parquet: a list", lambda: ParquetDataSource(["a.parquet", "b.parquet"]), MissingFileError, "got none for 'a.parquet'"),
    (
        "iterator: batch 0",
        lambda: data_iterator(ArrayDataSource({"x": X}), 0),
        A,
        "batch_size must be a whole number of at least 1",
    ),
    (
        "iterator: rng",
        lambda: data_iterator_simple(lambda i: (i,), 4, 2, rng=3),
        A,
        "rng must be RandomState, Generator or None, got 3",
    ),
    (
        "iterator: workers",
        lambda: data_iterator_simple(lambda i: (i,), 4, 2, workers=2),
        G,
        "^data_iterator_simple: .*'workers'",
    ),
    ("iterator: closed", after_close, A, "^DataIterator: a batch must be taken before close\\(\\)"),
    (
        "iterator: slice",
        lambda: data_iterator_simple(lambda i: (i,), 4, 2).slice(None, 2, 5),
        A,
        "^slice: slice_pos must be one of .*got 5 of 2",
    ),
    ("concat: none", lambda: data_iterator_concat_datasets([], 2), A, "^ConcatDataSource: there must be at least one source"),
    ("concat: 3", lambda: data_iterator_concat_datasets([3], 2), A, "^ConcatDataSource: data_source_list must be"),
    ("csv: 3", lambda: data_iterator_csv_dataset(3, 1), A, "the file must be given by its path, got 3"),
    (
        "csv: no file",
        lambda: data_iterator_csv_dataset("no.csv", 1),
        MissingFileError,
        "no.csv: the file must exist, got none",
    ),
    (
        "csv: empty",
        written("e.csv", b"")(lambda p: data_iterator_csv_dataset(p, 1)),
        FileFormatError,
        "e.csv: the first line must name the columns",
    ),
    (
        "csv: no samples",
        written("h.csv", b"x,y\n")(lambda p: data_iterator_csv_dataset(p, 1)),
        FileFormatError,
        "h.csv: there must be at least one sample, got 0",
    ),
    (
        "csv: ragged",
        written("r.csv", b"x,y\n1,2\n3\n")(lambda p: data_iterator_csv_dataset(p, 1)),
        FileFormatError,
        "r.csv: line 3 must have 2 cells, got 1",
    ),
    (
        "csv: a missing file",
        written("m.csv", b"x:data\nno.npy\n")(lambda p: data_iterator_csv_dataset(p, 1)),
        FileFormatError,
        "m.csv, line 2, column 'x:data'.*no.npy",
    ),
    (
        "cache: none",
        lambda: data_iterator_cache("nowhere", 2),
        FileFormatError,
        "nowhere.cache_index.csv: a cache must have this file",
    ),
    # -- files -------------------------------------------------------------------------------------------------------------
    (
        "save: to a number",
        lambda: nn.save_parameters(3, {"w": FLAT}),
        A,
        "^save_parameters: path must be a text, a Path or an open file, got 3",
    ),
    (
        "save: to None",
        lambda: nn.save_parameters(None, {"w": FLAT}),
        A,
        "^save_parameters: path must be a text, a Path or an open file, got None",
    ),
    (
        "save: to PyTorch",
        lambda: nn.save_parameters("w.pth", {"w": FLAT}),
        A,
        "^save_parameters: the format must be one in which parameters are written, got '.pth', which is only read\n  hint: ",
    ),
    (
        "save: to a folder",
        lambda: nn.save_parameters(".", {"w": FLAT}),
        A,
        "^save_parameters: the path must have an extension",
    ),
    (
        "save: a list",
        lambda: nn.save_parameters("w.h5", [FLAT]),
        A,
        "^save_parameters: params must be Variables by name, a module",
    ),
    (
        "save: numbers",
        lambda: nn.save_parameters("w.h5", {"w": 3}),
        A,
        "^save_parameters: params must be Variables by name, got 3 under 'w'",
    ),
    (
        "load: None",
        lambda: nn.load_parameters(None),
        A,
        "^load_parameters: path must be a text, a Path or an open file, got None",
    ),
    ("load: pickle", lambda: nn.load_parameters("w.pkl"), A, "^load_parameters: the extension must be one of .*got '.pkl'"),
    (
        "load: bad npz",
        written("b.npz", b"PK\x03\x04x")(nn.load_parameters),
        FileFormatError,
        "b.npz: the file must be whole and in the format .npz",
    ),
    (
        "load: bad safetensors",
        written("b.safetensors", b"\0\0")(nn.load_parameters),
        FileFormatError,
        "b.safetensors: the header must have",
    ),
    ("load: bad h5", written("b.h5", b"nothing")(nn.load_parameters), FileFormatError, "b.h5: "),
    ("nn.save", lambda: nn.save, UnknownAttributeError, "did you mean 'save_parameters'"),
    # -- contexts and distributed runs ---------------------------------------------------------------------------------------
    (
        "context of gpu",
        lambda: get_extension_context("gpu"),
        BackendNotFoundError,
        "^a backend must be among those installed .*'cudnn' and 'cuda'",
    ),
    ("ranks: 0", lambda: LocalCommunicator.run(0, print), A, "^LocalCommunicator: size must be a whole number .*got 0"),
    (
        "shards: bucket",
        lambda: LocalCommunicator.run(1, lambda comm: shard_states(comm, solver(), bucket_mb=0)),
        A,
        "^shard_states: bucket_mb must be positive, got 0",
    ),
    (
        "shards: Muon by element",
        lambda: LocalCommunicator.run(1, lambda comm: shard_states(comm, solver("Muon"), by_parameter=False)),
        A,
        "^shard_states: by_parameter must be True or None for Muon",
    ),
    (
        "shards: LBFGS",
        lambda: LocalCommunicator.run(1, lambda comm: shard_states(comm, S.LBFGS())),
        A,
        "^shard_states: solver must update by gradients of one pass, got LBFGS",
    ),
]


def solver_of(made: S.Solver) -> S.Solver:
    w = nn.Variable.from_numpy_array(np.ones(2, np.float32), need_grad=True)
    made.set_parameters({"w": w})
    w.g = 1.0
    return made


@pytest.mark.parametrize(("call", "kind", "text"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_class_and_what_it_names(call, kind, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with nn.parameter_scope("mistake", {}), pytest.raises(kind) as caught:
        call()
    assert re.search(text, str(caught.value), re.DOTALL), str(caught.value)


def test_the_index_of_plugins_tells_backends_from_others():
    with pytest.raises(BackendNotFoundError) as caught:
        get_extension_context("gpu")
    listed = re.search(r"installed \((.*?)\)", str(caught.value)).group(1).split(", ")
    assert "reference" in listed
    assert not {"onnx", "nnp", "c", "ray"} & set(listed)


def test_notebooks_show_the_program_and_one_frame_of_nn_core():
    """By the method that IPython asks an exception for."""

    def network(x):
        return PF.affine(x, 3, base_axis=9)

    with pytest.raises(ArgumentError) as caught:
        fit(network, (X, T), progress=False)
    lines = caught.value._render_traceback_()
    files = [line for line in lines if line.startswith("  File ")]
    assert [Path(__file__).name in line for line in files] == [True] * (len(files) - 1) + [False]
    assert any("in network" in line for line in files)
    assert lines[0] == "Traceback (most recent call last):"
    assert "nn_core.errors.ArgumentError: affine: base_axis must be" in lines[-1]


def test_notebooks_name_the_exception_of_the_program_behind_an_error():
    def load(i):
        raise KeyError("label")

    with pytest.raises(ArgumentError) as caught:
        try:
            load(0)
        except KeyError as error:
            raise ArgumentError("load: labels must be there, got none") from error
    assert caught.value._render_traceback_()[-1] == "  caused by KeyError: 'label'"
