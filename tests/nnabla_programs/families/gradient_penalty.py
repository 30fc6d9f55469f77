"""WGAN with gradient penalty: nn.grad of a convolutional critic inside its loss."""
# tolerance: 2e-3
# In float64 the numbers that differ by more than 1e-4 are those of nn_core.
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(2)
BATCH = 4


def critic(x):
    with nn.parameter_scope("critic"):
        h = F.leaky_relu(PF.convolution(x, 6, (3, 3), pad=(1, 1), stride=(2, 2), name="conv1"), 0.2)
        h = F.leaky_relu(PF.layer_normalization(PF.convolution(h, 8, (3, 3), pad=(1, 1), name="conv2"), name="ln"), 0.2)
        return PF.affine(h, 1, with_bias=False, name="score")


def generator(z):
    with nn.parameter_scope("gen"):
        h = F.relu(PF.affine(z, 4 * 3 * 3, name="fc"))
        h = F.reshape(h, (BATCH, 4, 3, 3))
        return F.tanh(PF.deconvolution(h, 2, (4, 4), pad=(1, 1), stride=(2, 2), name="up"))


real, z, eps = nn.Variable((BATCH, 2, 6, 6)), nn.Variable((BATCH, 5)), nn.Variable((BATCH, 1, 1, 1))
fake = generator(z)
cut = fake.unlinked()
mixed = eps * real + (1.0 - eps) * cut
mixed.need_grad = True
score = critic(mixed)
slopes = nn.grad([score], [mixed])[0]
norms = (F.sum(slopes ** 2.0, axis=[1, 2, 3]) + 1e-12) ** 0.5
penalty = F.mean((norms - 1.0) ** 2.0)
critic_loss = F.mean(critic(cut)) - F.mean(critic(real)) + 10.0 * penalty
gen_loss = -F.mean(critic(fake))
penalty.persistent = True

for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b"):
        p.d = rng.randn(*p.shape) * 0.25
solver_c, solver_g = S.Adam(1e-3, 0.0, 0.9), S.Adam(1e-3, 0.0, 0.9)
with nn.parameter_scope("critic"):
    solver_c.set_parameters(nn.get_parameters())
with nn.parameter_scope("gen"):
    solver_g.set_parameters(nn.get_parameters())
for step in range(4):
    for _ in range(2):
        real.d, z.d, eps.d = rng.randn(*real.shape), rng.randn(*z.shape), rng.rand(*eps.shape)
        fake.forward()
        critic_loss.forward()
        solver_c.zero_grad()
        critic_loss.backward()
        solver_c.update()
    gen_loss.forward()
    solver_g.zero_grad()
    gen_loss.backward()
    solver_g.update()
    print("step", step, "%.5f %.5f %.5f" % (critic_loss.d, penalty.d, gen_loss.d))
with nn.parameter_scope("critic"):
    for name, p in sorted(nn.get_parameters().items()):
        print(name, "%.4f %.4f" % (np.linalg.norm(p.d), np.linalg.norm(p.g)))
