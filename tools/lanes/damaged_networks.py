"""Files of networks for the lane of mutated files: how they are saved, and what loading them must give.

The members of an NNP archive have checksums: it gives what was saved, or an error. Texts, NNB files and models of ONNX have
none, so that a mutated one may be another network. It must still be read consistently: a text is printed and read again, an
NNB file written and read again; an ONNX model is compared with ONNX's own definitions. Graphs of moderate size are computed.
"""

import re
import struct
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import FileFormatError
from nn_core.utils.load import load
from nn_core.utils.save import save

from . import damaged_models

#: Elements of a graph that is computed; building larger ones takes no memory for them.
_COMPUTED = 100_000


def _network() -> dict[str, Any]:
    """Return a convolutional network with an optimizer, an executor and a monitor, as `save` takes it."""
    nn.seed(0)
    x, label = nn.Variable((2, 3, 6, 6)), nn.Variable((2, 1))
    h = PF.batch_normalization(PF.convolution(x, 2, (3, 3), name="c"), batch_stat=False, name="b")
    y = PF.affine(F.max_pooling(F.relu(h), (2, 2)), 4, name="a")
    loss = F.mean(F.softmax_cross_entropy(y, label))
    solver = S.Adam(0.01)
    solver.set_parameters(nn.get_parameters())
    networks = [
        {"name": "net", "batch_size": 2, "names": {"x": x}, "outputs": {"y": y}},
        {"name": "train", "batch_size": 2, "names": {"x": x, "t": label}, "outputs": {"loss": loss}},
    ]
    return {
        "global_config": {"default_context": nn.get_current_context()},
        "training_config": {"max_epoch": 2, "iter_per_epoch": 3, "save_best": True},
        "networks": networks,
        "datasets": [{"name": "d", "uri": "d.csv", "batch_size": 2, "variables": {"x": x, "t": label}}],
        "optimizers": [{"name": "o", "solver": solver, "network": "train", "dataset": "d", "weight_decay": 0.1}],
        "executors": [{"name": "run", "network": "net", "data": ["x"], "output": ["y"]}],
    }


def _saved(name: str) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        with nn.parameter_scope("", {}):
            save(folder / name, _network(), include_params=not name.endswith(".nnp"), variable_batch_size=True)

    return run


def _results(network: Any) -> dict[str, Any]:
    """Return the values of the outputs for certain inputs; {} of networks that are too large to compute."""
    if sum(prod(variable.shape) for variable in network.variables.values()) > _COMPUTED:
        return {}
    for name, variable in network.inputs.items():
        variable.d = np.linspace(-1, 1, prod(variable.shape)).reshape(variable.shape) if name != "t" else 1
    found = {}
    for name, output in network.outputs.items():
        output.forward()
        found[name] = (output.shape, np.asarray(output.d).tobytes())
    return found


def loaded(path: Path) -> Any:
    """All that a file says, as values that can be compared."""
    with nn.parameter_scope("", {}):
        info = load(path, prepare_data_iterator=False)
        results = {name: _results(network) for name, network in info.networks.items()}
        values = {name: (p.shape, p.need_grad, p.d.tobytes()) for name, p in nn.get_parameters(grad_only=False).items()}
    return info.proto.SerializeToString(deterministic=True), results, values


def _load_nnp(folder: Path) -> Any:
    return loaded(folder / "net.nnp")


def _load_text(folder: Path) -> None:
    from nn_ext_nnp.codec import parse_text, print_text  # the package is not part of nn_core

    loaded(folder / "net.nntxt")
    read = parse_text((folder / "net.nntxt").read_bytes(), "net.nntxt")
    again = parse_text(print_text(read), "the same")
    if again.SerializeToString(deterministic=True) != read.SerializeToString(deterministic=True):
        raise AssertionError("the text was printed as another one")


def _save_nnb(folder: Path) -> None:
    from nn_ext_nnp.document import read_document
    from nn_ext_nnp.nnb.options import NnbOptions
    from nn_ext_nnp.nnb.writing import nnb_bytes

    _saved("net.nnp")(folder)
    (folder / "net.nnb").write_bytes(nnb_bytes(read_document(folder / "net.nnp"), NnbOptions()))
    (folder / "net.nnp").unlink()


def _load_nnb(folder: Path) -> None:
    from nn_ext_nnp.document import read_document
    from nn_ext_nnp.nnb.options import NnbOptions
    from nn_ext_nnp.nnb.reading import read_nnb
    from nn_ext_nnp.nnb.writing import nnb_bytes

    loaded(folder / "net.nnb")
    first = nnb_bytes(read_document(folder / "net.nnb"), NnbOptions())
    if nnb_bytes(read_nnb(first, "the same"), NnbOptions()) != first:
        raise AssertionError("the network was written as another one")


def _save_onnx(folder: Path) -> None:
    for number, data in enumerate(damaged_models.models()):
        (folder / f"{number}.onnx").write_bytes(data)


def _load_onnx(folder: Path) -> None:
    refused = []
    for path in folder.iterdir():
        outcome = damaged_models.outcome(path.read_bytes())
        refused += [path.name] * (outcome == "refused")
        if outcome not in ("refused", "equal", "unjudged"):
            raise AssertionError(outcome)
    if refused:
        raise FileFormatError(f"files must be models, got others: {', '.join(refused)}")


#: A network of Caffe with weights, pooling, a softmax and settings of several types.
_CAFFE: Final = """
name: "net"
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
layer { name: "c" type: "Convolution" bottom: "x" top: "c"
        convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 } }
layer { name: "n" type: "BatchNorm" bottom: "c" top: "c" }
layer { name: "s" type: "Scale" bottom: "c" top: "c" scale_param { bias_term: true } }
layer { name: "r" type: "ReLU" bottom: "c" top: "c" relu_param { negative_slope: 0.1 } }
layer { name: "p" type: "Pooling" bottom: "c" top: "p" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "i" type: "InnerProduct" bottom: "p" top: "i" inner_product_param { num_output: 5 } }
layer { name: "y" type: "Softmax" bottom: "i" top: "y" }
"""


def _save_caffe(folder: Path) -> None:
    from google.protobuf import text_format

    from nn_ext_caffe.schema import message

    shapes: dict[str, list[tuple[int, ...]]] = {
        "c": [(4, 3, 3, 3), (4,)],
        "n": [(4,), (4,), (1,)],
        "s": [(4,), (4,)],
        "i": [(5, 16), (5,)],
    }
    made: Any = message("NetParameter")
    text_format.Merge(_CAFFE, made)
    for layer in made.layer:
        for shape in shapes.get(layer.name, ()):
            blob = layer.blobs.add(data=[np.linspace(0.1, 1, prod(shape)).astype("<f4").tobytes()])
            blob.shape.dim.extend(shape)
    (folder / "net.prototxt").write_text(_CAFFE)
    (folder / "net.caffemodel").write_bytes(made.SerializeToString())


def _load_caffe(folder: Path) -> None:
    """Read and compute; neither file has checksums, so that any network counts."""
    from nn_ext_caffe import load as load_caffe

    with nn.parameter_scope("", {}):
        network = load_caffe(folder / "net.prototxt", folder / "net.caffemodel")
        if sum(prod(variable.shape) for variable in (*network.inputs.values(), *network.outputs.values())) <= _COMPUTED:
            for variable in network.inputs.values():
                variable.d = np.linspace(-1, 1, prod(variable.shape)).reshape(variable.shape)
            for output in network.outputs.values():
                output.forward()


#: How files of networks are saved into a folder and loaded from it.
KINDS: Mapping[str, tuple[Callable[[Path], None], Callable[[Path], Any]]] = {
    ".nnp": (_saved("net.nnp"), _load_nnp),
    ".nntxt": (_saved("net.nntxt"), _load_text),
    ".nnb": (_save_nnb, _load_nnb),
    ".onnx": (_save_onnx, _load_onnx),
    ".caffemodel": (_save_caffe, _load_caffe),
}


def _other_number(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a text with another number in it."""
    found = list(re.finditer(rb"-?\d[\d.]*", content))
    place = found[int(rng.integers(len(found)))]
    number = (b"0", b"-1", b"7", b"0.5", b"99999999", b"2147483648", b"1000000000000", b"1e39", b"nan")[int(rng.integers(9))]
    return content[: place.start()] + number + content[place.end() :]


def _other_word(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with another word of four bytes in it."""
    word = (0, 1, -1, 2, 7, 255, 65536, 1 << 30, -(1 << 31), (1 << 31) - 1)[int(rng.integers(10))]
    place = 4 * int(rng.integers(len(content) // 4))
    return content[:place] + struct.pack("<i", word) + content[place + 4 :]


#: Changes that leave a file readable more often than those of single bytes do; the lane makes half of its changes so.
CHANGES: Mapping[str, Callable[[bytes, np.random.Generator], bytes]] = {".nntxt": _other_number, ".nnb": _other_word}
