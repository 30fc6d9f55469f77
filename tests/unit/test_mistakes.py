"""Typical mistakes of the first week: each gives an error of nn_core that names the function, says what must hold and what
was given, and gives a hint where the remedy is known."""

import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.initializer as I
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import training
from nn_core.data.iterators import (
    data_iterator,
    data_iterator_concat_datasets,
    data_iterator_csv_dataset,
    data_iterator_simple,
)
from nn_core.errors import NNCoreError
from nn_core.ext_utils import get_extension_context
from nn_core.monitor import Monitor, MonitorSeries
from nn_core.parameter import get_parameter_or_create, set_parameter
from nn_core.training import Checkpoint, Schedule, Trainer, Updater, every, fit
from nn_core.utils.learning_rate_scheduler import CosineScheduler, LinearWarmupScheduler, StepScheduler

x = nn.Variable((3, 4))
w = nn.Variable((4, 3))
t = nn.Variable((3, 1))
img = nn.Variable((2, 3, 8, 8))
k = nn.Variable((4, 3, 3, 3))
seq = nn.Variable((5, 2, 8))


class Net(nn.Module):
    def call(self, x):
        return PF.affine(x, 3)


class Empty(nn.Module):
    pass


def leaf():
    return nn.Variable.from_numpy_array(np.ones((2, 2)), need_grad=True)


def label_loss(label):
    labels = nn.Variable.from_numpy_array(np.full((3, 1), label, np.float32))
    F.softmax_cross_entropy(x, labels).forward()


def collide():
    with nn.parameter_scope("outer"):
        get_parameter_or_create("inner", (2,))
    with nn.parameter_scope("outer/inner"):
        pass


def collide_inside():
    with nn.parameter_scope("mine", {}), nn.parameter_scope("encoder"):
        PF.affine(x, 4, name="layer1")
        PF.affine(x, 5, name="layer1")


def backward_of_constant():
    y = F.sum(nn.Variable((2,)) * 2)
    y.forward()
    y.backward()


def second_backward():
    y = F.sum(F.tanh(F.tanh(leaf())))
    y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=True)
    y.backward(clear_buffer=True)


def wrong_grad():
    y = leaf() * 2
    y.forward()
    y.backward(np.ones((9, 9)))


def saved(path):
    get_parameter_or_create("p", (2,))
    nn.save_parameters(path)


def damaged():
    path = Path(tempfile.mkdtemp()) / "damaged.h5"
    path.write_bytes(b"nothing of this is HDF5")
    return path


def run_in(context):
    with nn.context_scope(context):
        F.relu(nn.NdArray((2,)))


MISTAKES = {
    # -- functions ---------------------------------------------------------------------------------------------------------
    "F unknown: mse_loss": lambda: F.mse_loss(x, x),
    "F unknown: linear": lambda: F.linear(x, w),
    "F unknown: dense": lambda: F.dense(x, 3),
    "F unknown: cross_entropy": lambda: F.cross_entropy(x, t),
    "F unknown: conv2d": lambda: F.conv2d(img, 4, 3),
    "F unknown: cat": lambda: F.cat([x, x]),
    "F unknown: permute": lambda: F.permute(x, (1, 0)),
    "F unknown: unsqueeze": lambda: F.unsqueeze(x, 0),
    "F unknown: reluu": lambda: F.reluu(x),
    "F unknown: Relu": lambda: F.Relu(x),
    "F unknown: max_pool2d": lambda: F.max_pool2d(img, 2),
    "F unknown: add": lambda: F.add(x, x),
    "F input: list": lambda: F.relu([1.0, 2.0]),
    "F input: ndarray": lambda: F.relu(np.ones(3)),
    "F input: number": lambda: F.relu(3),
    "F input: None": lambda: F.relu(None),
    "F input: text": lambda: F.relu("x"),
    "F input: Module": lambda: F.relu(Net()),
    "F input: missing": lambda: F.relu(),
    "F argument: unknown": lambda: F.relu(x, inplce=True),
    "F argument: too many": lambda: F.relu(x, True, -1, None, 5),
    "F argument: text for flag": lambda: F.relu(x, inplace="yes"),
    "affine: weight shape": lambda: F.affine(x, nn.Variable((7, 3))),
    "affine: bias shape": lambda: F.affine(x, w, nn.Variable((9,))),
    "affine: base_axis": lambda: F.affine(x, w, base_axis=5),
    "affine: missing weight": lambda: F.affine(x),
    "affine: weight is a number": lambda: F.affine(x, 10),
    "convolution: kernel too large": lambda: F.convolution(img, nn.Variable((4, 3, 20, 20))),
    "convolution: channels": lambda: F.convolution(img, nn.Variable((4, 5, 3, 3))),
    "convolution: stride 0": lambda: F.convolution(img, k, stride=0),
    "convolution: negative pad": lambda: F.convolution(img, k, pad=-1),
    "convolution: pad of 3": lambda: F.convolution(img, k, pad=(1, 1, 1)),
    "convolution: pad text": lambda: F.convolution(img, k, pad="same"),
    "convolution: float stride": lambda: F.convolution(img, k, stride=1.5),
    "convolution: groups": lambda: F.convolution(img, k, group=2),
    "convolution: 2-d input": lambda: F.convolution(x, k),
    "max_pooling: no kernel": lambda: F.max_pooling(img),
    "max_pooling: kernel 0": lambda: F.max_pooling(img, 0),
    "max_pooling: kernel float": lambda: F.max_pooling(img, 2.5),
    "max_pooling: kernel too long": lambda: F.max_pooling(img, (2, 2, 2, 2, 2)),
    "max_pooling: kernel text": lambda: F.max_pooling(img, "2"),
    "softmax: axis": lambda: F.softmax(x, axis=7),
    "softmax: axis float": lambda: F.softmax(x, axis=1.5),
    "softmax: axis text": lambda: F.softmax(x, axis="last"),
    "reshape: wrong size": lambda: F.reshape(x, (7, 7)),
    "reshape: two -1": lambda: F.reshape(x, (-1, -1)),
    "reshape: -2": lambda: F.reshape(x, (-2, 4)),
    "reshape: float": lambda: F.reshape(x, (2.5, 4)),
    "transpose: repeated": lambda: F.transpose(x, (0, 0)),
    "transpose: too few": lambda: F.transpose(img, (1, 0)),
    "concatenate: shapes": lambda: F.concatenate(x, nn.Variable((3, 5)), axis=0),
    "concatenate: axis": lambda: F.concatenate(x, x, axis=4),
    "concatenate: list": lambda: F.concatenate([x, x]),
    "concatenate: nothing": lambda: F.concatenate(),
    "concatenate: ranks": lambda: F.concatenate(x, img),
    "stack: shapes": lambda: F.stack(x, w),
    "split: axis": lambda: F.split(x, axis=3),
    "add2: shapes": lambda: F.add2(x, nn.Variable((3, 5))),
    "broadcast: shape": lambda: F.broadcast(x, (3, 5)),
    "batch_matmul: shapes": lambda: F.batch_matmul(nn.Variable((2, 3, 4)), nn.Variable((2, 3, 4))),
    "dropout: p 1.5": lambda: F.dropout(x, 1.5),
    "dropout: p negative": lambda: F.dropout(x, -0.1),
    "dropout: p text": lambda: F.dropout(x, "0.5"),
    "one_hot: no shape": lambda: F.one_hot(t),
    "softmax_cross_entropy: shapes": lambda: F.softmax_cross_entropy(x, nn.Variable((5, 1))),
    "softmax_cross_entropy: label 0.5": lambda: label_loss(0.5),
    "one_hot: 0.5": lambda: F.one_hot(nn.NdArray.from_numpy_array(np.full((3, 1), 0.5)), (4,)),
    "softmax_cross_entropy: labels NaN": lambda: label_loss(float("nan")),
    "softmax_cross_entropy: label too large": lambda: label_loss(99),
    "squared_error: shapes": lambda: F.squared_error(x, nn.Variable((3, 5))),
    "sum: axis": lambda: F.sum(x, axis=2),
    "sum: axis text": lambda: F.sum(x, axis="rows"),
    "sum: axes repeated": lambda: F.sum(x, axis=(0, 0)),
    "mean: keepdim": lambda: F.mean(x, keepdim=True),
    "max: axis": lambda: F.max(x, axis=9),
    "batch_normalization: shapes": lambda: F.batch_normalization(img, w, w, w, w),
    "interpolate: nothing": lambda: F.interpolate(img),
    "interpolate: mode": lambda: F.interpolate(img, 2, mode="bicubic"),
    "pad: odd": lambda: F.pad(img, (1, 1, 1)),
    "pad: mode": lambda: F.pad(img, (1, 1), mode="wrap"),
    "embed: text": lambda: F.embed("words", w),
    "randn: shape text": lambda: F.randn(shape="3"),
    "clip: nothing": lambda: F.clip(x),
    "squeeze: axis": lambda: F.squeeze(x, 0),
    "where: shapes": lambda: F.where(x, img, img),
    "matmul: number": lambda: F.matmul(x, 2),
    "gather: axis": lambda: F.gather(x, t, axis=5),
    "top_k_data: k": lambda: F.top_k_data(x, 99),
    "leaky_relu: text": lambda: F.leaky_relu(x, alpha="0.1"),
    "arange: no stop": lambda: F.arange(3),
    "arange: tiny step": lambda: F.arange(0, 2, step=1e-320),
    "convolution: padding beyond any memory": lambda: F.convolution(img, k, pad=2**31, stride=2**31),
    "batch_normalization: flag of several values": lambda: F.batch_normalization(
        img, None, None, None, None, output_stat=np.ones(2)
    ),
    # -- parametric functions ----------------------------------------------------------------------------------------------
    "PF unknown: dense": lambda: PF.dense(x, 3),
    "PF unknown: linear": lambda: PF.linear(x, 3),
    "PF unknown: Conv2d": lambda: PF.Conv2d(img, 3, 3),
    "PF unknown: batch_norm": lambda: PF.batch_norm(img),
    "PF unknown: relu": lambda: PF.relu(x),
    "PF.affine: negative": lambda: PF.affine(x, -4),
    "PF.affine: float": lambda: PF.affine(x, 4.5),
    "PF.affine: zero": lambda: PF.affine(x, 0),
    "PF.affine: text": lambda: PF.affine(x, "4"),
    "PF.affine: nothing": lambda: PF.affine(x),
    "PF.affine: bias": lambda: PF.affine(x, 4, bias=False),
    "PF.affine: input list": lambda: PF.affine([[1.0]], 4),
    "PF.affine: input ndarray": lambda: PF.affine(np.ones((2, 3)), 4),
    "PF.affine: base_axis": lambda: PF.affine(x, 4, base_axis=9),
    "PF.affine: w_init text": lambda: PF.affine(x, 4, w_init="zeros", name="a"),
    "PF.affine: w_init shape": lambda: PF.affine(x, 4, w_init=np.ones((9, 9)), name="b"),
    "PF.affine: another shape": lambda: (PF.affine(x, 4, name="c"), PF.affine(x, 5, name="c")),
    "PF.convolution: no kernel": lambda: PF.convolution(img, 4),
    "PF.affine: name": lambda: PF.affine(x, 4, name=3),
    "PF.affine: several names": lambda: PF.affine(x, 4, name=["a", "b"]),
    "PF.convolution: kernel 0": lambda: PF.convolution(img, 4, 0, name="k0"),
    "PF.convolution: kernel too large": lambda: PF.convolution(img, 4, 30, name="k30"),
    "PF.convolution: padding": lambda: PF.convolution(img, 4, 3, padding=1),
    "PF.convolution: outmaps float": lambda: PF.convolution(img, 4.5, 3),
    "PF.convolution: outmaps negative": lambda: PF.convolution(img, -4, 3),
    "PF.convolution: groups": lambda: PF.convolution(img, 4, 3, group=2, name="g"),
    "PF.convolution: kernel text": lambda: PF.convolution(img, 4, "3x3"),
    "PF.convolution: 2-d input": lambda: PF.convolution(x, 4, (3, 3), name="2d"),
    "PF.convolution: swapped": lambda: PF.convolution(img, (3, 3), 4),
    "PF.batch_normalization: axes": lambda: PF.batch_normalization(img, axes=(9,)),
    "PF.batch_normalization: training": lambda: PF.batch_normalization(img, training=True),
    "PF.embed: float": lambda: PF.embed(t, 10.5, 3),
    "PF.embed: no features": lambda: PF.embed(t, 10),
    "PF.multi_head_attention: heads": lambda: PF.multi_head_attention(seq, seq, seq, num_heads=3),
    "PF.lstm_cell: nothing": lambda: PF.lstm_cell(x),
    "scope: name of a parameter": lambda: collide(),
    "scope: name of a parameter in an own dictionary": lambda: collide_inside(),
    "get_parameter_or_create: name of a scope": lambda: (PF.affine(x, 2, name="d"), get_parameter_or_create("d", (2,))),
    "scope: number": lambda: nn.parameter_scope(3).__enter__(),
    "get_parameter_or_create: no shape": lambda: get_parameter_or_create("new"),
    "get_parameter_or_create: no name": lambda: get_parameter_or_create("", (2,)),
    "set_parameter: array": lambda: set_parameter("w", np.ones(3)),
    # -- solvers -----------------------------------------------------------------------------------------------------------
    "S unknown: SGD": lambda: S.SGD(0.1),
    "S unknown: adam": lambda: S.adam(),
    "S unknown: RMSProp": lambda: S.RMSProp(),
    "S.Adam: lr": lambda: S.Adam(lr=0.1),
    "S.Sgd: alpha": lambda: S.Sgd(alpha=0.1),
    "S.Sgd: learning_rate": lambda: S.Sgd(learning_rate=0.1),
    "S.Sgd: negative": lambda: S.Sgd(-0.1),
    "S.Sgd: NaN": lambda: S.Sgd(float("nan")),
    "S.Sgd: text": lambda: S.Sgd("fast"),
    "S.Adam: beta 2": lambda: S.Adam(beta1=2.0),
    "S.Momentum: weight_decay": lambda: S.Momentum(0.1, weight_decay=1e-4),
    "set_parameters: list": lambda: S.Sgd().set_parameters([x]),
    "set_parameters: variable": lambda: S.Sgd().set_parameters(x),
    "set_parameters: array": lambda: S.Sgd().set_parameters({"w": np.ones(3)}),
    "set_learning_rate: negative": lambda: S.Sgd().set_learning_rate(-1),
    "solver attribute": lambda: setattr(S.Adam(), "lr", 0.1),
    "solver.step()": lambda: S.Adam().steps(),
    "weight_decay: text": lambda: S.Sgd().weight_decay("0.1"),
    "clip_grad_by_norm: negative": lambda: S.Sgd().clip_grad_by_norm(-1.0),
    # -- variables ---------------------------------------------------------------------------------------------------------
    "nn unknown: Varable": lambda: nn.Varable((2,)),
    "nn unknown: Tensor": lambda: nn.Tensor((2,)),
    "nn unknown: Linear": lambda: nn.Linear(2, 3),
    "Variable: array": lambda: nn.Variable(np.ones((2, 3))),
    "Variable: two lengths": lambda: nn.Variable(2, 3),
    "Variable: negative": lambda: nn.Variable((-1, 3)),
    "Variable: float": lambda: nn.Variable((2.5, 3)),
    "Variable: None": lambda: nn.Variable((None, 3)),
    "Variable: text": lambda: nn.Variable("23"),
    "Variable: need_grad": lambda: nn.Variable((2,), need_grad="yes"),
    "Variable: name": lambda: nn.Variable((2,), name=3),
    "Variable: dtype": lambda: nn.Variable((2,), dtype="float16"),
    "from_numpy_array: text": lambda: nn.Variable.from_numpy_array("abc"),
    "from_numpy_array: ragged": lambda: nn.Variable.from_numpy_array([[1], [2, 3]]),
    "from_numpy_array: complex": lambda: nn.Variable.from_numpy_array([1j]),
    "x.d: shape": lambda: setattr(x, "d", np.ones((5, 5))),
    "x.d: text": lambda: setattr(x, "d", "abc"),
    "x.d: Variable": lambda: setattr(nn.Variable((2,)), "d", nn.Variable((2,)) * 2),
    "x.data: array": lambda: setattr(x, "data", np.ones(x.shape)),
    "x.grad: shape": lambda: setattr(x, "grad", nn.NdArray((9,))),
    "x.values": lambda: x.values,
    "x.requires_grad": lambda: setattr(x, "requires_grad", True),
    "x.need_grad text": lambda: setattr(nn.Variable((2,)), "need_grad", "no"),
    "x + text": lambda: x + "1",
    "x + None": lambda: x + None,
    "x + ndarray shapes": lambda: x + np.ones(5),
    "ndarray @ x shapes": lambda: np.ones((4, 5)) @ x,
    "x + ndarray of text": lambda: x + np.array(["1"]),
    "ndarray of objects @ x": lambda: np.array([None]) @ x,
    "x + masked": lambda: x + np.ma.masked_equal(np.ones(3), 1),
    "x @ y shapes": lambda: x @ x,
    "x + y shapes": lambda: x + nn.Variable((3, 5)),
    "x[text]": lambda: x["a"],
    "x[float]": lambda: x[1.5],
    "x[too many]": lambda: x[0, 0, 0],
    "x[out of range]": lambda: x[99],
    "x[mask shape]": lambda: x[np.ones((5, 5), bool)],
    "if x > 0": lambda: bool(x > 0),
    "3 in x": lambda: 3 in x,
    "float(x)": lambda: float(nn.Variable((3,))),
    "x.item()": lambda: nn.Variable((3,)).item(),
    "f'{x:.2f}'": lambda: f"{nn.Variable((3,)):.2f}",
    "np.exp(x)": lambda: np.exp(x),
    "np.mean(x)": lambda: np.mean(x),
    "x.show: shape": lambda: nn.NdArray((4,)).show("x.png"),
    "x.show: number": lambda: nn.NdArray((4, 4)).show(3),
    "x.show: format": lambda: nn.NdArray((4, 4)).show("x.picture"),
    "x.show: not computed": lambda: (leaf() * 2).show("x.png"),
    "x.detach": lambda: x.detach(),
    "x.cpu": lambda: x.cpu(),
    "x.to": lambda: x.to("cuda"),
    "x.device": lambda: x.device,
    "x.permute": lambda: x.permute(1, 0),
    "x.view": lambda: x.view(-1),
    "x.zero_grad": lambda: x.zero_grad(),
    "len of a number": lambda: len(nn.Variable(())),
    "y.d before forward": lambda: (x * 2).d,
    "y.g before backward": lambda: (leaf() * 2).g,
    "backward before forward": lambda: F.exp(leaf()).backward(),
    "second backward": lambda: second_backward(),
    "backward: retain_graph": lambda: F.sum(leaf()).backward(retain_graph=True),
    "forward: misspelled": lambda: F.sum(leaf()).forward(clear_bufer=True),
    "forward: surplus": lambda: F.sum(leaf()).forward(False, False, None, None, True),
    "update: optimizer's closure": lambda: S.Sgd().update(closure=print),
    "zero_grad: set_to_none": lambda: S.Sgd().zero_grad(set_to_none=True),
    "x.mean: keepdim": lambda: x.mean(keepdim=True),
    "x.reshape: misspelled": lambda: x.reshape(3, 4, unlnk=True),
    "backward: grad shape": lambda: wrong_grad(),
    "reset_shape: size": lambda: nn.Variable((2, 3)).reset_shape((7,)),
    "reset_shape: text": lambda: nn.Variable((2, 3)).reset_shape("7"),
    "rewire_on: shape": lambda: x.rewire_on(nn.Variable((9,))),
    "apply: unknown": lambda: x.apply(need_gradd=True),
    "forward_all: variable": lambda: nn.forward_all(3),
    "nn.grad: not a variable": lambda: nn.grad([3], [x]),
    "NdArray: dtype": lambda: nn.NdArray((2,), dtype="float16"),
    "NdArray: negative": lambda: nn.NdArray((-2,)),
    "NdArray: text": lambda: nn.NdArray("ab"),
    "NdArray: attribute": lambda: nn.NdArray((2,)).need_grad,
    "NdArray += shape": lambda: nn.NdArray((2,)).__iadd__(nn.NdArray((3,))),
    # -- modules -----------------------------------------------------------------------------------------------------------
    "Module: no call": lambda: Empty()(x),
    "Module: unknown attribute": lambda: Net().layer,
    "Module: too many inputs": lambda: Net()(x, x, x),
    "Sequential: number": lambda: nn.Sequential(3),
    "ModuleList: function": lambda: nn.ModuleList([F.relu]),
    "Module: set of modules": lambda: setattr(Net(), "parts", {Net()}),
    "Module: load from nowhere": lambda: Net().load_parameters("/nowhere/net.h5"),
    "summary: no shape": lambda: nn.summary(Net()),
    # -- files -------------------------------------------------------------------------------------------------------------
    "save: folder": lambda: saved("/nowhere/at/all/net.h5"),
    "save: extension": lambda: saved("net.xyz"),
    "save: no extension": lambda: saved("net"),
    "load: no file": lambda: nn.load_parameters("/nowhere/net.h5"),
    "load: no relative file": lambda: nn.load_parameters("nowhere.h5"),
    "load: extension": lambda: nn.load_parameters("net.xyz"),
    "load: damaged": lambda: nn.load_parameters(damaged()),
    "load: number": lambda: nn.load_parameters(3),
    "solver states: no file": lambda: S.Sgd().load_states("/nowhere/states.h5"),
    # -- contexts ----------------------------------------------------------------------------------------------------------
    "Context: unknown backend": lambda: run_in(nn.Context(["gpu"])),
    "Context: text": lambda: nn.Context(3),
    "Context: type": lambda: nn.Context(["cpu:float99"]),
    "Context: unknown argument": lambda: nn.Context(["cpu"], device="0"),
    "context_scope: text": lambda: nn.context_scope("no_such").__enter__(),
    "set_default_context: text": lambda: nn.set_default_context("no_such"),
    "get_extension_context: gpu": lambda: get_extension_context("gpu"),
    "get_extension_context: type_config": lambda: get_extension_context("cpu", type_config="double-ish"),
    "get_extension_context: device of the CPU": lambda: get_extension_context("cpu", device_id="4000"),
    "get_extension_context: device 97 of the CPU": lambda: get_extension_context("cpu", device_id="97"),
    "get_extension_context: device -1": lambda: get_extension_context("cpu", device_id=-1),
    "Context: device": lambda: nn.Context(["cpu"], device_id="gpu0"),
    "Context: device of NumPy": lambda: nn.Context(["cpu"], device_id=np.ones(2)),
    "Context.replace: device": lambda: nn.Context().replace(device_id=1.5),
    "seed: text": lambda: nn.seed("abc"),
    "seed: flag of several values": lambda: nn.seed(1, set_function_seed=np.ones(2)),
    "PythonFunction: shapes of numbers": lambda: nn.PythonFunction().setup_impl([1], [x]),
    "set_num_threads: 0": lambda: nn.set_num_threads(0),
    "set_num_threads: text": lambda: nn.set_num_threads("two"),
    "set_auto_forward: text": lambda: nn.set_auto_forward("on"),
    "explain: unknown": lambda: nn.explain("convolutoin"),
    # -- initializers and data ---------------------------------------------------------------------------------------------
    "I unknown": lambda: I.XavierInitializer(),
    "UniformInitializer: order": lambda: I.UniformInitializer((1, -1))((2, 2)),
    "UniformInitializer: number": lambda: I.UniformInitializer(0.1)((2, 2)),
    "NormalInitializer: misspelled": lambda: I.NormalInitializer(sigm=0.1),
    "NormalInitializer: negative": lambda: I.NormalInitializer(-1.0)((2, 2)),
    "data_iterator_simple: batch 0": lambda: data_iterator_simple(lambda i: (i,), 10, 0),
    "data_iterator_simple: no examples": lambda: data_iterator_simple(lambda i: (i,), -1, 4),
    "data_iterator_concat_datasets: Variable": lambda: data_iterator_concat_datasets(nn.Variable((2**31, 3)), 4),
    "data_iterator_simple: half a batch": lambda: data_iterator_simple(lambda i: (i,), 10, 2.5),
    "data_iterator_simple: text": lambda: data_iterator_simple(lambda i: (i,), "ten", 2),
    "data_iterator_simple: no function": lambda: data_iterator_simple(np.ones(10), 10, 2),
    "data_iterator_simple: shuffle": lambda: data_iterator_simple(lambda i: (i,), 10, 2, shuffle="yes"),
    "data_iterator_simple: misspelled": lambda: data_iterator_simple(lambda i: (i,), 10, 2, shufle=True),
    "data_iterator: array": lambda: data_iterator(np.ones((10, 3)), 4),
    "data_iterator_csv_dataset: no file": lambda: data_iterator_csv_dataset("nowhere.csv", 4),
    "CosineScheduler: lr": lambda: CosineScheduler(lr=0.1, max_iter=100),
    "CosineScheduler: no iterations": lambda: CosineScheduler(0.1, 0),
    "CosineScheduler: negative": lambda: CosineScheduler(-0.1, 100),
    "StepScheduler: number": lambda: StepScheduler(0.1, 0.5, 30),
    "LinearWarmupScheduler: rate": lambda: LinearWarmupScheduler(0.1, 100),
    # -- training ----------------------------------------------------------------------------------------------------------
    "Updater: solver": lambda: Updater(data_iterator_simple(lambda i: (i,), 4, 2), [x], F.sum(x), "adam"),
    "Updater: loss of a batch": lambda: Updater(data_iterator_simple(lambda i: (i,), 4, 2), [x], x, S.Sgd()),
    "Updater: arrays": lambda: Updater(np.ones((3, 4)), [x], F.sum(x), S.Sgd()),
    "Trainer: epochs": lambda: Trainer(Updater(data_iterator_simple(lambda i: (i,), 4, 2), [x], F.sum(x), S.Sgd()), 10),
    "every: unit": lambda: every(1, "epochs"),
    "Schedule: number": lambda: Schedule(0.1),
    "Checkpoint: extension": lambda: Checkpoint(extension=".pkl"),
    "fit: lengths": lambda: fit(lambda x: x, (np.ones((4, 2)), np.ones(3))),
    "training unknown": lambda: training.EarlyStopping,
    "Monitor: path": lambda: MonitorSeries("loss", "log"),
    "MonitorSeries: text": lambda: MonitorSeries("loss").add(0, "high"),
    "Monitor: interval 0": lambda: MonitorSeries("loss", Monitor(tempfile.mkdtemp()), interval=0),
}


#: Messages of Python itself, in the class that its protocols want; the text names the function and what is wrong.
OF_PYTHON = {
    "x + text": "'Variable' and 'str'",
    "x + None": "'Variable' and 'NoneType'",
    "x[text]": "integers, slices",
    "x[float]": "an index must be a whole number, got 1.5",
    "x[too many]": "at most 2 entries",
    "x[out of range]": "index 99 is out of bounds for axis 0 with size 3",
    "x[mask shape]": "size of axis is 3",
    "Module: no call": r"Empty: call\(\) must be defined",
    "Module: unknown attribute": "'Net' .* 'layer'",
}
#: Hints that must be there.
HINTS = {
    "F unknown: mse_loss": "did you mean 'squared_error'",
    "PF unknown: dense": "did you mean 'affine'",
    "S unknown: SGD": "did you mean 'Sgd'",
    "nn unknown: Linear": "did you mean 'nn_core.layers.Linear'",
    "F argument: unknown": "^relu: .*'inplce'; did you mean 'inplace'",
    "F argument: too many": "^relu: must get at most 4 positional arguments, got 5",
    "F input: missing": "^relu: input x must be a Variable",
    "one_hot: no shape": "^one_hot: shape must be given, got none",
    "mean: keepdim": "^mean: .*'keepdim'; did you mean 'keepdims'",
    "PF.affine: bias": "^affine: .*'bias'; did you mean 'with_bias'",
    "PF.convolution: padding": "^convolution: .*'padding'; did you mean 'pad'",
    "PF.batch_normalization: training": "did you mean 'batch_stat'",
    "S.Adam: lr": "^Adam: .*'lr'; did you mean 'alpha'",
    "S.Sgd: alpha": "^Sgd: .*'alpha'; did you mean 'lr'",
    "S.Sgd: learning_rate": "did you mean 'lr'",
    "x.mean: keepdim": "^mean: .*'keepdim'; did you mean 'keepdims'",
    "backward: retain_graph": "^backward: got an unexpected keyword argument 'retain_graph'",
    "forward: misspelled": "^forward: .*'clear_bufer'; did you mean 'clear_buffer'",
    "forward: surplus": "^forward: must get at most 4 positional arguments, got 5",
    "update: optimizer's closure": "^update: got an unexpected keyword argument 'closure'",
    "zero_grad: set_to_none": "^zero_grad: got an unexpected keyword argument 'set_to_none'",
    "x.reshape: misspelled": "^reshape: .*'unlnk'; did you mean 'unlink'",
    "NormalInitializer: misspelled": "^NormalInitializer: .*'sigm'; did you mean 'sigma'",
    "Variable: dtype": "^Variable: got an unexpected keyword argument 'dtype'",
    "NdArray: dtype": "^NdArray: got an unexpected keyword argument 'dtype'",
    "Context: unknown argument": "^Context: .*'device'; did you mean 'device_id'",
    "Variable: array": "hint: from_numpy_array",
    "F input: ndarray": "hint: wrap it",
    "concatenate: list": r"hint: .*concatenate\(\*inputs\)",
    "set_parameters: list": r"hint: nn_core.get_parameters\(\)",
    "Context: unknown backend": "did you mean 'cuda'.*\n  hint: nn-core doctor",
    "get_extension_context: gpu": "did you mean 'cuda'",
    "get_extension_context: device of the CPU": r"device_id must be 0 .*on the CPU.* got '4000'\n  hint: get_ext",
    "scope: name of a parameter": "must not have the name of a parameter, got 'mistake/outer/inner'",
    "scope: name of a parameter in an own dictionary": "parameter 'mine/encoder/layer1/affine/W' must keep its shape",
    "get_parameter_or_create: name of a scope": "must not be that of a scope, got 'mistake/d'",
    "x.detach": "hint: x.get_unlinked_variable",
    "x.to": "hint: .*context",
    "x.permute": "did you mean 'transpose'",
    "x.view": "did you mean 'reshape'",
    "PF.affine: negative": "^affine: n_outmaps must be a positive integer, got -4",
    "PF.affine: float": "^affine: n_outmaps must be an integer, got 4.5",
    "S.Sgd: negative": "^Sgd: lr must be at least 0, got -0.1",
    "second backward": "hint: run forward",
    "if x > 0": "hint: use y.d.all",
    "save: folder": r"^/nowhere/at/all/net.h5: the folder must exist, .*\n  hint: Path\('/nowhere/at/all'\).mkdir\(",
    "load: no relative file": "hint: the path is relative to",
    "CosineScheduler: lr": "^CosineScheduler: .*'lr'; did you mean 'init_lr'",
    "data_iterator_simple: misspelled": "^data_iterator_simple: .*'shufle'; did you mean 'shuffle'",
    "Updater: loss of a batch": r"hint: F.mean\(loss\)",
    "Monitor: path": r"hint: Monitor\('log'\)",
    "get_extension_context: device 97 of the CPU": "device_id must be 0 .*on the CPU.* got '97'",
    "np.mean(x)": "hint: use nn_core.functions.mean",
}


def test_there_are_enough():
    assert len(MISTAKES) >= 200
    assert len(OF_PYTHON) <= 15
    assert {*OF_PYTHON, *HINTS} <= MISTAKES.keys()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake):
    with nn.parameter_scope("mistake", {}), pytest.raises(Exception) as caught:  # which one is told below
        MISTAKES[mistake]()
    error, text = caught.value, str(caught.value)
    if mistake in OF_PYTHON:
        assert isinstance(error, (TypeError, IndexError, AttributeError, NotImplementedError))
        assert re.search(OF_PYTHON[mistake], text), text
        return
    assert isinstance(error, NNCoreError), repr(error)
    if mistake in HINTS:
        assert re.search(HINTS[mistake], text), text
    says_what_must_hold = "must" in text and "got" in text
    assert says_what_must_hold or re.search("did you mean|has no attribute|unexpected keyword|missing|needs", text), text
    assert not re.search(r" object at 0x|Traceback", text)
