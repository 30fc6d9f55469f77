"""Networks of Caffe as graphs of nn_core."""

from nn_ext_caffe.networks import Network as Network
from nn_ext_caffe.networks import load as load

__all__ = ["Network", "load"]
