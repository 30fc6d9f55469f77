"""Solvers."""

import nn_core as nn
import nn_core.solvers as S

solvers: list[S.Solver] = [S.Sgd(lr=0.1), S.Momentum(0.1, 0.9), S.AdamW(1e-3, wd=0.01), S.RMSprop(), S.Lion(), S.Lamb()]
for solver in solvers:
    solver.set_parameters({"w": nn.Variable((2,), need_grad=True)})
    solver.clip_grad_by_norm(1.0)
    solver.set_learning_rate(solver.learning_rate() / 2)
