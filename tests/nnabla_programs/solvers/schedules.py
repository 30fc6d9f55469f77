"""Learning-rate schedules, and a training that uses one."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.solvers as S
import nnabla.utils.learning_rate_scheduler as lrs

schedules = [
    lrs.ExponentialScheduler(1.0, 0.9),
    lrs.ExponentialScheduler(1.0, 0.5, iter_interval=4),
    lrs.CosineScheduler(0.4, 20),
    lrs.PolynomialScheduler(1.0, 20, 2.0),
    lrs.StepScheduler(1.0, 0.1, [3, 9, 15]),
    lrs.LinearWarmupScheduler(lrs.CosineScheduler(0.4, 20), 5),
    lrs.LinearWarmupScheduler(lrs.StepScheduler(1.0, 0.5, [10]), 4),
]
for schedule in schedules:
    print(type(schedule).__name__, " ".join("%.6f" % schedule.get_learning_rate(i) for i in (0, 1, 2, 3, 4, 5, 9, 10, 15, 19)))


class Halving(lrs.BaseLearningRateScheduler):
    def get_learning_rate(self, iter):
        return 0.4 / (1 + iter)


w = nn.Variable.from_numpy_array(np.array([2.0, -3.0], np.float32), need_grad=True)
loss = F.sum((w - 1) ** 2)
for schedule in (Halving(), schedules[2]):
    w.d = np.array([2.0, -3.0])
    solver = S.Nesterov(1.0, 0.5)
    solver.set_parameters({"w": w})
    for i in range(6):
        solver.set_learning_rate(schedule.get_learning_rate(i))
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.update()
        print(type(schedule).__name__, i, "%.6f" % solver.learning_rate(), "%.6f" % loss.d, np.round(w.d, 6).tolist())
