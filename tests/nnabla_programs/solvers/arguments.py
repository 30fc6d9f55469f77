"""Solvers and schedules, argument by argument: each setting by itself, by position, with weight decay and clipping."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.solvers as S
import nnabla.utils.learning_rate_scheduler as lrs

ROWS = {
    "Sgd": [dict(lr=0.0), dict(lr=0.3)],
    "SgdW": [dict(lr=0.1, momentum=0.5), dict(lr=0.1, wd=0.1), dict(lr=0.1, momentum=0.0, wd=0.0)],
    "Momentum": [dict(lr=0.1, momentum=0.0), dict(lr=0.1, momentum=1.0)],
    "Nesterov": [dict(lr=0.1, momentum=0.0), dict(lr=0.1, momentum=0.99)],
    "Adam": [dict(alpha=0.1, beta1=0.0), dict(alpha=0.1, beta2=0.0), dict(alpha=0.1, eps=1.0), dict(alpha=0.1, eps=0.0)],
    "AdamW": [dict(alpha=0.1, beta1=0.5), dict(alpha=0.1, beta2=0.5), dict(alpha=0.1, eps=1.0), dict(alpha=0.1, wd=0.3)],
    "Adamax": [dict(alpha=0.1, beta1=0.5), dict(alpha=0.1, beta2=0.5), dict(alpha=0.1, eps=1.0)],
    "AMSGRAD": [dict(alpha=0.1, beta1=0.5), dict(alpha=0.1, beta2=0.5), dict(alpha=0.1, eps=1.0), dict(alpha=0.1, bias_correction=True)],
    "AdaBound": [dict(alpha=0.1, beta1=0.5), dict(alpha=0.1, eps=1.0), dict(alpha=0.1, final_lr=1.0), dict(alpha=0.1, gamma=0.5)],
    "AMSBound": [dict(alpha=0.1, beta1=0.5), dict(alpha=0.1, eps=1.0), dict(alpha=0.1, final_lr=1.0), dict(alpha=0.1, bias_correction=True)],
    "Adagrad": [dict(lr=0.1, eps=1.0), dict(lr=1.0)],
    "Adadelta": [dict(lr=0.5, decay=0.5), dict(lr=1.0, eps=0.1)],
    "RMSprop": [dict(lr=0.1, decay=0.5), dict(lr=0.1, eps=1.0)],
    "RMSpropGraves": [dict(lr=0.1, decay=0.5), dict(lr=0.1, momentum=0.0), dict(lr=0.1, momentum=0.5), dict(lr=0.1, eps=1.0)],
    "AdaBelief": [
        dict(alpha=0.1, beta1=0.5), dict(alpha=0.1, eps=0.1), dict(alpha=0.1, wd=0.1), dict(alpha=0.1, wd=0.1, weight_decouple=True),
        dict(alpha=0.1, wd=0.1, weight_decouple=True, fixed_decay=True), dict(alpha=0.1, amsgrad=True),
        dict(alpha=0.1, rectify=True), dict(alpha=0.1, amsgrad=True, rectify=True),
    ],
    "Lamb": [dict(eta=0.1, beta1=0.5), dict(eta=0.1, gamma_l=0.5), dict(eta=0.1, gamma_u=0.5), dict(eta=0.1, bias_correction=True)],
    "Lars": [dict(lr=0.5, momentum=0.0), dict(lr=0.5, coefficient=0.1), dict(lr=0.5, eps=1.0)],
    "Lion": [dict(lr=0.01, beta1=0.5), dict(lr=0.01, beta2=0.5)],
}
target = nn.Variable.from_numpy_array(np.cos(np.arange(6)).reshape(2, 3).astype(np.float32))


def trial(label, solver, decay=None, clip=None):
    w = nn.Variable.from_numpy_array(np.sin(np.arange(6)).reshape(2, 3).astype(np.float32), need_grad=True)
    loss = F.sum((w - target) ** 2)
    solver.set_parameters({"w": w})
    for _ in range(3):
        loss.forward()
        solver.zero_grad()
        loss.backward()
        if decay is not None:
            solver.weight_decay(decay)
        if clip is not None:
            solver.clip_grad_by_norm(clip)
        solver.update()
    print(label, "%.5f %.5f %.5f" % (w.d.sum(), np.abs(w.d).sum(), solver.learning_rate()))


for name, rows in ROWS.items():
    make = getattr(S, name)
    trial(name, make())
    for settings in rows:
        trial(name + " " + str(sorted(settings.items())), make(**settings))
    trial(name + " decay", make(0.1), decay=0.2)
    trial(name + " by position", make(0.1, 0.3) if name not in ("Sgd", "Adagrad") else make(0.1))
    if name != "AMSBound":
        trial(name + " clip", make(0.1), clip=0.5)
    try:
        make(nothing=1)
    except TypeError:
        print(name, "refuses")

SCHEDULES = {
    "exponential": lambda: lrs.ExponentialScheduler(0.5, gamma=0.3),
    "exponential, interval": lambda: lrs.ExponentialScheduler(0.5, 0.3, 3),
    "steps": lambda: lrs.StepScheduler(0.5, gamma=0.5),
    "steps, out of order": lambda: lrs.StepScheduler(0.5, 0.5, [4, 2]),
    "steps, twice": lambda: lrs.StepScheduler(0.5, 0.5, [2, 2]),
    "polynomial": lambda: lrs.PolynomialScheduler(0.5, 10, power=0.5),
    "polynomial of power 0": lambda: lrs.PolynomialScheduler(0.5, 10, power=0),
    "cosine": lambda: lrs.CosineScheduler(0.5, 10),
    "no warmup": lambda: lrs.LinearWarmupScheduler(lrs.CosineScheduler(0.5, 10), 0),
    "warmup": lambda: lrs.LinearWarmupScheduler(scheduler=lrs.PolynomialScheduler(0.5, 10), warmup_iter=4),
    "warmup of a warmup": lambda: lrs.LinearWarmupScheduler(lrs.LinearWarmupScheduler(lrs.PolynomialScheduler(0.5, 10), 4), 2),
}
for name, make in SCHEDULES.items():
    try:
        print(name, " ".join("%.6f" % make().get_learning_rate(i) for i in (0, 1, 2, 3, 5, 7, 8, 9)))
    except Exception:
        print(name, "refuses")
