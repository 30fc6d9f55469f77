"""The description of the package for the core."""

import pytest

from nn_core.errors import ArgumentError
from nn_core.ext import Refusal
from nn_ext_cuda import plugin as cuda
from nn_ext_cudnn import context, library, plugin


@pytest.mark.parametrize("kind", ["float", "half", "bfloat16", "double"])
def test_the_context_has_cuda_and_the_cpu_behind_it(monkeypatch, kind):
    monkeypatch.setattr(cuda, "probe", lambda: Refusal("no device"))
    assert list(context(type_config=kind).backend) == [f"cudnn:{kind}", f"cuda:{kind}", f"cpu:{kind}"]


def test_wrong_settings_are_told(monkeypatch):
    monkeypatch.setattr(cuda, "probe", lambda: Refusal("no device"))
    with pytest.raises(ArgumentError, match="type_config must be float, half"):
        context(type_config="int")


def test_the_probe_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(cuda, "probe", lambda: Refusal("no CUDA device"))
    assert plugin.probe() == Refusal("no CUDA device")
    monkeypatch.setattr(cuda, "probe", lambda: None)
    monkeypatch.setattr(library, "load", lambda: None)
    assert "pip install nvidia-cudnn-cu13" in plugin.probe().reason
    monkeypatch.setattr(library, "load", object)
    assert plugin.probe() is None


def test_the_backend_has_kernels_of_functions_that_exist(cudnn):
    from nn_core.engine.dispatch.registry import spec_of
    from nn_ext_cudnn.kernels import KERNELS

    backend = plugin.load()
    assert backend.name == plugin.nn_core_backends()[0].name == "cudnn"
    assert {"Convolution", "Deconvolution", "DepthwiseConvolution", "DepthwiseDeconvolution"} <= set(KERNELS)
    assert backend.kernels is KERNELS
    for name in KERNELS:
        assert spec_of(name).name == name
