"""Operators that find objects in images."""

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Node, from_numbers
from nn_ext_onnx.importing.values import Array


@from_numbers("NonMaxSuppression")
def _non_max_suppression(node: Node) -> list[Array]:
    boxes, scores = (nn.Variable.from_numpy_array(node.array(index)) for index in (0, 1))
    least = np.float32(node.number(4, -np.inf))
    with nn.auto_forward():
        picked = F.onnx_non_max_suppression(
            boxes,
            scores,
            center_point_box=node.attr("center_point_box", 0),
            max_output_boxes_per_class=int(node.number(2, 0)),
            iou_threshold=node.number(3, 0.0),
            score_threshold=float(np.nextafter(least, np.float32(np.inf))),  # the operator picks higher scores, not equal ones
        )
    return [np.array(picked.d).astype(np.int64)]
