"""Diffusion: noise by a cosine schedule, a network that is told the time, sampling step by step, averaged parameters."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(32)
B, SIZE, T, D = 4, 8, 6, 8
kept = np.cos((np.arange(T + 1) / T + 0.1) / 1.1 * np.pi / 2) ** 2
kept = kept / kept[0]
betas = np.clip(1 - kept[1:] / kept[:-1], 0, 0.95)
kept = np.cumprod(1 - betas)


def embedding(t):
    rates = np.exp(-np.log(100.0) * np.arange(D // 2) / (D // 2)).astype(np.float32)
    angles = F.reshape(t, (B, 1)) * nn.Variable.from_numpy_array(rates[None])
    return PF.affine(F.swish(PF.affine(F.concatenate(F.sin(angles), F.cos(angles), axis=1), D, name="t1")), D, name="t2")


def block(h, time, maps, name):
    with nn.parameter_scope(name):
        y = PF.convolution(F.swish(PF.group_normalization(h, 2, name="gn1")), maps, (3, 3), pad=(1, 1), name="c1")
        scale_shift = F.reshape(PF.affine(F.swish(time), 2 * maps, name="time"), (B, 2 * maps, 1, 1))
        scale, shift = F.split(F.reshape(scale_shift, (B, 2, maps, 1, 1)), axis=1)
        y = PF.group_normalization(y, 2, name="gn2") * (scale + 1) + shift
        y = PF.convolution(F.swish(y), maps, (3, 3), pad=(1, 1), name="c2")
        if h.shape[1] != maps:
            h = PF.convolution(h, maps, (1, 1), name="skip")
        return h + y


def network(x, t):
    time = embedding(t)
    a = PF.convolution(x, 4, (3, 3), pad=(1, 1), name="in")
    a = block(a, time, 4, "down")
    b = block(F.average_pooling(a, (2, 2)), time, 6, "middle")
    b = F.concatenate(F.interpolate(b, scale=(2, 2), mode="nearest"), a, axis=1)
    return PF.convolution(F.swish(block(b, time, 4, "up")), 1, (3, 3), pad=(1, 1), name="out")


x, t, noise = nn.Variable((B, 1, SIZE, SIZE)), nn.Variable((B,)), nn.Variable((B, 1, SIZE, SIZE))
predicted = network(x, t)
loss = F.mean(F.squared_error(predicted, noise))
for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b"):
        p.d = rng.randn(*p.shape) * np.sqrt(1.0 / np.prod(p.shape[1:]) if len(p.shape) > 1 else 0.01)
average = {name: p.d.copy() for name, p in nn.get_parameters().items()}
solver = S.AdamW(5e-3, wd=1e-2)
solver.set_parameters(nn.get_parameters())
for step in range(6):
    clean = np.zeros(x.shape)
    for image, (top, left) in zip(clean, rng.randint(0, SIZE - 3, (B, 2))):
        image[0, top:top + 3, left:left + 3] = 1
    times = rng.randint(0, T, B)
    noise.d, t.d = rng.randn(*x.shape), times
    share = kept[times].reshape(-1, 1, 1, 1)
    x.d = np.sqrt(share) * clean + np.sqrt(1 - share) * noise.d
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.update()
    for name, p in nn.get_parameters().items():
        average[name] = 0.9 * average[name] + 0.1 * p.d
    print("step", step, times.tolist(), "%.5f" % loss.d)
for name, p in nn.get_parameters().items():
    p.d = average[name]
image = rng.randn(*x.shape)
for step in reversed(range(T)):
    x.d, t.d = image, np.full(B, step)
    predicted.forward(clear_buffer=True)
    image = (image - betas[step] / np.sqrt(1 - kept[step]) * predicted.d) / np.sqrt(1 - betas[step])
    if step:
        image = image + np.sqrt(betas[step]) * rng.randn(*x.shape)
    print("sample", step, "%.4f %.4f" % (image.mean(), image.std()))
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.4f" % np.linalg.norm(p.d))
