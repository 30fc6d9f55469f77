"""The results of OpenCV's reader of Caffe beside ours: ``python -m extensions.nn_ext_caffe.tests.beside_opencv``.

OpenCV before version 5 must be installed; it is no dependency.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from extensions.nn_ext_caffe.tests.nets import LAYERS, drawn, layer, text_of, written
from nn_ext_caffe import load


def difference(case: str) -> float:
    """Return the largest difference of a layer's result, relative to the largest number."""
    import cv2

    kind, settings, shape, weights = LAYERS[case]
    with tempfile.TemporaryDirectory() as folder:
        paths = written(Path(folder), text_of(layer(kind, settings), shape), {"one": weights})
        judge = cv2.dnn.readNetFromCaffe(*map(str, paths))
        network = load(*paths)
    x = drawn(*shape)
    judge.setInput(x, "x")
    wanted = judge.forward()
    network.inputs["x"].d = x
    network.outputs["y"].forward()
    found = network.outputs["y"].d
    return float(np.abs(found - wanted.reshape(found.shape)).max() / np.abs(wanted).max())


def main() -> int:
    """Print the differences; return 1 where one is large."""
    found = {case: difference(case) for case in LAYERS}
    for case, value in found.items():
        print(f"{case:20} {value:.1e}")
    return int(max(found.values()) > 1e-5)


if __name__ == "__main__":
    sys.exit(main())
