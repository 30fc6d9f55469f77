"""PythonFunction, in static and dynamic graphs, with gradients of gradients."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
from nnabla.function import PythonFunction


class Scale(PythonFunction):
    def __init__(self, ctx, alpha):
        super(Scale, self).__init__(ctx)
        self.alpha = alpha

    @property
    def name(self):
        return self.__class__.__name__

    def min_outputs(self):
        return 2

    def setup_impl(self, inputs, outputs):
        outputs[0].reset_shape(inputs[0].shape, True)
        outputs[1].reset_shape((), True)

    def forward_impl(self, inputs, outputs):
        outputs[0].data.copy_from(F.mul_scalar(inputs[0].data, self.alpha))
        outputs[1].d = inputs[0].d.sum()

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        if not propagate_down[0]:
            return
        g = outputs[0].g * self.alpha + outputs[1].g
        if accum[0]:
            inputs[0].g += g
        else:
            inputs[0].g = g

    def grad_depends_output_data(self, i, o):
        return False

    def grad_depends_input_data(self, i, j):
        return False


def scale(x, alpha=3.0, ctx=None):
    return Scale(ctx or nn.get_current_context(), alpha)(x)


x = nn.Variable((2, 3), need_grad=True)
x.d = np.arange(6).reshape(2, 3)
x.grad.fill(10)
a, b = scale(x)
y = F.sum(a * a) + b
y.forward()
y.backward()
print(a.d.tolist(), b.d, x.g.tolist(), a.parent.inputs[0].shape)
x.grad.zero()
y.forward(clear_no_need_grad=True)
y.backward(clear_buffer=True)
print(x.g.tolist())
with nn.auto_forward():
    a, b = scale(x, 2.0)
    print(a.d.tolist(), float(b.d))
    x.grad.zero()
    (F.sum(a) + b).backward()
    print(x.g.tolist())
