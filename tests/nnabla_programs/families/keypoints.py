"""Key points as heat maps: an hourglass with intermediate supervision, soft argmax, weights by visibility."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(21)
B, SIZE, POINTS, MAPS = 2, 8, 3, 6


def residual(x, name):
    with nn.parameter_scope(name):
        h = PF.convolution(F.relu(PF.batch_normalization(x, name="n1")), MAPS // 2, (1, 1), with_bias=False, name="c1")
        h = PF.convolution(F.relu(PF.batch_normalization(h, name="n2")), MAPS, (3, 3), pad=(1, 1), name="c2")
        return x + h


def hourglass(x, depth, name):
    with nn.parameter_scope(name):
        side = residual(x, "side")
        low = F.max_pooling(x, (2, 2), stride=(2, 2))
        low = hourglass(low, depth - 1, "inner") if depth > 1 else residual(low, "bottom")
        return side + F.unpooling(low, (2, 2))


def stacked(x):
    h = PF.convolution(x, MAPS, (3, 3), pad=(1, 1), name="stem")
    outs = []
    for i in range(2):
        with nn.parameter_scope("stack%d" % i):
            y = residual(hourglass(h, 2, "hourglass"), "after")
            heat = PF.convolution(y, POINTS, (1, 1), name="heat")
            outs.append(heat)
            h = h + y + PF.convolution(heat, MAPS, (1, 1), name="back")
    return outs


grid_y, grid_x = np.mgrid[:SIZE, :SIZE].astype(np.float32)


def heat_map(cx, cy):
    return np.exp(-((grid_x - cx) ** 2 + (grid_y - cy) ** 2) / 2)


x, t, seen = nn.Variable((B, 1, SIZE, SIZE)), nn.Variable((B, POINTS, SIZE, SIZE)), nn.Variable((B, POINTS, 1, 1))
outs = stacked(x)
loss = sum(F.mean(F.broadcast(seen, t.shape) * F.squared_error(y, t)) for y in outs)
flat = F.softmax(F.reshape(outs[-1], (B, POINTS, SIZE * SIZE)) * 10, axis=2)
columns = nn.Variable.from_numpy_array(np.stack([grid_x.ravel(), grid_y.ravel()], axis=1))
where = F.affine(flat, columns, base_axis=2)
for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b"):
        p.d = rng.randn(*p.shape) * 0.3
solver = S.RMSprop(2e-3)
solver.set_parameters(nn.get_parameters())
for step in range(5):
    places = rng.randint(1, SIZE - 1, (B, POINTS, 2))
    t.d = np.array([[heat_map(*p) for p in person] for person in places])
    x.d = t.d.sum(axis=1, keepdims=True) + rng.randn(*x.shape) * 0.05
    seen.d = (rng.rand(B, POINTS, 1, 1) > 0.2)
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.update()
    print("step", step, int(seen.d.sum()), "%.5f" % loss.d)
where.forward()
print("places", where.shape, "%.4f" % where.d.mean())
for name, p in sorted(nn.get_parameters().items()):
    if "stack1" in name or "stem" in name:
        print(name, p.shape, "%.4f %.4f" % (np.linalg.norm(p.d), np.linalg.norm(p.g)))
