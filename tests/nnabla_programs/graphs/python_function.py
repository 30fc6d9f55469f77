"""Functions written in Python: forward, backward, settings, several outputs, accumulation."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
from nnabla.function import PythonFunction


class Cube(PythonFunction):
    def __init__(self, ctx=None, scale=1.0):
        super(Cube, self).__init__(ctx)
        self.scale = scale

    @property
    def name(self):
        return self.__class__.__name__

    def min_outputs(self):
        return 1

    def grad_depends_output_data(self, i, o):
        return False

    def grad_depends_input_data(self, i, j):
        return True

    def setup_impl(self, inputs, outputs):
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs):
        outputs[0].data.copy_from(self.scale * inputs[0].data ** 3)

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        if not propagate_down[0]:
            return
        g = outputs[0].grad * (3 * self.scale) * inputs[0].data ** 2
        if accum[0]:
            g = inputs[0].grad + g
        inputs[0].grad.copy_from(g)


class SinCos(PythonFunction):
    @property
    def name(self):
        return "SinCos"

    def min_outputs(self):
        return 2

    def grad_depends_output_data(self, i, o):
        return False

    def grad_depends_input_data(self, i, j):
        return True

    def setup_impl(self, inputs, outputs):
        for output in outputs:
            output.reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs):
        outputs[0].d = np.sin(inputs[0].d)
        outputs[1].d = np.cos(inputs[0].d)

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        g = outputs[0].g * np.cos(inputs[0].d) - outputs[1].g * np.sin(inputs[0].d)
        inputs[0].g = inputs[0].g + g if accum[0] else g


x = nn.Variable.from_numpy_array(np.array([1.0, -2.0, 0.5], np.float32), need_grad=True)
y = Cube(scale=0.5)(x)
print("shape", y.shape)
loss = F.sum(y * 2 + x)
loss.forward()
x.grad.zero()
loss.backward()
print("cube", y.d.tolist(), "%.5f" % loss.d, x.g.tolist())
s, c = SinCos()(x)
loss = F.sum(s * 2 + c * 3)
loss.forward(clear_no_need_grad=True)
x.grad.zero()
loss.backward(clear_buffer=True)
print("sincos %.6f" % loss.d, np.round(x.g, 6).tolist())
with nn.auto_forward():
    z = Cube()(Cube()(x))
    print("auto", z.d.tolist())
x.g = 1
z.backward()
print("accumulated", np.round(x.g, 4).tolist())
