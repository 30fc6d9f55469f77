"""Batch normalization in training and in test, running statistics, fixed parameters."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF

rng = np.random.RandomState(11)
x = nn.Variable((4, 3, 5, 5), need_grad=True)
train = PF.batch_normalization(x, decay_rate=0.8, name="bn")
test = PF.batch_normalization(x, batch_stat=False, name="bn")
for name, p in sorted(nn.get_parameters(grad_only=False).items()):
    print(name, p.shape, p.need_grad, p.d.ravel().tolist())
nn.get_parameters()["bn/bn/gamma"].d = np.array([1.0, 2.0, 0.5]).reshape(1, 3, 1, 1)
nn.get_parameters()["bn/bn/beta"].d = np.array([0.0, 1.0, -1.0]).reshape(1, 3, 1, 1)

loss = F.mean(F.sin(train))
for step in range(4):
    x.d = rng.randn(*x.shape) * (step + 1) + step
    for p in nn.get_parameters().values():
        p.grad.zero()
    x.grad.zero()
    loss.forward(clear_no_need_grad=True)
    loss.backward(clear_buffer=True)
    statistics = nn.get_parameters(grad_only=False)
    print("step", step, "%.6f %.6f" % (loss.d, np.abs(x.g).sum()))
    print("   mean", np.round(statistics["bn/bn/mean"].d.ravel(), 5).tolist())
    print("   var", np.round(statistics["bn/bn/var"].d.ravel(), 4).tolist())
    print("   gamma", np.round(nn.get_parameters()["bn/bn/gamma"].g.ravel(), 5).tolist())
test.forward()
print("test %.5f %.5f" % (test.d.mean(), test.d.std()))
before = statistics["bn/bn/mean"].d.copy()
test.forward()
print("unchanged", np.array_equal(before, statistics["bn/bn/mean"].d))

y, mean, var = PF.batch_normalization(x, output_stat=True, name="with_stat")
nn.forward_all([y, mean, var])
print("statistics", np.round(mean.d.ravel(), 5).tolist(), np.round(var.d.ravel(), 4).tolist())
z = PF.batch_normalization(x, fix_parameters=True, name="fixed")
print("fixed", [p.need_grad for n, p in sorted(nn.get_parameters(grad_only=False).items()) if n.startswith("fixed")])
a = PF.batch_normalization(x, axes=[3], no_scale=True, name="last")
a.forward()
print("axes", sorted(n for n in nn.get_parameters(grad_only=False) if n.startswith("last")), "%.5f" % np.abs(a.d).mean())
v = nn.Variable.from_numpy_array(rng.rand(6, 4).astype(np.float32))
b = PF.batch_normalization(v, eps=1e-3, param_init={"gamma": np.full((1, 4), 3.0)}, name="vector")
b.forward()
print("vector %.5f" % b.d.std())
f = PF.fused_batch_normalization(x, name="fused")
f.forward()
print("fused %.5f" % f.d.mean())
