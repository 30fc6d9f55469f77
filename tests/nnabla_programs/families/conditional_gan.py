"""A GAN with labels: unlinked samples, two solvers, two losses that share one generator."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(1)
BATCH, CLASSES = 8, 3


def generator(z, label):
    with nn.parameter_scope("gen"):
        h = F.concatenate(z, PF.embed(label, CLASSES, 4, name="label"), axis=1)
        h = F.relu(PF.batch_normalization(PF.affine(h, 16, name="fc1"), name="bn1"))
        h = F.reshape(PF.affine(h, 32, name="fc2"), (BATCH, 8, 2, 2))
        h = F.relu(PF.deconvolution(h, 6, (4, 4), pad=(1, 1), stride=(2, 2), name="up"))
        return F.tanh(PF.convolution(h, 1, (3, 3), pad=(1, 1), name="out"))


def discriminator(x, label):
    with nn.parameter_scope("dis"):
        h = F.leaky_relu(PF.convolution(x, 6, (3, 3), pad=(1, 1), stride=(2, 2), name="conv1"), 0.2)
        h = F.leaky_relu(PF.convolution(h, 8, (2, 2), name="conv2"), 0.2)
        h = F.reshape(h, (BATCH, -1))
        joined = F.concatenate(h, F.one_hot(label, (CLASSES,)), axis=1)
        return PF.affine(joined, 1, name="fc")


z, label = nn.Variable((BATCH, 5)), nn.Variable((BATCH, 1))
real, real_label = nn.Variable((BATCH, 1, 4, 4)), nn.Variable((BATCH, 1))
fake = generator(z, F.reshape(label, (BATCH,)))
fake.persistent = True
score = discriminator(fake, label)
gen_loss = F.mean(F.sigmoid_cross_entropy(score, F.constant(1, score.shape)))
cut = fake.get_unlinked_variable(need_grad=True)
score_fake, score_real = discriminator(cut, label), discriminator(real, real_label)
dis_loss = F.mean(F.sigmoid_cross_entropy(score_fake, F.constant(0, score.shape))
                  + F.sigmoid_cross_entropy(score_real, F.constant(1, score.shape)))

for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b"):
        p.d = rng.randn(*p.shape) * 0.3
gen_solver, dis_solver = S.Adam(2e-3, beta1=0.5), S.Adam(2e-3, beta1=0.5)
with nn.parameter_scope("gen"):
    gen_solver.set_parameters(nn.get_parameters())
with nn.parameter_scope("dis"):
    dis_solver.set_parameters(nn.get_parameters())

for step in range(5):
    real.d, real_label.d = np.tanh(rng.randn(*real.shape)), rng.randint(0, CLASSES, real_label.shape)
    z.d, label.d = rng.randn(*z.shape), rng.randint(0, CLASSES, label.shape)
    fake.forward(clear_no_need_grad=True)
    dis_loss.forward(clear_no_need_grad=True)
    dis_solver.zero_grad()
    dis_loss.backward(clear_buffer=True)
    dis_solver.weight_decay(1e-4)
    dis_solver.update()
    gen_loss.forward(clear_no_need_grad=True)
    gen_solver.zero_grad()
    gen_loss.backward(clear_buffer=True)
    gen_solver.update()
    print("step", step, "%.5f %.5f" % (gen_loss.d, dis_loss.d))
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.4f" % np.linalg.norm(p.d))
