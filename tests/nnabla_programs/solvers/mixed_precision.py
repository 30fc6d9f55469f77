# tolerance: 5e-3
"""Loss scaling by hand and by the updater, in float32 on the CPU."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.experimental.mixed_precision_training import DynamicLossScalingUpdater
from nnabla.ext_utils import get_extension_context

ctx = get_extension_context("cpu", type_config="float")
nn.set_default_context(ctx)
print(nn.get_current_context().backend)
rng = np.random.RandomState(1)
x, t = nn.Variable((4, 3)), nn.Variable((4, 2))
w = lambda shape: 0.3 * np.sin(np.arange(np.prod(shape)) + 1).reshape(shape)
loss = F.mean(F.squared_error(PF.affine(x, 2, w_init=w), t))
solver = S.Adam(0.01)
solver.set_parameters(nn.get_parameters())
scale = 8
for i in range(3):
    x.d, t.d = rng.randn(4, 3), rng.randn(4, 2)
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(scale, clear_buffer=True)
    if solver.check_inf_or_nan_grad():
        scale /= 2
    else:
        solver.scale_grad(1.0 / scale)
        solver.update()
    print("%.6f" % loss.d, scale)


def feeder():
    x.d, t.d = rng.randn(4, 3), rng.randn(4, 2)


updater = DynamicLossScalingUpdater(solver, loss, data_feeder=feeder, scale=16.0, scaling_factor=2.0, N=2, clear_buffer=True,
                                    accum_grad=2, weight_decay=1e-4)
for i in range(4):
    updater.update()
    print("%.6f" % float(loss.d), np.isfinite(nn.get_parameters()["affine/W"].d).all())
