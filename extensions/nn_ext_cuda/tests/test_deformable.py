"""Deformable convolutions on the emulated device, beside the reference."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F


def inputs_of(samples, channels, filters, *, group=1, deformable_group=1, channel_last=False, size=(3, 3)):
    """x, weight, offset, mask and bias; offsets lead beyond the image here and there."""
    draw = np.random.default_rng(0)
    elements = deformable_group * size[0] * size[1]
    shapes = [(samples, channels, 5, 6), (filters, channels // group, *size)]
    shapes += [(samples, 2 * elements, 5, 6), (samples, elements, 5, 6)]
    arrays = [draw.normal(size=shape).astype("float32") for shape in (*shapes, (filters,))]
    arrays[2] = 1.7 * arrays[2] + 0.013  # not on a pixel, where the gradient jumps
    return [a.transpose(0, 2, 3, 1).copy() if channel_last and a.ndim == 4 else a for a in arrays]


def compare(arrays, **args):
    """Results and gradients on both backends; nothing of them falls back to the reference."""
    found = []
    for context in (nn.get_current_context(), nn.Context(["reference:double"])):
        with nn.context_scope(context):
            inputs = [None if a is None else nn.Variable.from_numpy_array(a, need_grad=True) for a in arrays]
            y = F.deformable_convolution(*inputs, **args)
            given = [variable for variable in inputs if variable is not None]
            for variable in given:
                variable.grad.zero()
            y.forward()
            y.backward(np.random.default_rng(1).normal(size=y.shape).astype("float32"))
            found.append([y.d.copy(), *[variable.g.copy() for variable in given]])
            assert not nn.fallback_report()
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=5e-6 * max(np.abs(other).max(), 1))


GEOMETRY = {"stride": (2, 1), "dilation": (1, 2), "pad": (1, 1)}


@pytest.mark.parametrize("channel_last", [False, True])
@pytest.mark.parametrize(("samples", "group", "deformable_group"), [(3, 1, 1), (3, 2, 4), (1, 4, 2)])
def test_groups(cuda, samples, group, deformable_group, channel_last):
    args = {"group": group, "deformable_group": deformable_group, "channel_last": channel_last}
    compare(inputs_of(samples, 4, 8, **args), **args, **GEOMETRY)


def test_without_mask_and_bias(cuda):
    compare([*inputs_of(2, 2, 3)[:3], None, None], pad=(1, 1))


def test_columns_of_some_samples_at_a_time(cuda, monkeypatch):
    from nn_ext_cuda.kernels import deformable

    monkeypatch.setattr(deformable, "COLUMN_BYTES", 2 * 4 * 2 * 9 * 3 * 4)  # of two samples
    compare(inputs_of(5, 2, 3))


def test_they_are_recorded_in_graphs(cuda):
    import emulated

    inputs = [nn.Variable.from_numpy_array(a, need_grad=True) for a in inputs_of(2, 2, 3)]
    loss = F.sum(F.deformable_convolution(*inputs) ** 2)
    emulated.check_recorded(loss, inputs[0])
