"""Detection in one shot: default boxes on two scales, matching, hard negatives, and suppression of doubles."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(20)
B, CLASSES = 2, 2
SIZES = ((8, 0.2), (4, 0.45))


def default_boxes():
    found = []
    for n, size in SIZES:
        c = (np.arange(n) + 0.5) / n
        cy, cx = np.meshgrid(c, c, indexing="ij")
        found.append(np.stack([cx.ravel(), cy.ravel(), np.full(n * n, size), np.full(n * n, size)], axis=1))
    return np.concatenate(found)


BOXES = default_boxes()


def corners(b):
    return np.concatenate([b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2], axis=1)


def overlaps(a, b):
    a, b = corners(a)[:, None], corners(b)[None]
    sides = np.clip(np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2]), 0, None)
    common = sides.prod(axis=2)
    area = lambda c: (c[..., 2:] - c[..., :2]).prod(axis=2)
    return common / (area(a) + area(b) - common)


def network(x):
    h = F.relu(PF.convolution(x, 6, (3, 3), pad=(1, 1), stride=(2, 2), name="c1"))
    heads = []
    for i, (n, _) in enumerate(SIZES):
        with nn.parameter_scope("head%d" % i):
            where = PF.convolution(h, 4, (3, 3), pad=(1, 1), name="where")
            what = PF.convolution(h, CLASSES + 1, (3, 3), pad=(1, 1), name="what")
        both = F.concatenate(where, what, axis=1)
        heads.append(F.reshape(F.transpose(both, (0, 2, 3, 1)), (B, n * n, 4 + CLASSES + 1)))
        h = F.relu(PF.convolution(h, 8, (3, 3), pad=(1, 1), stride=(2, 2), name="c%d" % (i + 2)))
    y = F.concatenate(*heads, axis=1)
    return y[:, :, :4], y[:, :, 4:]


def scene():
    image, truth, kinds = rng.rand(3, 16, 16) * 0.2, [], []
    for kind in (1, 2):
        cx, cy, side = rng.uniform(0.3, 0.7), rng.uniform(0.3, 0.7), rng.choice([0.2, 0.4])
        lo, hi = np.array([cy, cx]) - side / 2, np.array([cy, cx]) + side / 2
        (t, l), (b, r) = (lo * 16).astype(int), (hi * 16).astype(int)
        image[kind, t:b, l:r] += 1.0
        truth.append((cx, cy, side, side))
        kinds.append(kind)
    truth, o = np.array(truth), overlaps(BOXES, np.array(truth))
    best, label = o.argmax(axis=1), np.zeros(len(BOXES))
    positive = o.max(axis=1) > 0.3
    positive[o.argmax(axis=0)] = True
    label[positive] = np.array(kinds)[best[positive]]
    m = truth[best]
    shift = np.concatenate([(m[:, :2] - BOXES[:, :2]) / BOXES[:, 2:] / 0.1, np.log(m[:, 2:] / BOXES[:, 2:]) / 0.2], axis=1)
    return image, shift, label


x = nn.Variable((B, 3, 16, 16))
shift, label, weight = nn.Variable((B, len(BOXES), 4)), nn.Variable((B, len(BOXES), 1)), nn.Variable((B, len(BOXES), 1))
where, what = network(x)
positive = F.greater_scalar(label, 0.5)
costs = F.softmax_cross_entropy(what, label, axis=2)
costs.persistent = where.persistent = what.persistent = True
location = F.sum(F.broadcast(positive, where.shape) * F.huber_loss(where, shift, 1.0)) / F.sum(positive)
location.persistent = True
loss = location + F.sum(costs * weight) / F.sum(positive)
for name, p in sorted(nn.get_parameters().items()):
    p.d = rng.randn(*p.shape) * 0.2
solver = S.Momentum(2e-2)
solver.set_parameters(nn.get_parameters())
for step in range(5):
    scenes = [scene() for _ in range(B)]
    x.d, shift.d, label.d = [np.stack(part).reshape(v.shape) for part, v in zip(zip(*scenes), (x, shift, label))]
    costs.forward()
    hard = np.where(label.d > 0, -1, costs.d).reshape(B, -1)
    order = np.argsort(-hard, axis=1, kind="stable")
    mask = (label.d > 0).astype(np.float32)
    for b in range(B):
        mask[b, order[b, :3 * int(mask[b].sum())]] = 1
    weight.d = mask
    nn.forward_all([loss, location])
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.update()
    print("step", step, int(mask.sum()), "%.4f %.4f" % (loss.d, location.d))
prob = F.softmax(what, axis=2)
places = nn.Variable.from_numpy_array(np.tile(BOXES.astype(np.float32), (B, 1, 1)))
centre = places[:, :, :2] + where[:, :, :2] * 0.1 * places[:, :, 2:]
boxes = F.concatenate(centre, places[:, :, 2:] * F.exp(where[:, :, 2:] * 0.2), 1 - prob[:, :, :1], prob[:, :, 1:], axis=2)
kept = F.nms_detection2d(boxes, thresh=0.3, nms=0.4, nms_per_class=True)
kept.forward()
print("kept", (kept.d[:, :, 5:] > 0).sum(axis=(1, 2)).tolist(), "%.4f" % kept.d.sum())
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.4f" % np.linalg.norm(p.d))
