"""Two views of each image pulled together among all others of the batch, and a linear probe on frozen features."""
# tolerance: 1e-3
# In float64 the numbers that differ by more than 1e-4 are those of nn_core.
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(23)
B, D = 6, 8


def views(images):
    turned = np.where(rng.rand(B, 1, 1, 1) > 0.5, images[..., ::-1], images)
    return turned * rng.uniform(0.8, 1.2, (B, 1, 1, 1)) + rng.randn(*images.shape) * 0.05


def backbone(x):
    with nn.parameter_scope("backbone"):
        h = F.relu(PF.group_normalization(PF.convolution(x, 6, (3, 3), pad=(1, 1), name="c1"), 3, name="gn1"))
        h = F.max_pooling(h, (2, 2))
        h = F.relu(PF.group_normalization(PF.convolution(h, 8, (3, 3), pad=(1, 1), name="c2"), 2, name="gn2"))
        return F.global_average_pooling(h)


def project(h):
    with nn.parameter_scope("projector"):
        return F.norm_normalization(PF.affine(F.relu(PF.affine(h, 8, name="fc1")), D, name="fc2"), axes=1)


a, b = nn.Variable((B, 1, 6, 6)), nn.Variable((B, 1, 6, 6))
z = F.concatenate(project(backbone(a)), project(backbone(b)), axis=0)
similar = F.affine(z, F.transpose(z, (1, 0))) / 0.5
own = nn.Variable.from_numpy_array(np.eye(2 * B, dtype=np.float32) * -1e4)
partner = nn.Variable.from_numpy_array(((np.arange(2 * B) + B) % (2 * B)).reshape(-1, 1))
loss = F.mean(F.softmax_cross_entropy(similar + own, partner))
for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b"):
        p.d = rng.randn(*p.shape) * 0.4
solver = S.Lars(lr=0.5, momentum=0.9, coefficient=0.02)
solver.set_parameters(nn.get_parameters())
shapes = rng.rand(3, 1, 6, 6)
for step in range(6):
    kinds = rng.randint(0, 3, B)
    a.d, b.d = views(shapes[kinds]), views(shapes[kinds])
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.weight_decay(1e-4)
    solver.update()
    print("step", step, "%.5f" % loss.d)
frozen = backbone(a).get_unlinked_variable(need_grad=False)
features = backbone(a)
frozen = features.unlinked()
t = nn.Variable((B, 1))
with nn.parameter_scope("probe"):
    probe = F.mean(F.softmax_cross_entropy(PF.affine(frozen, 3), t))
    head = S.Sgd(0.5)
    for name, p in sorted(nn.get_parameters().items()):
        p.d = rng.randn(*p.shape) * 0.1
    head.set_parameters(nn.get_parameters())
for step in range(4):
    kinds = rng.randint(0, 3, B)
    a.d, t.d = views(shapes[kinds]), kinds[:, None]
    features.forward()
    probe.forward()
    head.zero_grad()
    probe.backward()
    head.update()
    print("probe", step, "%.5f" % probe.d)
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.5f %.5f" % (np.linalg.norm(p.d), np.linalg.norm(p.g)))
