"""Schedules of learning rates and shapes and spreads of initial values."""
import numpy as np

import nnabla as nn
import nnabla.initializer as I
import nnabla.solvers as S
from nnabla.utils import learning_rate_scheduler as L

for name, schedule in {
    "exp": L.ExponentialScheduler(1.0, 0.9, 2), "step": L.StepScheduler(1.0, 0.1, [2, 5]), "cos": L.CosineScheduler(1.0, 8),
    "poly": L.PolynomialScheduler(1.0, 8, 2), "warm": L.LinearWarmupScheduler(L.CosineScheduler(1.0, 8), 3),
    "custom": L.StepScheduler(0.5, 0.5, [1]),
}.items():
    print(name, ["%.5f" % schedule.get_learning_rate(i) for i in range(8)])
print("fans", I.calc_uniform_lim_glorot(3, 5, (3, 3)), I.calc_normal_std_glorot(3, 5), I.calc_normal_std_he_forward(3, 5, (2, 2)), I.calc_normal_std_he_backward(3, 5))
rng = np.random.RandomState(4)
for init in (I.UniformInitializer((-0.1, 0.3), rng), I.NormalInitializer(0.2, rng), I.ConstantInitializer(0.7), I.OrthogonalInitializer(2.0, rng)):
    v = init((3, 4))
    print(type(init).__name__, v.shape, np.round(np.asarray(v, np.float64), 4).tolist())
solver = S.AdamW(0.01, wd=0.1)
