"""Arrays that plans show in the memory of others in place of copies, on an emulated device: attention reads what is shown."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.settings import without

BATCH, TOKENS, HEADS, WIDTH = 2, 5, 3, 4
FEATURES = HEADS * WIDTH


# what is said of half is said of bfloat16 by the same code: kernels cast both in the same places
@pytest.fixture(params=["float", "half", pytest.param("bfloat16", marks=pytest.mark.slow)])
def context(request, cuda):
    """The CUDA backend in one of its dtypes."""
    own = nn.Context([f"cuda:{request.param}"], nn.get_current_context().array_class)
    with nn.context_scope(own):
        yield own


@pytest.fixture
def copies(cuda, monkeypatch):
    """The numbers of copies in each pass that was bound."""
    from nn_ext_cuda import backend

    found = []
    joined = backend.joined

    def noting(steps):
        result = joined(steps)
        found.append(sum(getattr(step, "name", "").startswith("copy") for step in result))
        return result

    monkeypatch.setattr(backend, "joined", noting)
    return found


def tokens(seed=0, need_grad=True):
    values = np.random.default_rng(seed).normal(size=(BATCH, TOKENS, FEATURES)).astype("float32")
    return nn.Variable.from_numpy_array(values, need_grad=need_grad)


def projected(x, number=3, name="qkv"):
    """(B, T, number, heads, width) of the tokens."""
    return F.reshape(PF.affine(x, number * FEATURES, base_axis=2, name=name), (BATCH, TOKENS, number, HEADS, WIDTH))


def back(y, name="output"):
    """(B, heads, T, width) to tokens again, and a layer."""
    return PF.affine(F.reshape(F.transpose(y, (0, 2, 1, 3)), (BATCH, TOKENS, FEATURES)), FEATURES, base_axis=2, name=name)


def packed(x):
    q, k, v = F.split(F.transpose(projected(x), (2, 0, 3, 1, 4)), axis=0)
    return back(F.scaled_dot_product_attention(q, k, v, is_causal=True))


def split_first(x):
    q, k, v = (F.transpose(part, (0, 2, 1, 3)) for part in F.split(projected(x), axis=2))
    return back(F.scaled_dot_product_attention(q, k, v))


def apart(x):
    q, k, v = (F.transpose(F.reshape(projected(x, 1, name), (BATCH, TOKENS, HEADS, WIDTH)), (0, 2, 1, 3)) for name in "abc")
    return back(F.scaled_dot_product_attention(q, k, v, is_causal=True))


def dropping(x):
    q, k, v = F.split(F.transpose(projected(x), (2, 0, 3, 1, 4)), axis=0)
    y, *_ = F.dropout_attention(q, k, v, p=0.3, seed=7)
    return back(y)


def heads_first(x):
    """The axes of three of the arrays are in C order after all; that of y is not."""
    q, k, v = F.split(F.reshape(PF.affine(x, 3 * FEATURES, base_axis=2), (3, BATCH, HEADS, TOKENS, WIDTH)), axis=0)
    return back(F.scaled_dot_product_attention(q, k, v))


SHOWN = [packed, split_first, apart, dropping, heads_first]


def split_and_read(x):
    q, k, v = F.split(F.transpose(projected(x), (2, 0, 3, 1, 4)), axis=0)
    return back(F.scaled_dot_product_attention(q, F.tanh(k), v)) + F.mean(q) + F.mean(F.exp(k))


def read_whole(x):
    whole = F.transpose(projected(x), (2, 0, 3, 1, 4))
    q, k, v = F.split(whole, axis=0)
    return back(F.scaled_dot_product_attention(q, k, v)) * F.mean(F.tanh(whole))


def read_source(x):
    source = projected(x)
    q, k, v = F.split(F.transpose(source, (2, 0, 3, 1, 4)), axis=0)
    return back(F.scaled_dot_product_attention(q, k, v)) * F.mean(F.sin(source) ** 2)


def source_is_a_leaf(x):
    q, k, v = F.split(F.transpose(F.reshape(x, (BATCH, TOKENS, 3, 1, WIDTH)), (2, 0, 3, 1, 4)), axis=0)
    return F.scaled_dot_product_attention(q, k, v)


def one_is_unused(x):
    q, k, _ = F.split(F.transpose(projected(x), (2, 0, 3, 1, 4)), axis=0)
    return back(F.scaled_dot_product_attention(q, k, k))


def used_twice(x):
    q, k, v = F.split(F.transpose(projected(x), (2, 0, 3, 1, 4)), axis=0)
    y = F.scaled_dot_product_attention(q, k, v)
    return back(F.scaled_dot_product_attention(y, k, q)) + back(y, "other")


def kept(x):
    q, k, v = F.split(F.transpose(projected(x), (2, 0, 3, 1, 4)), axis=0)
    q.persistent = True
    y = F.scaled_dot_product_attention(q, k, v)
    y.persistent = True
    return back(y)


def kept_source(x):
    source = PF.affine(x, 3 * FEATURES, base_axis=2)
    source.persistent = True
    q, k, v = F.split(F.transpose(F.reshape(source, (BATCH, TOKENS, 3, HEADS, WIDTH)), (2, 0, 3, 1, 4)), axis=0)
    return back(F.scaled_dot_product_attention(q, k, v))


def in_place(x):
    q, k, v = F.split(F.transpose(projected(x), (2, 0, 3, 1, 4)), axis=0)
    return back(F.relu(F.scaled_dot_product_attention(F.tanh(q), k, F.relu(v, inplace=True)), inplace=True))


def again(x):
    with nn.recompute():
        y = packed(x)
    return F.tanh(y)


def again_in_part(x):
    with nn.recompute():
        source = F.transpose(projected(x), (2, 0, 3, 1, 4))
    q, k, v = F.split(source, axis=0)
    return back(F.scaled_dot_product_attention(q, k, v))


def with_a_mask(x):
    q, k, v = F.split(F.transpose(projected(x), (2, 0, 3, 1, 4)), axis=0)
    mask = F.reshape(F.mean(q, axis=(0, 3)), (HEADS, TOKENS, 1))
    return back(F.scaled_dot_product_attention(q, k, v, mask))


def features_turned(x):
    """The last axis is not dense."""
    source = F.reshape(PF.affine(x, 3 * FEATURES, base_axis=2), (BATCH, 3, HEADS, WIDTH, TOKENS))
    q, k, v = F.split(F.transpose(source, (1, 0, 2, 4, 3)), axis=0)
    return back(F.scaled_dot_product_attention(q, k, v))


def split_along_features(x):
    q, k, v = F.split(F.reshape(PF.affine(x, 3 * FEATURES, base_axis=2), (BATCH, HEADS, TOKENS, WIDTH, 3)), axis=4)
    return back(F.scaled_dot_product_attention(q, k, v))


def transposed_twice(x):
    q, k, v = F.split(F.transpose(projected(x), (2, 0, 3, 1, 4)), axis=0)
    y = F.transpose(F.scaled_dot_product_attention(q, k, v), (1, 0, 2, 3))
    return back(F.transpose(y, (1, 0, 2, 3)))


def no_gradient_of_one(x):
    q, k, v = F.split(F.transpose(projected(x), (2, 0, 3, 1, 4)), axis=0)
    return back(F.scaled_dot_product_attention(q, k, F.unlink(v)))


OTHERS = [
    split_and_read,
    read_whole,
    read_source,
    source_is_a_leaf,
    one_is_unused,
    used_twice,
    kept,
    kept_source,
    in_place,
    again,
    again_in_part,
    with_a_mask,
    features_turned,
    split_along_features,
    transposed_twice,
    no_gradient_of_one,
]


def passes(build, change=None, **options):
    import emulated

    return emulated.passes(build, tokens(), change, **options)


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def apart_from_others(*arguments, **options):
    with without("share_memory"):
        return passes(*arguments, **options)


@pytest.mark.parametrize("build", SHOWN)
def test_nothing_is_copied_for_attention(copies, build):
    passes(build)
    assert copies == [0, 0]


@pytest.mark.parametrize("options", [{}, {"clear_no_need_grad": False}])
@pytest.mark.parametrize("build", [*SHOWN, *OTHERS])
def test_training_is_that_of_arrays_of_their_own(context, build, options):
    assert_same(passes(build, **options), apart_from_others(build, **options))


@pytest.mark.parametrize("build", SHOWN)
def test_training_is_that_of_the_reference(cuda, build):
    found = passes(build)
    with nn.context_scope(nn.Context(["reference:float"])):
        expected = passes(build)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("build", [*SHOWN, *OTHERS])
def test_inference_is_that_of_arrays_of_their_own(context, build):
    import emulated

    switches = ("share_memory", "pack")  # the second changes nothing here
    results = [emulated.inferred(build, tokens(), switch) for switch in switches]
    np.testing.assert_array_equal(*results)


def replace_input(number, x, loss):
    if number > 1:
        x.d = np.random.default_rng(number + 50).normal(size=x.shape)


def value_of(loss, name, place=0):
    """The result of the first function of that name before the loss."""
    nodes, stack = [], [loss.parent]
    while stack:
        node = stack.pop()
        if node.info.type_name == name:
            nodes.append(node)
        stack += [value.parent for value in node.inputs if value is not None and value.parent is not None]
    return nodes[0].outputs[place]


def replace_query(number, x, loss):
    """Readers of the result of a function find what was written to it."""
    if number > 1:
        q = value_of(loss, "ScaledDotProductAttention").parent.inputs[0]
        q.d = np.full(q.shape, 0.25)


def change_query(number, x, loss):
    """A change in place is seen by the readers of that array only."""
    if number > 1:
        q = value_of(loss, "ScaledDotProductAttention").parent.inputs[0]
        q.data.readwrite(*q.data.synced.latest).view(np.ndarray)[0, 1] = 2


@pytest.mark.parametrize("change", [replace_input, replace_query, change_query])
@pytest.mark.parametrize("build", [packed, split_first, apart, read_source])
def test_what_is_written_between_passes_changes_nothing_else(context, build, change):
    assert_same(passes(build, change), apart_from_others(build, change))


def test_values_are_read_in_their_own_order(cuda):
    x = tokens()
    q, k, v = F.split(F.transpose(projected(x), (2, 0, 3, 1, 4)), axis=0)
    y = back(F.scaled_dot_product_attention(q, k, v))
    for _ in range(3):
        y.forward(clear_no_need_grad=True)
    found = [part.d.copy() for part in (q, k, v)]
    y.forward()
    for one, part in zip(found, (q, k, v), strict=True):
        np.testing.assert_array_equal(one, part.d)


def random_network(seed):
    """Transposes, splits and attention in any order, of values some of which others read, too."""
    rng = np.random.default_rng(seed)

    def build(x):
        values = [x]
        for number in range(3):
            source = values[-1] if rng.random() < 0.7 else values[rng.integers(len(values))]
            whole = projected(source, name=f"layer{number}")
            if rng.random() < 0.5:
                whole = F.transpose(whole, (2, 0, 3, 1, 4))
                parts = F.split(whole, axis=0)
            else:
                parts = [F.transpose(part, (0, 2, 1, 3)) for part in F.split(whole, axis=2)]
            parts = [F.tanh(part) if rng.random() < 0.15 else part for part in parts]
            for part in parts:
                part.persistent = bool(rng.random() < 0.1)
            q, k, v = (parts[place] for place in (rng.permutation(3) if rng.random() < 0.8 else rng.integers(0, 3, 3)))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=bool(rng.integers(2)))
            if rng.random() < 0.2:
                y = F.scaled_dot_product_attention(y, k, q)
            made = back(y, f"output{number}")
            if rng.random() < 0.3:
                made = made * F.mean(parts[rng.integers(3)])
            if rng.random() < 0.2:
                made = made + F.mean(F.sin(whole))
            values.append(values[-1] + made if rng.random() < 0.7 else made)
        return F.add_n(*values[1:])

    return build


@pytest.mark.parametrize("seed", range(24))
def test_random_networks_compute_what_they_do_apart(cuda, seed):
    assert_same(passes(random_network(seed)), apart_from_others(random_network(seed)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("rank", [2, 3, 4])
def test_attention_takes_arrays_as_they_lie(device, rank, dtype):
    from dataclasses import replace

    from emulated import call_of

    from nn_ext_cuda.kernels import KERNELS

    kernel = KERNELS["ScaledDotProductAttention"]
    rng = np.random.default_rng(rank)
    shape = (2, 3, 37, 6)[4 - rank :]
    inputs = [rng.normal(size=shape).astype(dtype) for _ in range(3)]
    call = call_of("ScaledDotProductAttention", [*inputs, None], dtype, is_causal=True)
    call = replace(call, outputs=(call.outputs[0], replace(call.outputs[1], shape=kernel.private_shapes(call)[0])))
    assert kernel.strided(call)

    def lying(values, spread):
        """The values, between others with `spread`."""
        if not spread:
            return device.asarray(values)
        lengths = [length + 2 for length in shape]
        order = [*range(rank - 1)][::-1]
        whole = device.asarray(np.full([*(lengths[axis] for axis in order), lengths[-1]], 9, dtype))
        part = whole[(slice(1, -1),) * rank].transpose(*order, rank - 1)
        part.view(np.ndarray)[...] = values
        return part

    results = []
    for spread in (False, True):
        q, k, v, y, dy, *gradients = (lying(each, spread) for each in (*inputs, *[np.full(shape, 7, dtype)] * 5))
        dy.view(np.ndarray)[...] = inputs[1]
        log_sum = device.asarray(np.zeros(call.outputs[1].shape, call.outputs[1].dtype))
        kernel.forward(call)(q, k, v, None, y, log_sum)
        kernel.backward(call, [True] * 3 + [False])(q, k, v, None, y, log_sum, dy, *gradients, None)
        results.append([np.array(each.get()) for each in (y, *gradients)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
