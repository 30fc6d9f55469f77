"""Reductions, products and comparisons along axes."""
# tolerance: 2e-4
import numpy as np

import nnabla as nn
import nnabla.functions as F

x = nn.Variable.from_numpy_array(np.sin(np.arange(24) * 1.7 + 0.3).reshape(2, 3, 4).astype(np.float32), need_grad=True)


def show(name, y):
    w = nn.Variable.from_numpy_array(np.cos(np.arange(y.size)).reshape(y.shape))
    loss = F.sum(y * w)
    x.grad.zero()
    loss.forward()
    loss.backward()
    y.forward()
    print(name, y.shape, "%.5f %.5f" % (loss.d, np.abs(x.g).sum()), np.round(np.array(y.d).ravel()[:3], 5).tolist())


for name in ("sum", "mean", "max", "min", "prod"):
    f = getattr(F, name)
    show(name, f(x))
    show(name + " axis", f(x, axis=1))
    show(name + " axes", f(x, axis=(0, 2)))
    show(name + " keep", f(x, axis=-1, keepdims=True))
show("variance", F.mean((x - F.mean(x, axis=1, keepdims=True)) ** 2, axis=1))
show("norm", F.norm(x, p=2, axis=2))
show("norm 1", F.norm(x, p=1, axis=0))
show("softmax", F.softmax(x))
show("softmax axis", F.softmax(x, axis=1))
show("log_softmax", F.log_softmax(x, axis=2))
show("batch_matmul", F.batch_matmul(x, x, transpose_b=True))
show("einsum", F.einsum(x, x, equation="bij,bkj->bik"))
show("affine", F.affine(x, nn.Variable.from_numpy_array(np.ones((12, 2), np.float32))))
index = F.max(x, axis=1, only_index=True)
index.forward()
print("argmax", index.d.astype(int).tolist())
v, i = F.min(x, axis=2, with_index=True)
nn.forward_all([v, i])
print("argmin", i.d.astype(int).tolist(), np.round(v.d, 5).tolist())
eye = nn.Variable.from_numpy_array((np.eye(3)[None] * 2 + 0.1 * np.sin(np.arange(18)).reshape(2, 3, 3)).astype(np.float32), need_grad=True)
d, inv, ld = F.batch_det(eye), F.batch_inv(eye), F.batch_logdet(eye)
nn.forward_all([d, inv, ld])
eye.grad.zero()
d.backward()
print("det", np.round(d.d, 5).tolist(), "%.5f %.5f" % (np.abs(inv.d).sum(), ld.d.sum()), "%.4f" % np.abs(eye.g).sum())
print("equal", float(F.sum(F.equal(nn.NdArray.from_numpy_array(np.ones(3)), nn.NdArray.from_numpy_array(np.array([1.0, 2, 1])))).data))
