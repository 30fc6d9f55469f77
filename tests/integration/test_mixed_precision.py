"""Training in half precision: statistics, parameters and losses stay float32 on the backends of the host."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.engine.dispatch.registry import spec_of
from nn_core.engine.graph.call import resolved_call
from nn_core.training import LossScale, Updater

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays need ml_dtypes")

DTYPES = {"half": np.float16, "bfloat16": ml_dtypes.bfloat16}
#: The distance between 1 and the next number, by type.
EPS = {"half": 2.0**-10, "bfloat16": 2.0**-7}


@pytest.fixture(params=[(name, kind) for name in ("reference", "cpu") for kind in EPS], ids=":".join)
def context(request):
    name, kind = request.param
    if name == "cpu":
        pytest.importorskip("nn_ext_cpu")
    nn.clear_parameters()
    nn.seed(0)
    yield nn.Context([f"{name}:{kind}"])
    nn.clear_parameters()


def images(seed, mean=0.0):
    return np.random.default_rng(seed).normal(mean, 1.0, (16, 3, 4, 4)).astype(np.float32)


def normalized(kind, x):
    if kind == "fused":
        return PF.fused_batch_normalization(x)
    return PF.sync_batch_normalization(x, None) if kind == "sync" else PF.batch_normalization(x)


@pytest.mark.parametrize("kind", ["plain", "fused", "sync"])
def test_statistics_are_float32(context, kind):
    x = nn.Variable((16, 3, 4, 4))
    with nn.context_scope(context):
        y = normalized(kind, x)
    for seed in range(60):
        x.d = images(seed, mean=100.0)
        y.forward()
    assert y.data.dtype != np.float32
    statistics = {name: v for name, v in nn.get_parameters(grad_only=False).items() if not v.need_grad}
    assert len(statistics) == 2
    assert all(v.data.dtype == np.float32 for v in statistics.values())
    # 16-bit statistics stop at 99.0 or below: a tenth of what is left to 100 is less than their resolution
    mean = next(v.d for name, v in statistics.items() if name.endswith("mean"))
    np.testing.assert_allclose(mean, 100.0, atol=0.3)


@pytest.mark.parametrize("name", ["BatchNormalization", "FusedBatchNormalization", "SyncBatchNormalization"])
def test_statistics_of_the_batch_are_float32(context, name):
    spec = spec_of(name)
    shapes = [(16, 3, 4, 4), *[(1, 3, 1, 1)] * 4, None][: len(spec.inputs)]
    call = resolved_call(spec, {}, shapes).kernel(context).call
    assert [output.dtype for output in call.outputs[1:3]] == ["float32", "float32"]
    assert [entry.dtype for entry in call.inputs[1:5]] == ["float32"] * 4
    assert {call.inputs[0].dtype, call.outputs[0].dtype} == {call.dtype} != {"float32"}


@pytest.mark.parametrize("kind", ["plain", "fused", "sync"])
@pytest.mark.parametrize("mean", [0.0, 300.0])
def test_gradients_are_those_of_float32(context, kind, mean):
    kind_of_number = context.backend[0].partition(":")[2]
    rng = np.random.default_rng(1)

    def rounded(values):
        """In the narrow type, so that the only differences are those of the computation."""
        return values.astype(DTYPES[kind_of_number]).astype(np.float32)

    scale = rounded(rng.uniform(0.5, 1.5, (1, 3, 1, 1)))
    weight = rounded(rng.normal(size=(16, 3, 4, 4)))
    values = rounded(images(7, mean))

    def gradients(where):
        nn.clear_parameters()
        x = nn.Variable.from_numpy_array(values, need_grad=True)
        with nn.context_scope(where):
            loss = F.sum(normalized(kind, x) * nn.Variable.from_numpy_array(weight))
        parameters = nn.get_parameters()
        next(v for name, v in parameters.items() if name.endswith("gamma")).d = scale
        leaves = {"x": x, **parameters}
        for leaf in leaves.values():
            leaf.grad.zero()
        loss.forward()
        loss.backward()
        assert all(leaf.grad.dtype == np.float32 for leaf in leaves.values())
        return {name: leaf.g.copy() for name, leaf in leaves.items()}

    exact = gradients(nn.Context(["reference:float"]))
    for name, gradient in gradients(context).items():
        error = np.linalg.norm(gradient - exact[name]) / np.linalg.norm(exact[name])
        assert error < EPS[kind_of_number], (name, error)


def test_a_network_trains_like_one_in_float32(context):
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(64, 3, 6, 6)).astype(np.float32)
    labels = (samples.mean(axis=(1, 2, 3)) > 0).astype(int)[:, None]
    kind = context.backend[0].partition(":")[2]

    class Batches:
        def next(self):
            return samples, labels

    def losses(where, loss_scale):
        nn.clear_parameters()
        nn.seed(3)
        x, t = nn.Variable((64, 3, 6, 6)), nn.Variable((64, 1))
        with nn.context_scope(where):
            h = F.relu(PF.batch_normalization(PF.convolution(x, 8, (3, 3), name="conv"), name="norm"))
            loss = F.mean(F.softmax_cross_entropy(PF.affine(h, 2, name="scores"), t))
        solver = S.Momentum(0.02)
        solver.set_parameters(nn.get_parameters())
        updater = Updater(Batches(), [x, t], loss, solver, loss_scale=loss_scale)
        seen = []
        for _ in range(12):
            updater.update()
            seen.append(float(loss.d))
        assert loss.data.dtype == np.float32
        assert all(v.data.dtype == np.float32 for v in nn.get_parameters(grad_only=False).values())
        return np.array(seen)

    wide = losses(nn.Context(["reference:float"]), None)
    narrow = losses(context, LossScale() if kind == "half" else None)
    assert wide[-1] < 0.5 * wide[0]
    np.testing.assert_allclose(narrow, wide, rtol=0.1, atol=0.01)
