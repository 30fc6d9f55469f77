"""Five steps of every solver from the same parameters and gradients, with default and with other settings."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.solvers as S

SETTINGS = [
    ("Sgd", dict(lr=0.1)), ("SgdW", dict(lr=0.1)), ("Momentum", dict(lr=0.1, momentum=0.8)), ("Nesterov", dict(lr=0.05)),
    ("Adam", dict(alpha=0.05)), ("Adam", dict(alpha=0.1, beta1=0.5, beta2=0.9, eps=1e-4)), ("AdamW", dict(alpha=0.05, wd=0.01)),
    ("Adamax", dict(alpha=0.05)), ("AMSGRAD", dict(alpha=0.05)), ("AMSGRAD", dict(alpha=0.05, bias_correction=True)),
    ("AdaBound", dict(alpha=0.05, final_lr=0.2)), ("AMSBound", dict(alpha=0.05)), ("Adagrad", dict(lr=0.1)), ("Adadelta", dict(lr=1.0)),
    ("RMSprop", dict(lr=0.02)), ("RMSpropGraves", dict(lr=0.02)), ("AdaBelief", dict(alpha=0.05)),
    ("AdaBelief", dict(alpha=0.05, rectify=True)), ("Lamb", dict(eta=0.05)), ("Lars", dict(lr=0.5)), ("Lion", dict(lr=0.01)),
]
target = np.cos(np.arange(12)).reshape(3, 4)
for name, settings in SETTINGS:
    w = nn.Variable.from_numpy_array(np.sin(np.arange(12)).reshape(3, 4).astype(np.float32), need_grad=True)
    b = nn.Variable.from_numpy_array(np.array([[0.5, -0.5, 1.0, 0.25]], np.float32), need_grad=True)
    loss = F.sum((w * b - nn.Variable.from_numpy_array(target.astype(np.float32))) ** 2)
    solver = getattr(S, name)(**settings)
    solver.set_parameters({"w": w, "b": b})
    values = []
    for step in range(5):
        solver.zero_grad()
        loss.forward()
        loss.backward()
        solver.update()
        values.append("%.5f" % loss.d)
    print(solver.name, sorted(settings), " ".join(values), "%.5f" % solver.learning_rate())
    states = solver.get_states()
    print("   ", sorted(states), states["w"].t, sorted(states["w"].pstate), "%.5f %.5f" % (w.d.sum(), b.d.sum()))
