"""A training loop with monitors, a scheduler of the rate and files of parameters."""
import os

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.monitor import Monitor, MonitorSeries, plot_series
from nnabla.utils.learning_rate_scheduler import CosineScheduler, StepScheduler

rng = np.random.RandomState(0)
data = rng.randn(32, 5).astype(np.float32)
labels = (data.sum(axis=1, keepdims=True) > 0).astype(np.int32)
x, t = nn.Variable((8, 5)), nn.Variable((8, 1))
w = lambda shape: 0.1 * np.cos(np.arange(np.prod(shape))).reshape(shape)
h = F.relu(PF.affine(x, 6, w_init=w, name="one"))
y = PF.affine(h, 2, w_init=w, name="two")
loss, error = F.mean(F.softmax_cross_entropy(y, t)), F.mean(F.top_n_error(y, t))
monitor = Monitor("out")
series = [MonitorSeries(name, monitor, interval=2, verbose=False) for name in ("loss", "error")]
for name, solver, schedule in (
    ("momentum", S.Momentum(0.1, 0.9), StepScheduler(0.1, 0.5, [4, 8])),
    ("adam", S.Adam(), CosineScheduler(0.01, 12)),
    ("nesterov", S.Nesterov(0.05), None),
    ("rmsprop", S.RMSprop(0.01), None),
):
    nn.clear_parameters()
    h = F.relu(PF.affine(x, 6, w_init=w, name="one"))
    y = PF.affine(h, 2, w_init=w, name="two")
    loss, error = F.mean(F.softmax_cross_entropy(y, t)), F.mean(F.top_n_error(y, t))
    solver.set_parameters(nn.get_parameters())
    series = [MonitorSeries(name + kind, monitor, interval=2, verbose=False) for kind in ("loss", "error")]
    for i in range(12):
        x.d, t.d = data[i % 4 * 8:][:8], labels[i % 4 * 8:][:8]
        F.sink(loss, error).forward(clear_no_need_grad=True) if i % 5 == 0 else loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.weight_decay(1e-3)
        if schedule is not None:
            solver.set_learning_rate(schedule.get_learning_rate(i))
        if solver.check_inf_grad() or solver.check_nan_grad() or solver.check_inf_or_nan_grad():
            print("overflow")
        solver.clip_grad_by_norm(1.0)
        solver.update()
        series[0].add(i, loss.d)
    print(name, solver.name, "%.5f" % solver.learning_rate(), "%.5f" % loss.d, sorted(solver.get_parameters()))
    nn.save_parameters("out/%s.h5" % name)
    solver.save_states("out/%s_states.h5" % name)
print(sorted(os.listdir("out")))
lines = open("out/adamloss.series.txt").read().split("\n")
print(len(lines), lines[0].split()[0], lines[-2].split()[0])
nn.clear_parameters()
nn.load_parameters("out/adam.h5")
print([(k, v.shape, v.need_grad) for k, v in nn.get_parameters().items()])
states = S.Adam()
states.set_parameters(nn.get_parameters())
states.load_states("out/adam_states.h5")
print(sorted((k, s.t, sorted(s.pstate)) for k, s in states.get_states().items()))
