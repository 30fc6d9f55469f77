"""TensorBoard logs of nn_core's trainer."""

from nn_ext_tensorboard.extension import TensorBoard as TensorBoard

__all__ = ["TensorBoard"]
