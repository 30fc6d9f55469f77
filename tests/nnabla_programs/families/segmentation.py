"""Segmentation: encoder and decoder with skips, cross entropy and Dice, mean intersection over union."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(19)
B, SIZE, CLASSES = 2, 16, 3


def unit(x, maps, name, test):
    with nn.parameter_scope(name):
        for i in range(2):
            x = PF.convolution(x, maps, (3, 3), pad=(1, 1), with_bias=False, name="conv%d" % i)
            x = F.relu(PF.batch_normalization(x, batch_stat=not test, decay_rate=0.7, name="bn%d" % i))
    return x


def unet(x, test=False):
    skips = []
    for i, maps in enumerate((4, 6)):
        x = unit(x, maps, "down%d" % i, test)
        skips.append(x)
        x = F.max_pooling(x, (2, 2))
    x = unit(x, 8, "bottom", test)
    for i, maps in ((1, 6), (0, 4)):
        x = F.interpolate(x, scale=(2, 2), mode="linear", align_corners=False) if i else PF.deconvolution(x, 6, (2, 2), stride=(2, 2), name="up")
        x = unit(F.concatenate(x, skips[i], axis=1), maps, "up%d" % i, test)
    return PF.convolution(x, CLASSES, (1, 1), name="classes")


def scene():
    image, labels = rng.rand(1, SIZE, SIZE) * 0.3, np.zeros((1, SIZE, SIZE))
    for k in (1, 2):
        top, left = rng.randint(0, SIZE - 6, 2)
        image[0, top:top + 6, left:left + 6] += k
        labels[0, top:top + 6, left:left + 6] = k
    return image, labels


def overlap(predicted, labels):
    found = []
    for k in range(CLASSES):
        a, b = predicted == k, labels == k
        found.append((a & b).sum() / max((a | b).sum(), 1))
    return found


x, t = nn.Variable((B, 1, SIZE, SIZE)), nn.Variable((B, 1, SIZE, SIZE))
logits, tested = unet(x), unet(x, test=True)
entropy = F.mean(F.softmax_cross_entropy(logits, t, axis=1))
prob = F.softmax(logits, axis=1)
truth = F.transpose(F.one_hot(F.reshape(t, (B, SIZE, SIZE, 1)), (CLASSES,)), (0, 3, 1, 2))
dice = 1 - F.mean((2 * F.sum(prob * truth, axis=(2, 3)) + 1) / (F.sum(prob, axis=(2, 3)) + F.sum(truth, axis=(2, 3)) + 1))
entropy.persistent = dice.persistent = True
loss = entropy + dice
for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b"):
        p.d = rng.randn(*p.shape) * np.sqrt(2.0 / np.prod(p.shape[1:]))
solver = S.Momentum(0.05, 0.9)
solver.set_parameters(nn.get_parameters())
for step in range(6):
    scenes = [scene() for _ in range(B)]
    x.d, t.d = np.stack([s[0] for s in scenes]), np.stack([s[1] for s in scenes])
    nn.forward_all([loss, entropy, dice], clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.update()
    print("step", step, "%.4f %.4f %.4f" % (loss.d, entropy.d, dice.d))
tested.forward()
print("test %.3f" % tested.d.std(), np.round(overlap(tested.d.argmax(axis=1), t.d[:, 0]), 2).tolist())
for name, p in sorted(nn.get_parameters(grad_only=False).items()):
    if "/bn1/" not in name:
        print(name, p.shape, "%.4f" % np.linalg.norm(p.d))
