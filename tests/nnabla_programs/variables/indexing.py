"""Reading parts of variables: slices, ellipsis, new axes, steps, negative steps, arrays, masks; and gradients."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

x = nn.Variable.from_numpy_array(np.arange(24).reshape(2, 3, 4).astype(np.float32), need_grad=True)


def show(name, y):
    x.grad.zero()
    y.forward()
    F.sum(y * y).forward()
    y.backward(np.ones(y.shape, np.float32) * 2)
    print(name, y.shape, y.d.tolist(), "gradient", float(x.g.sum()), float((x.g * np.arange(24).reshape(2, 3, 4)).sum()))


show("first", x[0])
show("last", x[-1])
show("element", x[1, 2, 3])
show("slice", x[:, 1:3])
show("step", x[:, ::2, 1::2])
show("ellipsis", x[..., 0])
show("middle", x[0, ..., 2])
show("new axis", x[:, None, 1, 2:])
show("negative", x[:, -2:, -3:-1])
show("reversed", x[:, ::-1, 3])
show("reversed part", x[0, 2:0:-1, ::-2])
show("empty start", x[1:2, :1])
show("chain", x[1][2][1:3])

index = nn.Variable.from_numpy_array(np.array([[0, 1, 1], [1, 0, 1]]))
y = x[index]
y.forward()
print("by variable", y.shape, y.d.tolist())
y = x[nn.Variable.from_numpy_array(np.array([[1, 0, 1]]))]
y.forward()
print("by rows", y.shape, float(y.d.sum()))
y = x[[1, 0, 1]]
y.forward()
print("by list", y.shape, float(y.d.sum()))
y = x[np.array([1, 0]), np.array([2, 1])]
y.forward()
print("by arrays", y.shape, y.d.tolist())
mask = nn.Variable.from_numpy_array(x.d > 15)
y = x[mask]
y.forward()
print("by mask", y.d.tolist())
