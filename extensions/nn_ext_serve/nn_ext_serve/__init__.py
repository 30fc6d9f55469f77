"""Networks behind HTTP: a pool of compiled graphs, a queue that makes batches of requests, and an ASGI application."""

from nn_ext_serve.application import Application as Application
from nn_ext_serve.batching import Batcher as Batcher
from nn_ext_serve.batching import DeadlineError as DeadlineError
from nn_ext_serve.batching import OverloadError as OverloadError
from nn_ext_serve.loading import NetworkFile as NetworkFile
from nn_ext_serve.predictor import Graph as Graph
from nn_ext_serve.predictor import NonFiniteError as NonFiniteError
from nn_ext_serve.predictor import Predictor as Predictor
from nn_ext_serve.tensors import TensorSpec as TensorSpec
