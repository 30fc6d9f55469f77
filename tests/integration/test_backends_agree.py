"""Small nets give the same results and gradients on every CPU backend, whatever the memory layout of their images."""

from functools import partial

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.ext_utils import get_extension_context


def conv(h, maps, name, **settings):
    return PF.convolution(h, maps, (3, 3), pad=(1, 1), name=name, **settings)


def classifier(x):
    h = F.relu(PF.batch_normalization(conv(x, 8, "c1"), name="b1"))
    h = F.max_pooling(F.tanh(conv(h, 8, "c2")), (2, 2))
    return F.mean(PF.affine(h, 3, name="fc") ** 2)


def residual(x):
    h = F.relu(conv(x, 8, "c1"))
    return F.mean(F.relu(conv(h, 8, "c2") + h) * F.sigmoid(conv(h, 8, "c3")))


def image_result(x):
    return F.tanh(conv(F.relu(conv(x, 4, "c1")), 2, "c2"))


def grouped_and_strided(x):
    h = F.leaky_relu(conv(x, 8, "c1"))
    h = conv(h, 8, "c2", group=2, stride=(2, 2))
    h = F.average_pooling(F.elu(h), (2, 2))
    return F.sum(F.softmax(F.reshape(h, (h.shape[0], -1))) ** 2)


def up_again(x):
    h = F.relu(conv(x, 6, "c1", stride=(2, 2)))
    return F.mean(F.absolute_error(PF.deconvolution(h, 3, (2, 2), stride=(2, 2), name="d"), x))


def slices_and_joins(x):
    h = F.relu(conv(x, 8, "c1"))
    parts = [h[:, :4], h[:, 4:] * 2]
    h = F.concatenate(*parts, axis=1)
    h = F.transpose(h, (0, 2, 3, 1))
    return F.mean(F.exp(F.sin(h)))


def broadcast_bias(x):
    h = conv(x, 8, "c1")
    b = nn.parameter.get_parameter_or_create("bias", (1, 8, 1, 1))
    return F.mean(F.relu(h + b) ** 2)


def one_dimension(x):
    h = F.reshape(x, (x.shape[0], x.shape[1] * x.shape[2], x.shape[3]))
    h = F.relu(PF.convolution(h, 6, (3,), pad=(1,), name="c1"))
    return F.mean(F.global_average_pooling(F.reshape(h, (*h.shape, 1))) ** 2)


def recomputed(x):
    with nn.recompute():
        h = F.relu(PF.batch_normalization(conv(x, 8, "c1"), name="b1"))
        h = F.tanh(conv(h, 8, "c2"))
    return F.mean(h**2)


NETS = [
    classifier,
    residual,
    image_result,
    grouped_and_strided,
    up_again,
    slices_and_joins,
    broadcast_bias,
    one_dimension,
    recomputed,
]


def train(net, context, flags, clear, dynamic, steps=3):
    """Results of each step, and the parameters and gradients after the last one."""
    nn.clear_parameters()
    nn.seed(7)
    rng = np.random.default_rng(3)
    with nn.context_scope(context), nn.auto_forward(dynamic):
        x = nn.Variable((4, 3, 8, 8), need_grad=True)
        x.d = rng.standard_normal(x.shape)
        results = []
        loss = None if dynamic else net(x)
        for _ in range(steps):
            values = rng.standard_normal(x.shape)
            x.d = values
            if dynamic:
                loss = net(x)
            else:
                loss.forward(**flags)
            results.append(np.array(loss.d, np.float64))
            x.grad.zero()
            for parameter in nn.get_parameters().values():
                parameter.grad.zero()
            loss.backward(clear_buffer=clear)
            for parameter in nn.get_parameters().values():
                parameter.d = parameter.d - 0.05 * parameter.g
    everything = nn.get_parameters(grad_only=False)
    return results, x.g.copy(), {name: p.d.copy() for name, p in everything.items()}


@pytest.mark.parametrize("net", NETS, ids=lambda net: net.__name__)
@pytest.mark.parametrize(
    ("flags", "clear", "dynamic"),
    [({}, False, False), ({"clear_no_need_grad": True}, True, False), ({}, False, True), ({}, True, True)],
    ids=["keep", "clear", "dynamic", "dynamic-clear"],
)
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_training_agrees_with_double_precision(net, flags, clear, dynamic, backend):
    truth = train(net, get_extension_context("reference", type_config="double"), {}, False, False)
    results, gradient, parameters = train(net, get_extension_context(backend), flags, clear, dynamic)
    for ours, expected in zip(results, truth[0], strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradient, truth[1], rtol=2e-3, atol=2e-5)
    assert parameters.keys() == truth[2].keys()
    for name, values in parameters.items():
        np.testing.assert_allclose(values, truth[2][name], rtol=2e-3, atol=2e-5, err_msg=name)


def ones(x, *axes):
    return nn.Variable.from_numpy_array(np.ones([x.shape[axis] if axis in axes else 1 for axis in range(4)]), need_grad=True)


def batch_normalized(x, function=F.batch_normalization):
    return function(x, ones(x, 1), ones(x, 1), nn.Variable((1, 3, 1, 1)), nn.Variable((1, 3, 1, 1)))


#: Functions whose forward pass keeps hidden results for the gradient, or whose gradient reads inputs and results.
KEEPING = {
    "batch": batch_normalized,
    "batch with ReLU": lambda x: batch_normalized(x, F.fused_batch_normalization),
    "batch of all": lambda x: batch_normalized(x, partial(F.sync_batch_normalization, comm=None)),
    "layer": lambda x: F.layer_normalization(x, ones(x, 1, 2, 3), ones(x, 1, 2, 3)),
    "instance": lambda x: F.instance_normalization(x, ones(x, 1), ones(x, 1)),
    "group": lambda x: F.group_normalization(x, ones(x, 1), ones(x, 1), num_groups=3),
    "tensor": lambda x: F.tensor_normalization(x, (0,)),
    "weight": F.weight_standardization,
    "products": lambda x: F.cumprod(x, 1),
    "largest": lambda x: F.max(x, 1),
    "norm": lambda x: F.norm(x, axis=1),
    "quotient": lambda x: 1 / (x * x + 1),
    "power": lambda x: (x * x + 1) ** (x * 0.5),
    "dropout": lambda x: F.dropout(x, 0.3, seed=3),
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", KEEPING)
def test_backward_reads_inputs_as_they_are_and_the_rest_as_it_was(name, dynamic):
    first, second = np.random.default_rng(5).standard_normal((2, 4, 3, 5, 5)).astype(np.float32)
    found = {}
    for backend in ("reference", "cpu"):
        gradients = []
        with nn.context_scope(get_extension_context(backend)):
            for now in (second, first):
                x = nn.Variable.from_numpy_array(first, need_grad=True)
                with nn.auto_forward(dynamic):
                    y = KEEPING[name](x)
                if not dynamic:
                    y.forward(clear_no_need_grad=True)
                x.d = now
                x.grad.zero()
                y.backward(np.random.default_rng(6).standard_normal(y.shape))
                gradients.append(x.g.copy())
        found[backend] = gradients
    for ours, expected in zip(found["cpu"], found["reference"], strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)
    replaced, kept = found["cpu"]
    assert name == "dropout" or not np.allclose(replaced, kept, atol=1e-3)
