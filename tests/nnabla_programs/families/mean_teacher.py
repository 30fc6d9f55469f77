"""Few labels: a teacher that is the average of the student, consistency between noisy views, a ramp."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(24)
B = 8


def network(x, test=False):
    h = F.tanh(PF.batch_normalization(PF.affine(x, 10, with_bias=False, name="fc1"), batch_stat=not test, decay_rate=0.6, name="bn"))
    return PF.affine(h, 2, name="fc2")


def moons(n):
    t, kind = rng.rand(n) * np.pi, rng.randint(0, 2, n)
    points = np.stack([np.cos(t) * (1 - 2 * kind) + kind, np.sin(t) * (1 - 2 * kind) + 0.5 * kind], axis=1)
    return points + rng.randn(n, 2) * 0.05, kind


x, t, u1, u2 = nn.Variable((4, 2)), nn.Variable((4, 1)), nn.Variable((B, 2)), nn.Variable((B, 2))
with nn.parameter_scope("student"):
    supervised = F.mean(F.softmax_cross_entropy(network(x), t))
    of_student = network(u1)
with nn.parameter_scope("teacher"):
    of_teacher = network(u2)
with nn.parameter_scope("teacher"):
    judged = network(u1, test=True)
for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b") and name.startswith("student"):
        p.d = rng.randn(*p.shape) * 0.7
with nn.parameter_scope("student"):
    student = nn.get_parameters()
with nn.parameter_scope("teacher"):
    teacher = nn.get_parameters()
for name in student:
    teacher[name].data.copy_from(student[name].data)
    teacher[name].need_grad = False
consistency = F.mean((F.softmax(of_student) - F.softmax(of_teacher.get_unlinked_variable(need_grad=False))) ** 2)
ramp = nn.Variable((1,))
loss = supervised + F.sum(ramp) * consistency
consistency.persistent = True
solver = S.AMSGRAD(1e-2)
solver.set_parameters(student)
for step in range(8):
    x.d, kinds = moons(4)
    t.d = kinds[:, None]
    points, _ = moons(B)
    u1.d, u2.d = points + rng.randn(B, 2) * 0.1, points + rng.randn(B, 2) * 0.1
    ramp.d = np.exp(-5 * (1 - min(step / 5, 1)) ** 2)
    of_teacher.forward()
    loss.forward()
    solver.zero_grad()
    loss.backward()
    solver.update()
    for name, p in student.items():
        teacher[name].d = 0.8 * teacher[name].d + 0.2 * p.d
    print("step", step, "%.5f %.6f" % (loss.d, consistency.d))
judged.forward()
print("teacher", np.round(judged.d[0], 4).tolist())
for name in sorted(student):
    print(name, "%.5f %.5f" % (np.linalg.norm(student[name].d), np.linalg.norm(teacher[name].d)))
