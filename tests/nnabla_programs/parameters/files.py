"""Saving and loading parameters in HDF5, whole and in part."""
import os

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF

rng = np.random.RandomState(2)
x = nn.Variable.from_numpy_array(rng.randn(4, 3, 8, 8).astype(np.float32))


def network(x, test):
    with nn.parameter_scope("conv1"):
        h = PF.convolution(x, 4, (3, 3), pad=(1, 1))
        h = F.relu(PF.batch_normalization(h, batch_stat=not test))
    with nn.parameter_scope("fc"):
        return PF.affine(h, 2)


y = network(x, False)
for name, p in sorted(nn.get_parameters(grad_only=False).items()):
    p.d = np.abs(rng.randn(*p.shape)) * 0.2
y.forward()
t = network(x, True)
t.forward()
print("result %.5f %.5f" % (np.abs(y.d).sum(), np.abs(t.d).sum()))
nn.save_parameters("all.h5")
with nn.parameter_scope("conv1"):
    nn.save_parameters("conv1.h5")
nn.save_parameters("some.h5", {k: v for k, v in nn.get_parameters().items() if k.endswith("W")})
print("files", sorted(f for f in os.listdir(".") if f.endswith(".h5")))

kept = {k: v.d.copy() for k, v in nn.get_parameters(grad_only=False).items()}
nn.clear_parameters()
nn.load_parameters("all.h5")
loaded = nn.get_parameters(grad_only=False)
print("names", sorted(loaded))
print("equal", all(np.array_equal(kept[k], loaded[k].d) for k in kept), len(loaded))
print("need_grad", [loaded[k].need_grad for k in sorted(loaded)])
t2 = network(x, True)
t2.forward()
print("again %.5f" % np.abs(t2.d).sum())

nn.clear_parameters()
with nn.parameter_scope("elsewhere"):
    nn.load_parameters("conv1.h5")
print("part", sorted(nn.get_parameters(grad_only=False)))
nn.clear_parameters()
nn.load_parameters("some.h5")
print("some", sorted(nn.get_parameters()), "%.5f" % sum(p.d.sum() for p in nn.get_parameters().values()))
for p in nn.get_parameters().values():
    p.d = 0
nn.load_parameters("some.h5")
print("overwritten %.5f" % sum(p.d.sum() for p in nn.get_parameters().values()))
