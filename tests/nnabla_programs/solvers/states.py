"""Saving the state of a solver and going on from it."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.solvers as S


def start():
    w = nn.Variable.from_numpy_array(np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32), need_grad=True)
    b = nn.Variable.from_numpy_array(np.array([0.1, 0.2, 0.3], np.float32), need_grad=True)
    x = nn.Variable.from_numpy_array(np.sin(np.arange(8)).reshape(4, 2).astype(np.float32))
    return w, b, F.mean((F.affine(x, w, b) - 0.3) ** 2)


def steps(solver, loss, n):
    values = []
    for _ in range(n):
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        values.append("%.6f" % loss.d)
    return values


for name in ("Momentum", "Adam", "AdaBelief", "RMSpropGraves", "Adadelta", "Lamb"):
    w, b, loss = start()
    solver = getattr(S, name)()
    solver.set_parameters({"w": w, "b": b})
    print(name, steps(solver, loss, 3))
    solver.save_states("states.h5")
    kept = w.d.copy(), b.d.copy()
    ahead = steps(solver, loss, 3)
    w.d, b.d = kept
    other = getattr(S, name)()
    other.set_parameters({"w": w, "b": b})
    other.load_states("states.h5")
    again = steps(other, loss, 3)
    print("   ", ahead == again, again)
    states = other.get_states()
    print("   ", {k: s.t for k, s in sorted(states.items())}, sorted(states["w"].pstate), "%.6f" % sum(np.abs(v.data if isinstance(v, nn.NdArray) else v.d).sum() for v in states["w"].pstate.values()))
    w.d, b.d = kept
    third = getattr(S, name)()
    third.set_parameters({"w": w, "b": b})
    third.set_states(solver.get_states())
    print("   ", third.get_states()["b"].t)
