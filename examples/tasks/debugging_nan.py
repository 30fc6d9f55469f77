"""Find the function whose gradient is NaN."""

import nn_core as nn
from nn_core import F
from nn_core.utils.inspection import NanInfTracer

x = nn.Variable.from_numpy_array([0.0, 1.0], need_grad=True)
loss = F.sum(F.sqrt(x) * x)
message = ""
try:
    with NanInfTracer().trace():
        loss.forward()
        loss.backward()
except ValueError as error:
    message = str(error)
assert "backward of PowScalar" in message
