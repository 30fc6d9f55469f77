"""Recurrent networks: where weights go and come from, what is refused, which calls one step makes."""

import dataclasses

import numpy as np
import pytest

from nn_core.engine.arrays.casting import dtype_of
from nn_core.ext import ArrayDesc

GATES = {"RNN": (), "LSTM": (4,), "GRU": (3,)}
STEPS, BATCH, FEATURES, HIDDEN = 3, 2, 5, 4


@pytest.fixture
def network(call_of):
    """Makes the call of a network."""

    def make(name, layers=2, directions=2, *, bias=True, **args):
        gates = GATES[name]
        states = [(layers, directions, BATCH, HIDDEN)] * (2 if name == "LSTM" else 1)
        weights = [(directions, *gates, HIDDEN, FEATURES + HIDDEN), None, None]
        if layers > 1:
            weights[1] = (layers - 1, directions, *gates, HIDDEN, (directions + 1) * HIDDEN)
        if bias:
            weights[2] = (layers, directions, *((4,) if gates else ()), HIDDEN)
        settings = {"num_layers": layers, "bidirectional": directions == 2, **args}
        return call_of(name, (STEPS, BATCH, FEATURES), *states, *weights, **settings)

    return make


@pytest.fixture
def kernel(cudnn):
    """The kernel of all networks."""
    from nn_ext_cudnn.kernels import KERNELS

    return KERNELS["LSTM"]


def _layout(call):
    from nn_ext_cudnn.legacy.networks import network_of, pieces_of

    return pieces_of(call), network_of(call)


@pytest.mark.parametrize(
    ("dtype", "own"), [(dtype, dtype) for dtype in ("float32", "float64", "float16")] + [("bfloat16", "float32")]
)
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_weights_go_there_and_back(kernel, network, name, layers, dtype, own):
    """Rounded on their way where they are kept wider than cuDNN takes them."""
    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cudnn.legacy.weights import WeightCopy

    call = network(name, layers, dtype=dtype)
    found, made = _layout(call)
    rng = np.random.default_rng(0)
    owned = [desc for desc in call.inputs[-3:] if desc is not None]
    item = dtype_of(dtype)
    given = [cupy.asarray(rng.normal(size=desc.shape).astype(item).astype(own)) for desc in owned]
    back = [cupy.asarray(np.full(desc.shape, np.nan, own)) for desc in owned]
    if layers == 1:
        given.insert(1, None)
        back.insert(1, None)
    space = cupy.asarray(np.full(made.weight_bytes // item.itemsize, np.nan, item))
    WeightCopy(found, (own, dtype), range(4)).bind(*given, space)()
    assert np.isfinite(space.get().astype(np.float64)).sum() == sum(piece.rows * piece.columns for piece in found)
    WeightCopy(found, (own, dtype), range(4), unpack=True).bind(*back, space)()
    for before, after in zip(given, back, strict=True):
        if before is not None:
            np.testing.assert_array_equal(after.get(), before.get())


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_pieces_have_each_element_once(kernel, network, name):
    call = network(name, 3)
    found, _ = _layout(call)
    for owner, desc in enumerate(call.inputs[-3:]):
        counts = np.zeros(desc.size, int)
        for piece in found:
            if piece.owner == owner:
                rows = piece.start + piece.pitch * np.arange(piece.rows)[:, None]
                counts[rows + np.arange(piece.columns)] += 1
        assert (counts == 1).all(), f"array {owner}"


def test_a_matrix_is_that_of_the_input_then_that_of_the_state(kernel, network, cudnn):
    call = network("GRU", 1, 1)
    found, _ = _layout(call)
    starts = {(piece.columns, piece.start) for piece in found if piece.owner == 0}
    pitch = FEATURES + HIDDEN
    assert starts == {(FEATURES, gate * HIDDEN * pitch) for gate in range(3)} | {
        (HIDDEN, gate * HIDDEN * pitch + FEATURES) for gate in range(3)
    }
    zeros = [piece for piece in found if piece.owner == -1]
    assert [(piece.rows, piece.columns) for piece in zeros] == [(1, HIDDEN)] * 2, "biases of the state, except for the last"


def test_networks_without_biases_have_none(kernel, network):
    found, _ = _layout(network("GRU", bias=False))
    assert {piece.owner for piece in found} == {0, 1}


def test_dropout_between_layers_is_refused(kernel, network):
    refusal = kernel.refuse(network("LSTM", dropout=0.5))
    assert "no dropout between layers" in refusal.reason
    assert kernel.refuse(network("LSTM", dropout=0.5, training=False)) is None
    assert kernel.refuse(network("LSTM", 1, dropout=0.5)) is None


def test_what_cudnn_does_not_support_is_refused(kernel, network, cudnn):
    cudnn.parts[3].unsupported = 9
    refusal = kernel.refuse(network("LSTM", dtype="bfloat16"))
    assert "cudnnSetRNNDescriptor_v8: status must be success, got 3000 (NOT_SUPPORTED)" in refusal.reason


def test_what_cudnn_does_not_support_when_it_runs_is_refused_from_then_on(kernel, network, cudnn, monkeypatch):
    from fake_cudnn import RefusedError

    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cudnn.errors import NotSupportedError
    from nn_ext_cudnn.legacy import recurrent

    def failing(*_):
        raise RefusedError(3000, "not on this device")

    told = []
    cudnn.parts[3].cudnnRNNForward = failing
    monkeypatch.setattr(recurrent, "_UNSUPPORTED", set())
    monkeypatch.setattr(recurrent, "forget_prepared", lambda: told.append("again"))
    call, other = network("GRU", training=False), network("GRU", 1, training=False)
    (trace,) = kernel.private_shapes(call)
    call = dataclasses.replace(call, outputs=(*call.outputs[:-2], ArrayDesc(trace, "float32"), call.outputs[-1]))
    assert kernel.refuse(call) is None
    descs = [*call.inputs, *call.outputs]
    arrays = [None if desc is None else cupy.asarray(np.ones(desc.shape, desc.dtype)) for desc in descs]
    with pytest.raises(NotSupportedError, match="gru: cudnnRNNForward: status must be success, got 3000") as caught:
        kernel.forward(call).bind(*arrays, np.zeros(2, np.uint64))()
    assert "hint: such calls run on another backend from now on; run forward() again" in str(caught.value)
    assert "turned out not to support" in kernel.refuse(call).reason
    assert kernel.refuse(other) is None
    assert told == ["again"]


def test_an_installation_without_networks_is_refused(kernel, network, cudnn):
    from nn_ext_cudnn.legacy import api

    cudnn.parts[3].missing = True
    api._refusal.cache_clear()
    assert "needs libcudnn_adv" in kernel.refuse(network("GRU")).reason
    api._refusal.cache_clear()


@pytest.mark.parametrize(("tf32", "math"), [(False, 3), (True, 0)])
def test_tf32_is_used_where_it_is_allowed(kernel, network, cudnn, tf32, math):
    from nn_ext_cuda.gemm import precision

    before = precision.is_tf32_allowed()
    precision.allow_tf32(tf32)
    try:
        _, made = _layout(network("LSTM"))
        assert cudnn.parts[3].registry.objects[made.network._as_parameter_.value].settings[7] == math
    finally:
        precision.allow_tf32(before)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_steps_are_few_calls_and_can_be_recorded(kernel, network, cudnn, name, training):
    from nn_ext_cuda.codegen.describe import backward_arrays
    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cuda.launch.capture import Section

    call = network(name, training=training)
    (trace,) = kernel.private_shapes(call)
    outputs = [*call.outputs[:-2], ArrayDesc(trace, "float32"), call.outputs[-1]]
    call = dataclasses.replace(call, outputs=tuple(outputs))
    rng = np.random.default_rng(0)

    def drawn(desc):
        return None if desc is None else cupy.asarray(rng.normal(size=desc.shape).astype(desc.dtype))

    def stepped(wanted):
        given = [drawn(desc) for desc in backward_arrays(call, wanted)]
        n_read = len(call.inputs) + len(call.outputs)
        given[:n_read] = [a if b is not None else None for a, b in zip(arrays, given[:n_read], strict=True)]
        return kernel.backward(call, wanted).bind(*given)

    arrays = [drawn(desc) for desc in (*call.inputs, *call.outputs)]
    step = kernel.forward(call).bind(*arrays, np.zeros(2, np.uint64))
    back = stepped([desc is not None for desc in call.inputs])
    recorded = Section([step, back])
    cudnn.calls.clear()
    recorded()
    passes = ["cudnnRNNForward"] * (1 if training else 2) + ["cudnnRNNBackwardData_v8", "cudnnRNNBackwardWeights_v8"]
    assert cudnn.calls == passes
    gradients = [array for array in back.step._arrays[-len(call.inputs) - 1 : -1] if array is not None]
    results = [array.get() for array in gradients]
    recorded()
    back()
    assert recorded.graph_sizes() == [4]  # two that pack weights, of which nobody says whether they change
    for before, after in zip(results, (array.get() for array in gradients), strict=True):
        np.testing.assert_array_equal(after, before)
    alone = stepped([k == 1 for k in range(len(call.inputs))])
    cudnn.calls.clear()
    alone()
    assert cudnn.calls == [*passes[1:-1]]
