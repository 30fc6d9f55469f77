"""Find the function whose gradient is NaN."""

import nn_core as nn
from nn_core import F
from nn_core.utils.inspection import NanInfTracer

x = nn.Variable.from_numpy_array([0.0, 1.0], need_grad=True)
loss = F.sum(F.sqrt(x) * x)
tracer = NanInfTracer()
message = ""
try:
    with tracer.trace():
        loss.forward(function_post_hook=tracer.forward_post_hook)
        loss.backward(function_post_hook=tracer.backward_post_hook)
except ValueError as error:
    message = str(error)
assert "backward of PowScalar" in message
