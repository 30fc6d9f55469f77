"""Every integer setting of every function takes whole numbers of other types, and refuses fractions with advice."""

import inspect
import pkgutil
from importlib import import_module

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.initializer as I
import nn_core.operators.spec.builtin
import nn_core.parametric_functions as PF
from nn_core.data.iterators import data_iterator_simple
from nn_core.engine.error_messages.whole import _integers_of
from nn_core.errors import ArgumentError, ShapeError
from nn_core.monitor import Monitor, MonitorImage
from nn_core.testing.samples.registry import numbers_of, samples_of

TOPICS = [module.name for module in pkgutil.iter_modules(nn_core.operators.spec.builtin.__path__)]
INTEGERS = {"int", "ints", "axis", "axes", "shape", "index"}
#: Settings of the specification that have another name or meaning in the public function.
OTHERS = {
    *((api, "axes") for api in ("max", "mean", "min", "norm", "prod", "sum")),
    *((f"{kind}_normalization", "axes") for kind in ("sync_batch", "tensor")),
    *(("group_normalization", name) for name in ("num_groups", "channel_axis", "batch_axis")),
    ("instance_normalization", "batch_axis"),
    ("scatter_nd", "shape"),
    ("quantize_linear", "dtype"),
}  # fmt: skip
KERNEL = {"kernel": (3, 3), "pad": (1, 1), "stride": (1, 1), "dilation": (1, 1)}
LAYERS = {
    "": {},
    "binary_connect_": {},
    "binary_weight_": {},
    "fixed_point_quantized_": {"n_w": 8, "n_b": 8},
    "inq_": {"num_bits": 4, "inq_iterations": (1, 2), "seed": 3},
    "min_max_quantized_": {"ql_min_w": 0, "ql_max_w": 255, "ql_min_b": 0, "ql_max_b": 255},
    "pow2_quantized_": {"n_w": 8, "m_w": 1, "n_b": 8, "m_b": 1},
    "pruned_": {},
}
ATTENTION = {"embed_dim": 6, "num_heads": 2, "dim_feedforward": 8}
IMAGE, ROW, STEPS = (2, 4, 8, 8), (2, 4), (2, 4, 6)
#: Parametric functions: shapes of the operands, and every integer setting.
PARAMETRIC = {
    **{
        f"{kind}convolution": ([IMAGE], {"outmaps": 8, **KERNEL, "group": 2, "base_axis": 1, **more})
        for kind, more in LAYERS.items()
    },
    **{f"{kind}affine": ([ROW], {"n_outmaps": 3, "base_axis": 1, **more}) for kind, more in LAYERS.items()},
    "batch_normalization": ([IMAGE], {"axes": (1,)}),
    "cpd3_convolution": ([IMAGE], {"outmaps": 8, **KERNEL, "r": 2, "base_axis": 1, "max_iter": 5}),
    "deconvolution": ([IMAGE], {"outmaps": 8, **KERNEL, "group": 2, "output_padding": (0, 0), "base_axis": 1}),
    "deformable_convolution": ([IMAGE], {"outmaps": 8, **KERNEL, "group": 2, "deformable_group": 1, "base_axis": 1}),
    "depthwise_convolution": ([IMAGE], {**KERNEL, "multiplier": 2, "base_axis": 1}),
    "depthwise_deconvolution": ([IMAGE], {**KERNEL, "divisor": 2, "base_axis": 1}),
    "embed": ([(2,)], {"n_inputs": 4, "n_features": 3}),
    "fused_batch_normalization": ([IMAGE], {"axes": (1,)}),
    "group_normalization": ([IMAGE], {"num_groups": 2, "channel_axis": 1, "batch_axis": 0}),
    "gru": ([(3, 2, 4)], {"num_layers": 1, "hidden_size": 5}),
    "instance_normalization": ([IMAGE], {"channel_axis": 1, "batch_axis": 0}),
    "layer_normalization": ([IMAGE], {"batch_axis": 0}),
    "lstm": ([(3, 2, 4)], {"num_layers": 1, "hidden_size": 5}),
    "lstm_cell": ([ROW, (2, 3), (2, 3)], {"state_size": 3}),
    "mean_subtraction": ([IMAGE], {"base_axis": 1}),
    "min_max_quantize": ([IMAGE], {"ql_min": 0, "ql_max": 255}),
    "multi_head_attention": ([STEPS] * 3, {"num_heads": 2, "k_embed_dim": 6, "v_embed_dim": 6, "out_dim": 6}),
    "prelu": ([IMAGE], {"base_axis": 1}),
    "rnn": ([(3, 2, 4)], {"num_layers": 1, "hidden_size": 5}),
    "spectral_norm": ([IMAGE], {"dim": 0, "itr": 1}),
    "svd_affine": ([ROW], {"n_outmaps": 3, "r": 2, "base_axis": 1}),
    "svd_convolution": ([IMAGE], {"outmaps": 8, **KERNEL, "r": 2, "base_axis": 1}),
    "sync_batch_normalization": None,  # needs a communicator
    "transformer": ([STEPS] * 2, {**ATTENTION, "num_encoder_layers": 1, "num_decoder_layers": 1}),
    "transformer_decode": ([STEPS] * 2, ATTENTION),
    "transformer_encode": ([STEPS], ATTENTION),
    "weight_normalization": ([IMAGE], {"dim": 0}),
}


def with_numbers(value, number):
    """Return `value` with every integer made by `number`."""
    if isinstance(value, (tuple, list)):
        return type(value)(with_numbers(entry, number) for entry in value)
    return value if value is None or isinstance(value, bool) else number(value)


def shapes_of(results):
    return [result.shape for result in (results if isinstance(results, (tuple, list)) else [results])]


def check(call, settings, name):
    """Compare a call with one that has floats in a setting, and see that fractions are refused."""
    value = settings[name]
    expected = shapes_of(call(**settings))
    for number in (float, lambda n: np.array(np.float32(n))):
        assert shapes_of(call(**{**settings, name: with_numbers(value, number)})) == expected, name
    if with_numbers(value, float) not in ((), []):
        with pytest.raises((ArgumentError, ShapeError), match="hint: // divides without a fraction"):
            call(**{**settings, name: with_numbers(value, lambda n: n + 0.5)})


@pytest.mark.parametrize("topic", TOPICS)
def test_settings_of_functions(topic):
    tried, expected = set(), set()
    for spec in import_module(f"nn_core.operators.spec.builtin.{topic}").SPECS:
        names = {a.name for a in spec.args if a.type in INTEGERS and (spec.api, a.name) not in OTHERS}
        expected |= {(spec.api, name) for name in names if hasattr(F, spec.api)}
        for sample in samples_of(spec) if hasattr(F, spec.api) else ():
            for name in sorted(names):
                if sample.args.get(name) is None or (spec.api, name) in tried:
                    continue
                tried.add((spec.api, name))
                inputs = [None if x is None else nn.Variable.from_numpy_array(x) for x in numbers_of(spec, sample)]
                function = getattr(F, spec.api)
                check(lambda _f=function, _x=inputs, **settings: _f(*_x, **settings), dict(sample.args), name)
    assert tried == expected


@pytest.mark.parametrize("function", [name for name, entry in PARAMETRIC.items() if entry is not None])
def test_settings_of_parametric_functions(function):
    shapes, settings = PARAMETRIC[function]
    draw = (
        (lambda shape: np.zeros(shape, np.int64)) if function == "embed" else (lambda shape: np.full(shape, 0.5, np.float32))
    )

    def call(**given):
        nn.clear_parameters()
        if function == "deformable_convolution":
            given["offset"] = nn.Variable((2, 18, 8, 8))
        return getattr(PF, function)(*(nn.Variable.from_numpy_array(draw(shape)) for shape in shapes), **given)

    for name in settings:
        check(call, settings, name)


def test_the_table_has_every_setting_of_every_parametric_function():
    for name in dir(PF):
        function = getattr(PF, name)
        if inspect.isfunction(function) and not name.startswith("_"):
            integers = {setting for setting, _ in _integers_of(inspect.unwrap(function))}
            entry = PARAMETRIC.get(name, ((), ()))
            assert entry is None or integers <= set(entry[1]), (name, integers - set(entry[1]))


@pytest.mark.parametrize("kind", [float, np.float32, lambda n: np.array(float(n))])
def test_settings_of_initializers_iterators_and_layers_of_arrays(kind, tmp_path):
    for initializer in (I.NormalInitializer(), I.UniformInitializer(), I.ConstantInitializer(2), I.OrthogonalInitializer()):
        assert initializer((kind(3), kind(2))).shape == (3, 2)
        with pytest.raises(ArgumentError, match=r"Initializer: each of shape must be an integer, got 3\.5"):
            initializer((3.5, 2))
    assert PF.affine(nn.NdArray((2, 4)), kind(3)).shape == (2, 3)
    assert MonitorImage("a", Monitor(str(tmp_path)), verbose=False, num_images=kind(4)).num_images == 4
    with data_iterator_simple(lambda i: (i,), 8, 2, with_memory_cache=False) as whole:
        assert whole.slice(None, num_of_slices=kind(2), slice_pos=kind(1)).size == 4
        with pytest.raises(ArgumentError, match=r"(?s)slice: slice_pos must be an integer, got 0\.5.*hint: //"):
            whole.slice(None, num_of_slices=2, slice_pos=0.5)
    assert F.var(nn.Variable((2, 3)), ddof=kind(1)).shape == ()
    with pytest.raises(ArgumentError, match=r"var: ddof must be an integer, got 0\.5"):
        F.var(nn.Variable((2, 3)), ddof=0.5)
