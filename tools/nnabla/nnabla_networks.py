"""Five networks that NNabla saves, and the NNB files of its own converter: data for the tests of nn_ext_nnp.

    /path/to/venv/bin/python tools/nnabla/nnabla_networks.py extensions/nn_ext_nnp/tests/data/nnb

It runs in an interpreter that has NNabla 1.39 and nothing of nn_core.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import numpy as np
from nnabla.utils.save import save


def lenet(x: Any) -> Any:
    """Two convolutions and two affine layers."""
    h = F.relu(F.max_pooling(PF.convolution(x, 3, (3, 3), name="c1"), (2, 2)))
    h = F.relu(PF.convolution(h, 4, (2, 2), name="c2"))
    return F.softmax(PF.affine(F.relu(PF.affine(h, 6, name="a1")), 3, name="a2"))


def residual(x: Any) -> Any:
    """Return a way around a convolution, with running statistics."""
    a = PF.convolution(x, 4, (3, 3), pad=(1, 1), with_bias=False, name="c1")
    a = F.relu(PF.batch_normalization(a, batch_stat=False, name="b1"))
    b = PF.convolution(a, 4, (3, 3), pad=(1, 1), with_bias=False, name="c2")
    b = PF.batch_normalization(b, batch_stat=False, name="b2")
    return PF.affine(F.global_average_pooling(F.relu(F.add2(b, a))), 3, name="a")


def separable(x: Any) -> Any:
    """Depthwise, pointwise and transposed convolutions."""
    h = PF.convolution(PF.depthwise_convolution(x, (3, 3), pad=(1, 1), name="d"), 5, (1, 1), stride=(2, 2), name="p")
    h = F.leaky_relu(PF.deconvolution(F.relu6(h), 2, (2, 2), stride=(2, 2), name="u"), 0.2)
    return F.sum(F.average_pooling(h, (2, 2)), axis=(2, 3))


def dense(x: Any) -> Any:
    """Affine layers, one of them beside the others, and arithmetic."""
    h = F.tanh(PF.affine(F.elu(PF.affine(x, 7, name="a1")), 7, name="a2"))
    h = F.concatenate(h, F.sigmoid(PF.affine(h, 2, name="a3")), axis=1)
    return F.mul_scalar(F.pow_scalar(F.add_scalar(PF.prelu(h, name="p"), 0.5), 2.0), 0.1)


def shapes(x: Any) -> Any:
    """Return moved elements, and two layers that read the same."""
    h = F.transpose(F.pad(x, (1, 1, 0, 2), mode="constant"), (0, 2, 3, 1))
    h = F.reshape(F.slice(h, start=(0, 1, 0, 0), stop=(1, 7, 8, 2), step=(1, 1, 2, 1)), (-1, 48))
    return F.log_softmax(F.maximum2(PF.affine(h, 4, name="a"), F.minimum_scalar(PF.affine(h, 4, name="b"), 0.1)))


NETWORKS = {
    lenet: (1, 1, 8, 8),
    residual: (1, 2, 6, 6),
    separable: (1, 3, 6, 6),
    dense: (1, 5),
    shapes: (1, 2, 6, 6),
}


def main(folder: Path) -> None:
    """Write `<name>.protobuf`, parameters included, and `<name>.nnb` of each."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.RandomState(3)
    for make, shape in NETWORKS.items():
        nn.clear_parameters()
        x = nn.Variable(shape)
        y = make(x)
        for name, parameter in nn.get_parameters(grad_only=False).items():
            values = 0.3 * rng.randn(*parameter.shape)
            parameter.d = np.abs(values) + 0.5 if name.endswith("var") else values
        path = folder / f"{make.__name__}.protobuf"
        contents = {
            "networks": [{"name": "net", "batch_size": 1, "names": {"x": x}, "outputs": {"y": y}}],
            "executors": [{"name": "run", "network": "net", "data": ["x"], "output": ["y"]}],
        }
        save(str(path), contents, include_params=True)
        save(str(path.with_suffix(".nnp")), contents)
        command = ["nnabla_cli", "convert", "-b", "1", str(path.with_suffix(".nnp")), str(path.with_suffix(".nnb"))]
        subprocess.run([str(Path(sys.executable).with_name(command[0])), *command[1:]], check=True)
        path.with_suffix(".nnp").unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
