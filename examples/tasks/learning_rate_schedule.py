"""Warm the learning rate up, then let it fall along a cosine."""

from nn_core import PF, F, S
from nn_core.utils.learning_rate_scheduler import CosineScheduler, LinearWarmupScheduler

x = F.randn(shape=(8, 3))
loss = F.mean(F.squared_error(PF.affine(x, 1), F.sum(x, axis=1, keepdims=True)))
solver = S.Sgd(0.1)
schedule = LinearWarmupScheduler(CosineScheduler(0.1, max_iter=90), warmup_iter=10)
for iteration in range(100):
    solver.set_learning_rate(schedule.get_learning_rate(iteration))
    solver.minimize(loss)
assert loss.item() < 0.1
