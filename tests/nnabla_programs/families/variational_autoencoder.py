"""A variational autoencoder: encoder, reparameterization, decoder, evidence bound, Adam."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(0)
BATCH, LATENT = 6, 3


def encode(x):
    with nn.parameter_scope("encoder"):
        h = F.elu(PF.affine(x, 12, name="fc1"))
        h = F.elu(PF.affine(h, 10, name="fc2"))
        return PF.affine(h, LATENT, name="mu"), PF.affine(h, LATENT, name="logvar")


def decode(z):
    with nn.parameter_scope("decoder"):
        h = F.elu(PF.affine(z, 10, name="fc1"))
        return PF.affine(h, 16, name="out")


x = nn.Variable((BATCH, 1, 4, 4))
noise = nn.Variable((BATCH, LATENT))
flat = F.reshape(x, (BATCH, 16))
mu, logvar = encode(flat)
z = mu + F.exp(0.5 * logvar) * noise
logits = decode(z)
reconstruction = F.mean(F.sum(F.sigmoid_cross_entropy(logits, flat), axis=1))
divergence = F.mean(0.5 * F.sum(F.exp(logvar) + F.pow_scalar(mu, 2) - 1 - logvar, axis=1))
reconstruction.persistent = divergence.persistent = True
loss = reconstruction + divergence

for name, p in sorted(nn.get_parameters().items()):
    p.d = rng.randn(*p.shape) * (0.4 if name.endswith("W") else 0.1)
solver = S.Adam(1e-2)
solver.set_parameters(nn.get_parameters())
images = (rng.rand(4, BATCH, 1, 4, 4) > 0.5).astype(np.float32)
for step in range(8):
    x.d = images[step % 4]
    noise.d = rng.randn(*noise.shape)
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.update()
    print("step", step, "%.5f %.5f %.5f" % (loss.d, reconstruction.d, divergence.d))
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.5f %.5f" % (np.linalg.norm(p.d), np.linalg.norm(p.g)))
sample = nn.Variable.from_numpy_array(rng.randn(2, LATENT).astype(np.float32))
y = F.sigmoid(decode(sample))
y.forward()
print("sample", np.round(y.d[0, :6], 5).tolist())
