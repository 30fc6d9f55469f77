"""Learning rates, weight decay, clipping, scaling and checking gradients, parameters added and removed."""
import numpy as np

import nnabla as nn
import nnabla.solvers as S


def parameters():
    w = nn.Variable.from_numpy_array(np.array([[1.0, -2.0], [3.0, 0.5]], np.float32), need_grad=True)
    b = nn.Variable.from_numpy_array(np.array([0.25, -0.75], np.float32), need_grad=True)
    w.g = np.array([[0.5, 1.0], [-2.0, 4.0]])
    b.g = np.array([3.0, -1.0])
    return {"w": w, "b": b}


def show(name, p):
    print(name, np.round(p["w"].d, 6).tolist(), np.round(p["b"].d, 6).tolist(), np.round(p["w"].g, 6).tolist(), np.round(p["b"].g, 6).tolist())


p = parameters()
solver = S.Sgd(0.1)
solver.set_parameters(p)
print("names", sorted(solver.get_parameters()), "%.4f" % solver.learning_rate())
solver.update()
show("update", p)
solver.set_learning_rate(0.5)
solver.update()
show("rate", p)
solver.weight_decay(0.1)
show("decay", p)
solver.clip_grad_by_norm(1.5)
show("norm", p)
solver.scale_grad(4.0)
show("scale", p)
print("checks", solver.check_inf_grad(), solver.check_nan_grad(), solver.check_inf_or_nan_grad())
p["w"].g[0, 0] = np.inf
print("inf", solver.check_inf_grad(), solver.check_nan_grad(), solver.check_inf_or_nan_grad())
p["b"].g[0] = np.nan
print("nan", solver.check_inf_grad(), solver.check_nan_grad(), solver.check_inf_or_nan_grad())
solver.zero_grad()
show("zero", p)

p = parameters()
solver = S.Momentum(0.1, 0.9)
solver.set_parameters(p)
solver.update()
solver.remove_parameters(["b"])
print("left", sorted(solver.get_parameters()))
solver.update()
show("only w", p)
q = {"b": p["b"], "c": nn.Variable.from_numpy_array(np.ones(2, np.float32), np.ones(2, np.float32), True)}
solver.set_parameters(q, reset=False, retain_state=True)
solver.update()
print("three", sorted(solver.get_parameters()), solver.get_states()["w"].t, solver.get_states()["c"].t)
show("added", p)
solver.clear_parameters()
print("cleared", sorted(solver.get_parameters()))
solver.set_parameters(q)
solver.set_parameters({"w": p["w"]})
print("replaced", sorted(solver.get_parameters()))
p = parameters()
solver = S.Adam(0.01)
solver.set_parameters(p)
solver.clip_grad_by_norm(0.1)
solver.weight_decay(0.01)
solver.update()
show("together", p)
