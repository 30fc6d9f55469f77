"""Lines that type checkers must reject, each marked; those without a mark must be accepted."""

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.parameter import get_parameter_or_create

x = nn.Variable((2, 3))
a = nn.NdArray((2, 3))


@PF.parametric_function_api("scale")
def scale(x: nn.Variable, power: int = 1) -> nn.Variable:
    """Multiply by a trained factor."""
    return x * get_parameter_or_create("a", (1,)) ** power


scale(x)
scale(x, name="other")
scale(x, powr=2)  # rejected
scale()  # rejected
F.relu(x)
F.relu()  # rejected
F.relu(x, True, 1, None, 3)  # rejected
F.relu("x")  # rejected
F.mse_loss(x, x)  # rejected
F.convolution(x, x, pads=1)  # rejected
F.softmax(x, axis="last")  # rejected
F.reshape(x)  # rejected
F.max(x, keepdim=True)  # rejected
y1: nn.NdArray = F.tanh(x)  # rejected
y2: nn.Variable = F.tanh(a)  # rejected
y3: nn.Variable = F.max(x, with_index=True)  # rejected
y4: nn.Variable = F.split(x)  # rejected
x + "1"  # rejected
x + None  # rejected
x @ 2  # rejected
x < "a"  # rejected
x["key"]  # rejected
x.sum(axis="rows")  # rejected
x.reshape("2")  # rejected
x.nothing  # rejected
x.data.nothing  # rejected
y5: nn.Variable = x.data + 1  # rejected
x.parent.name  # rejected
nn.Variable("shape")  # rejected
nn.Variable((2,), need_grad="yes")  # rejected
nn.Varable((2,))  # rejected
nn.nothing  # rejected
PF.affine(x)  # rejected
PF.affine(x, 10, bias=False)  # rejected
PF.affine(x, 10, name=3)  # rejected
PF.affine("x", 10)  # rejected
PF.affine(x, "10")  # rejected
PF.convolution(x, 4)  # rejected
PF.dense(x, 10)  # rejected
PF.batch_normalization(x, output_stats=True)  # rejected
y6: nn.Variable = PF.batch_normalization(x, output_stat=True)  # rejected
S.Adam(lr=0.1)  # rejected
S.Adam(alpha="fast")  # rejected
S.SGD()  # rejected
S.Sgd().learn()  # rejected
S.Adam().set_parameters([x])  # rejected
solver = S.Adam()
solver.alpha = "fast"  # rejected
