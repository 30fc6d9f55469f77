"""Contexts, scopes of contexts, extensions by name, available devices."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
from nnabla.ext_utils import get_extension_context, list_extensions
from nnabla.logger import logger

ctx = get_extension_context("cpu")
print("cpu", ctx.backend)
print("double", get_extension_context("cpu", device_id="0", type_config="float").backend)
print("installed", "cpu" in list_extensions())
before = nn.get_current_context()
with nn.context_scope(nn.Context(["cpu:float"], "CpuCachedArray", "0")):
    current = nn.get_current_context()
    print("scope", current.backend, current.array_class, current.device_id)
    y = F.exp(nn.Variable.from_numpy_array(np.zeros(2, np.float32)))
    print("function", y.parent.context.backend)
print("restored", nn.get_current_context().backend == before.backend)
nn.set_default_context(ctx)
print("default", nn.get_current_context().backend)
x = nn.Variable.from_numpy_array(np.array([1.0, 4.0], np.float32))
z = F.pow_scalar(x, 0.5)
z.forward()
print("value", z.d.tolist())


@nn.auto_forward()
def compute(v):
    return F.sum(v * 2)


try:
    print("decorated", float(compute(x).d))
except TypeError:
    print("not a decorator")
logger.info("a message for the log")
logger.debug("hidden")
print("logger", logger.name != "", hasattr(logger, "warning"))
try:
    get_extension_context("no_such_extension")
    print("no error")
except Exception as error:
    print("refused", isinstance(error, Exception))
print("equal", nn.Context(["cpu:float"]).backend == nn.Context(["cpu:float"]).backend)
