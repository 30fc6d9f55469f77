"""The extras of the packages for CUDA: each brings all that a machine with nothing but a driver lacks."""

from pathlib import Path

import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

EXTENSIONS = Path(__file__).parents[2]


def extras(package):
    return tomllib.loads((EXTENSIONS / package / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("version", ["12", "13"])
def test_the_extras_bring_nvrtc_headers_and_cublas_of_one_version(version):
    own, cudnn = extras("nn_ext_cuda")[f"cuda{version}"], extras("nn_ext_cudnn")[f"cuda{version}"]
    assert any(line.startswith(f"cupy-cuda{version}x[ctk]") for line in own)
    assert any(line.startswith(f"nn-ext-cuda[cuda{version}]") for line in cudnn)
    assert any(line.startswith(f"nvidia-cudnn-cu{version}") for line in cudnn)
    other = "13" if version == "12" else "12"
    assert not [line for line in (*own, *cudnn) if f"cuda{other}" in line or f"cu{other}" in line]


def test_nccl_is_there_for_both_versions():
    found = extras("nn_ext_cuda")
    assert [line.partition(">")[0] for line in found["nccl"]] == ["nvidia-nccl-cu13"]
    assert [line.partition(">")[0] for line in found["nccl-cuda12"]] == ["nvidia-nccl-cu12"]


def test_no_dependency_without_an_extra_brings_a_version_of_cuda():
    for package in ("nn_ext_cuda", "nn_ext_cudnn"):
        lines = tomllib.loads((EXTENSIONS / package / "pyproject.toml").read_text())["project"]["dependencies"]
        assert not [line for line in lines if "cupy" in line or "nvidia" in line]
