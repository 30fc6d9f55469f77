"""Products with activations, and with the gradient of GELU, on an emulated device and an emulated cublasLt."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S


@pytest.fixture
def library(cuda, monkeypatch):
    import fake_cublaslt

    from nn_ext_cuda.gemm import cublaslt, epilogues, slopes

    monkeypatch.setattr(slopes, "library", lambda: library)
    monkeypatch.setattr(epilogues, "_KEEPS_NAN", {})
    library = fake_cublaslt.FakeCublasLt()
    monkeypatch.setattr(cublaslt, "library", lambda: library)
    cublaslt._CHOSEN.clear()
    return library


def trained(context, width, steps=5):
    """Parameters after a few steps, and the values before the activation in the last one."""
    nn.clear_parameters()
    nn.seed(5)
    with nn.context_scope(context):
        x = nn.Variable.from_numpy_array(np.random.default_rng(0).normal(size=(16, 4)).astype("float32"))
        hidden = PF.affine(x, width, name="a")
        loss = F.mean(PF.affine(F.gelu(hidden), 3, name="b") ** 2)
        solver = S.Sgd(0.1)
        solver.set_parameters(nn.get_parameters())
        for _ in range(steps):
            loss.forward()
            solver.zero_grad()
            loss.backward()
            solver.update()
        return hidden.d.copy(), {name: p.d.copy() for name, p in nn.get_parameters().items()}


@pytest.mark.parametrize(("width", "fuses"), [(8, True), (12, False)])
def test_a_product_with_a_bias_takes_the_gelu_of_its_result(library, width, fuses):
    expected = trained(nn.Context(["reference:float"]), width)
    found = trained(nn.get_current_context(), width)
    assert (164 in {settings[7] for settings in library.products}) == fuses
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)
    for name, values in expected[1].items():
        np.testing.assert_allclose(found[1][name], values, rtol=1e-4, atol=1e-5)


def test_without_an_algorithm_both_are_computed_apart(library):
    library.knows_algorithms = False
    expected = trained(nn.Context(["reference:float"]), 8)
    found = trained(nn.get_current_context(), 8)
    assert not library.products
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)


def test_the_activation_is_no_launch_of_its_own(library):
    from nn_ext_cuda import graph_report

    x = nn.Variable.from_numpy_array(np.ones((16, 4), "float32"))
    y = F.gelu(PF.affine(x, 8))
    before = graph_report()
    for _ in range(4):
        y.forward()
    after = graph_report()
    assert after.n_recorded - before.n_recorded == 1
    assert np.isfinite(y.d).all()


def test_an_activation_in_the_memory_of_the_operand_is_a_launch_of_its_own(library):
    rng = np.random.default_rng(2)
    x = nn.Variable.from_numpy_array(rng.normal(size=(16, 8)).astype("float32"))
    y = x
    for number in range(3):
        y = F.gelu(PF.affine(y, 8, name=f"layer{number}"))
    y.forward()
    expected = y.d.copy()
    library.products.clear()
    for _ in range(4):
        y.forward(clear_buffer=True)  # each layer writes where the one before has read
    # the operand of the first layer belongs to the program
    assert [settings[7] for settings in library.products[-3:]] == [36, 4, 4]
    np.testing.assert_allclose(y.d, expected, rtol=1e-5, atol=1e-6)


def epilogues_of(library, run, times=4):
    """The epilogues of the products of the last of several runs."""
    for _ in range(times - 1):
        run()
    library.products.clear()
    run()
    return [settings[7] for settings in library.products]


@pytest.mark.parametrize(("start", "fused"), [(0, True), (4, True), (3, False)])
def test_a_bias_within_a_larger_array_of_another_library(library, cuda, start, fused):
    weights, gradients = (cuda.empty((16,), "float32") for _ in range(2))
    weights.set(np.random.default_rng(4).normal(size=16))
    gradients.set(np.zeros(16))
    values, dy = (np.random.default_rng(seed).normal(size=(16, 8)).astype("float32") for seed in (5, 6))
    y = PF.affine(nn.Variable.from_numpy_array(values), 8, name="layer")
    _, weight, bias = y.parent.inputs
    bias.data = nn.NdArray.from_dlpack(weights[start : start + 8])
    bias.grad = nn.NdArray.from_dlpack(gradients[start : start + 8])

    def step():
        y.forward()
        bias.grad.zero()
        weight.grad.zero()
        y.backward(dy)

    assert epilogues_of(library, step) == ([4, 256] if fused else [])
    np.testing.assert_allclose(y.d, values @ weight.d + weights.get()[start : start + 8], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradients.get()[start : start + 8], dy.sum(axis=0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(weight.g, values.T @ dy, rtol=1e-5, atol=1e-5)


def layer(activation, width=8, dtype="float32"):
    x = nn.Variable.from_numpy_array(np.random.default_rng(1).normal(size=(16, 4)).astype(dtype))
    hidden = PF.affine(x, width, name="layer")
    hidden.parent.inputs[2].d = np.random.default_rng(2).normal(size=width)
    return hidden, activation(hidden)


@pytest.mark.parametrize("width", [8, 12])
@pytest.mark.parametrize(("activation", "epilogue"), [(F.relu, 6), (F.gelu, 36)])
def test_an_activation_alone_is_written_where_nobody_reads_what_is_before_it(library, activation, epilogue, width):
    _, y = layer(activation, width)
    y.forward()
    expected = y.d.copy()
    assert epilogues_of(library, lambda: y.forward(clear_buffer=True)) == [epilogue]
    np.testing.assert_allclose(y.d, expected, rtol=1e-5, atol=1e-6)


def test_relu_is_fused_in_training_that_keeps_what_gradients_read(library):
    def passes(**options):
        h, y = layer(F.relu)
        h.parent.inputs[1].need_grad = True
        loss = F.mean(y**2)
        for _ in range(4):
            library.products.clear()
            loss.forward(**options)
            forward, values = [settings[7] for settings in library.products], None if options else h.d.copy()
            h.parent.inputs[1].grad.zero()
            loss.backward(clear_buffer=True)
        return forward, h.parent.inputs[1].g.copy(), values

    nn.seed(1)
    kept, gradient, values = passes()
    nn.clear_parameters()
    nn.seed(1)
    lean, again, _ = passes(clear_no_need_grad=True)
    assert (kept, lean) == ([4], [6])
    assert values.min() < 0
    np.testing.assert_allclose(again, gradient, rtol=1e-6)


@pytest.mark.parametrize("persistent", [True, False])
def test_relu_stays_apart_where_its_input_is_read_later(library, persistent):
    h, y = layer(F.relu)
    h.persistent = persistent
    y = y if persistent else y + h
    assert epilogues_of(library, lambda: y.forward(clear_buffer=True)) == [4]
    np.testing.assert_allclose(y.d, np.maximum(h.d, 0) if persistent else y.d)


def test_a_library_whose_relu_makes_zeros_of_nan_computes_the_product_only(library):
    library.keeps_nan = False
    h, y = layer(F.relu)
    assert epilogues_of(library, lambda: y.forward(clear_buffer=True)) == [4]
    h.parent.inputs[2].d = np.nan
    y.forward(clear_buffer=True)
    assert np.isnan(y.d).all()


def test_what_relu_does_with_nan_is_tried_once(library):
    _, y = layer(F.relu)
    y.forward(clear_buffer=True)
    for expected in (2, 1, 1):  # the trial, and the product
        library.products.clear()
        y.forward(clear_buffer=True)
        assert [settings[7] for settings in library.products] == [6] * expected


@pytest.mark.parametrize("second", [F.gelu, F.relu])
def test_of_two_activations_of_one_product_both_are_computed(library, second):
    h, first = layer(F.gelu)
    y = first + second(h)
    y.forward()
    expected = y.d.copy()
    epilogues_of(library, lambda: y.forward(clear_buffer=True))
    np.testing.assert_allclose(y.d, expected, rtol=1e-5, atol=1e-6)


@pytest.fixture
def half(cuda):
    context = nn.Context(["cuda:half"], nn.get_current_context().array_class)
    with nn.context_scope(context):
        yield context


def network(widths=(8, 16, 8), read=False):
    """The gradients of a network of affine layers and GELU, and the epilogues of the last backward pass."""
    nn.clear_parameters()
    nn.seed(4)
    x = nn.Variable.from_numpy_array(np.random.default_rng(3).normal(size=(16, 8)).astype("float32"), need_grad=True)
    y, inner = x, []
    for number, width in enumerate(widths):
        inner.append(PF.affine(y, width, name=f"layer{number}"))
        y = F.gelu(inner[-1])
    loss = F.mean(PF.affine(y, 3, name="last") ** 2)
    loss = loss + F.mean(y) if read else loss
    parameters = {"x": x, **nn.get_parameters()}

    def run():
        loss.forward(clear_no_need_grad=True)
        for parameter in parameters.values():
            parameter.grad.zero()
        loss.backward(64.0, clear_buffer=True)

    return run, lambda: {name: parameter.g.copy() for name, parameter in parameters.items()}


@pytest.mark.parametrize("read", [False, True])
def test_the_gradient_of_gelu_is_part_of_a_product_in_short_types(library, half, read):
    run, gradients = network(read=read)
    found = epilogues_of(library, run)
    # where the result of the last activation is read twice, its gradient is a sum, and no product
    assert found.count(192) == (2 if read else 3)
    found = gradients()
    with nn.context_scope(nn.Context(["reference:float"])):
        run, gradients = network(read=read)
        run()
    for name, values in gradients().items():
        np.testing.assert_allclose(found[name], values, rtol=2e-2, atol=2e-2 * np.abs(values).max(), err_msg=name)


def test_the_gradient_of_gelu_stays_apart_in_float32(library):
    run, _ = network()
    assert 192 not in epilogues_of(library, run)


def test_the_gradient_of_gelu_stays_apart_where_the_library_has_no_algorithm(library, half):
    library.unknown_epilogues = (192,)
    run, gradients = network()
    assert 192 not in epilogues_of(library, run)
    apart = gradients()
    library.unknown_epilogues = ()
    from nn_ext_cuda.gemm import cublaslt

    cublaslt._CHOSEN.clear()
    run, gradients = network()
    assert epilogues_of(library, run).count(192) == 3
    for name, values in gradients().items():
        np.testing.assert_allclose(apart[name], values, rtol=2e-2, atol=2e-2 * np.abs(values).max(), err_msg=name)


def shared_gradient(x):
    """One gradient, the result of a product, is that of two activations."""
    y = F.gelu(PF.affine(x, 8, name="a")) + F.gelu(PF.affine(x, 8, name="b"))
    return PF.affine(y, 16, name="c"), y


def kept_gradient(x):
    """The program reads the gradient of an activation."""
    y = F.gelu(PF.affine(x, 8, name="a"))
    y.persistent = True
    return PF.affine(y, 16, name="c"), y


def same_sizes(x):
    """All gradients are of one size, and there are no others, so that one takes the memory of another."""
    for number in range(4):
        x = F.gelu(PF.affine(x, 8, name=f"layer{number}", fix_parameters=True))
    return x, x


def seen_in_another_shape(x):
    """The gradient of an activation is a view of the result of a product."""
    y = F.reshape(F.gelu(PF.affine(x, 8, name="a")), (8, 16))
    return PF.affine(F.reshape(y, (16, 8)), 16, name="c"), y


@pytest.mark.parametrize("build", [shared_gradient, kept_gradient, same_sizes, seen_in_another_shape])
def test_gradients_that_others_read_too(library, half, build):
    values = np.random.default_rng(6).normal(size=(16, 8)).astype("float32")
    results = []
    for context in (half, nn.Context(["reference:float"])):
        nn.clear_parameters()
        nn.seed(9)
        with nn.context_scope(context):
            x = nn.Variable.from_numpy_array(values, need_grad=True)
            y, inner = build(x)
            loss = F.mean(y**2)
            for _ in range(4):
                loss.forward(clear_no_need_grad=True)
                x.grad.zero()
                loss.backward(64.0, clear_buffer=True)
        results.append([x.g.copy(), *([inner.g.copy()] if inner.persistent else [])])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-2 * np.abs(expected).max())


def random_network(seed):
    """Layers of several widths and activations, some of whose values several functions read; the parameters and the result."""
    rng = np.random.default_rng(seed)
    nn.clear_parameters()
    nn.seed(seed)
    x = nn.Variable.from_numpy_array(rng.normal(size=(16, 8)).astype("float32"), need_grad=True)
    values = [x]
    for number in range(8):
        source = values[-1] if rng.random() < 0.8 else values[rng.integers(len(values))]
        hidden = PF.affine(source, int(rng.choice([8, 16])), name=f"layer{number}")
        y = [F.gelu, F.relu, F.tanh][rng.integers(3)](hidden)
        if rng.random() < 0.3:
            y = y + [hidden, F.gelu(hidden), F.relu(hidden)][rng.integers(3)]
        hidden.persistent = rng.random() < 0.1
        values.append(y)
    return {"x": x, **nn.get_parameters()}, F.mean(PF.affine(values[-1], 3, name="last") ** 2)


@pytest.mark.parametrize("dtype", ["float", "half"])
@pytest.mark.parametrize("seed", range(8))
def test_random_networks_compute_what_they_do_without_epilogues(library, seed, dtype):
    context = nn.Context([f"cuda:{dtype}"], nn.get_current_context().array_class)
    results = {}
    for name, unknown in (("fused", ()), ("apart", (6, 36, 164, 192))):
        library.unknown_epilogues = unknown
        library.products.clear()
        from nn_ext_cuda.gemm import cublaslt

        cublaslt._CHOSEN.clear()
        with nn.context_scope(context):
            parameters, loss = random_network(seed)
            for options in ({"clear_no_need_grad": True}, {}, {"clear_no_need_grad": True}) * 3:
                loss.forward(**options)
                for parameter in parameters.values():
                    parameter.grad.zero()
                loss.backward(64.0, clear_buffer=True)
        used = {settings[7] for settings in library.products}
        assert used.isdisjoint(unknown)
        results[name] = [loss.d, *[parameter.g.copy() for parameter in parameters.values()]]
    tolerance = 1e-4 if dtype == "float" else 3e-2
    for found, expected in zip(results["fused"], results["apart"], strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(np.abs(expected).max(), 1e-3))


class Between:
    """A step that reads and writes some arrays, between a product and the gradient of GELU."""

    def __init__(self, *arrays):
        self.arrays = arrays


@pytest.mark.parametrize(
    ("case", "is_taken"),
    [
        ("nothing", True),
        ("another step", True),
        ("the gradient is read later", False),
        ("the gradient is read in between", False),
        ("an operand is overwritten in between", False),
        ("the result has the memory of an operand", False),
        ("a step that does not tell", False),
    ],
)
def test_when_a_product_takes_over_the_gradient_of_gelu(library, case, is_taken):
    import emulated

    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cuda.gemm.epilogues import joined
    from nn_ext_cuda.kernels import KERNELS

    h, weight, dy = (np.random.default_rng(k).normal(size=(8, 8)).astype("float16") for k in range(3))
    arrays = {name: cupy.asarray(values) for name, values in {"h": h, "weight": weight, "dy": dy}.items()}
    g, dg, dx, other = (cupy.asarray(np.zeros((8, 8), "float16")) for _ in range(4))
    dx = arrays["dy"] if "memory of an operand" in case else dx
    affine = KERNELS["Affine"].backward(emulated.call_of("Affine", [g.get(), weight, None], "float16"), [True, True, False])
    product = affine.bind(g, arrays["weight"], None, None, arrays["dy"], dg, other, None)
    slope = KERNELS["GELU"].backward(emulated.call_of("GELU", [h], "float16"), [True]).bind(arrays["h"], None, dg, dx)
    slope.ends = (0,) if "later" in case else (0, 2)
    between = {
        "another step": Between(other),
        "the gradient is read in between": Between(dg, other),
        "an operand is overwritten in between": Between(arrays["dy"]),
        "a step that does not tell": object(),
    }
    steps = joined([product, *([between[case]] if case in between else []), slope])
    assert (slope not in steps) == is_taken
    assert [type(step).__name__ for step in steps][-1] == ("LightStep" if is_taken else "Step")
    for step in steps:
        if not isinstance(step, Between) and type(step) is not object:
            step()
    t = np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h.astype("float64") ** 3))
    slopes = 0.5 * (1 + t) + 0.5 * h * (1 - t**2) * np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * h.astype("float64") ** 2)
    np.testing.assert_allclose(dx.get(), dy.astype("float64") @ weight.T.astype("float64") * slopes, rtol=0, atol=5e-2)
