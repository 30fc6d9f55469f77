"""An autoencoder with a codebook: nearest entries, straight-through gradients, commitment, use of the entries."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.initializer as I
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(33)
B, SIZE, CODES, D = 3, 8, 6, 4


def encoder(x):
    with nn.parameter_scope("encoder"):
        h = F.relu(PF.convolution(x, 6, (4, 4), pad=(1, 1), stride=(2, 2), name="c1"))
        return PF.convolution(h, D, (3, 3), pad=(1, 1), name="c2")


def quantize(h):
    book = nn.parameter.get_parameter_or_create("codebook", (CODES, D), I.UniformInitializer((-0.5, 0.5)))
    flat = F.reshape(F.transpose(h, (0, 2, 3, 1)), (-1, D))
    far = F.sum(flat ** 2, axis=1, keepdims=True) + F.reshape(F.sum(book ** 2, axis=1), (1, CODES))
    far = far - 2 * F.affine(flat, F.transpose(book, (1, 0)))
    index = F.min(far, axis=1, only_index=True)
    index.need_grad = False
    index.persistent = True
    chosen = F.embed(index, book)
    return F.transpose(F.reshape(chosen, (B, SIZE // 2, SIZE // 2, D)), (0, 3, 1, 2)), index


def decoder(z):
    with nn.parameter_scope("decoder"):
        h = F.relu(PF.convolution(z, 6, (3, 3), pad=(1, 1), name="c1"))
        return F.sigmoid(PF.deconvolution(h, 1, (4, 4), pad=(1, 1), stride=(2, 2), name="up"))


x = nn.Variable((B, 1, SIZE, SIZE))
h = encoder(x)
chosen, index = quantize(h)
gap = chosen - h
straight, held, wanted = nn.Variable(h.shape), nn.Variable(h.shape), nn.Variable(h.shape)
made = decoder(h + straight)
restored = F.mean(F.binary_cross_entropy(made, x))
book_loss = F.mean(F.squared_error(chosen, wanted))
commitment = F.mean(F.squared_error(h, held))
restored.persistent = book_loss.persistent = commitment.persistent = True
loss = restored + book_loss + 0.25 * commitment
for name, p in sorted(nn.get_parameters().items()):
    p.d = rng.randn(*p.shape) * 0.4
solver = S.Adam(1e-2)
solver.set_parameters(nn.get_parameters())
for step in range(8):
    images = np.zeros(x.shape)
    for i, (kind, at) in enumerate(zip(rng.randint(0, 2, B), rng.randint(1, SIZE - 2, B))):
        images[(i, 0, slice(at, at + 2)) if kind else (i, 0, slice(None), slice(at, at + 2))] = 1
    x.d = images
    nn.forward_all([gap, chosen, h])
    straight.d, held.d, wanted.d = gap.d, chosen.d, h.d
    loss.forward()
    solver.zero_grad()
    loss.backward()
    solver.update()
    print("step", step, "%.5f %.5f %.5f" % (restored.d, book_loss.d, commitment.d), np.bincount(index.d.astype(int).ravel(), minlength=CODES).tolist())
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.4f %.4f" % (np.linalg.norm(p.d), np.linalg.norm(p.g)))
