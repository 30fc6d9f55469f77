"""Files of networks cannot hold operators of this package, and refuse them by name."""

import pytest

import nn_core as nn
import nn_core.ext
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import FileFormatError, NNCoreError
from nn_core.utils.load import load
from nn_core.utils.save import save

NETWORK = """version: "1.39"
network { name: "n" batch_size: 1
 variable { name: "x" type: "Buffer" shape { dim: 1 dim: 2 } }
 variable { name: "y" type: "Buffer" shape { dim: 1 dim: 2 } }
 function { name: "f" type: "contrib.Log1p" input: "x" output: "y" } }
"""


@pytest.fixture
def network():
    return F.contrib.log1p(PF.affine(nn.Variable((2, 3)), 4))


@pytest.mark.parametrize("extension", ["nnp", "nntxt", "protobuf"])
def test_files_of_nnabla_cannot_hold_operators_of_plugins(tmp_path, network, extension):
    pytest.importorskip("nn_ext_nnp")
    contents = {"networks": [{"name": "n", "batch_size": 2, "outputs": {"y": network}, "names": {"y": network}}]}
    with pytest.raises(NNCoreError, match=r"functions of network 'n' must be those of NNabla .*, got contrib\.Log1p"):
        save(str(tmp_path / f"n.{extension}"), contents)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_nnabla_that_names_one_is_refused(tmp_path):
    pytest.importorskip("nn_ext_nnp")
    (tmp_path / "n.nntxt").write_text(NETWORK)
    with pytest.raises(FileFormatError, match=r"functions must be those of NNabla .*, got 'contrib\.Log1p' \('f' in network"):
        load([str(tmp_path / "n.nntxt")])


def test_onnx_cannot_hold_operators_of_plugins(tmp_path, network):
    pytest.importorskip("onnx")
    pytest.importorskip("nn_ext_onnx")
    write = nn.ext.find_extension("file_formats", ".onnx", "write_network")
    with pytest.raises(NNCoreError, match=r"(?s)functions must be those that ONNX can express, got.*contrib\.Log1p"):
        write(tmp_path / "n.onnx", [network])
    assert list(tmp_path.iterdir()) == []
