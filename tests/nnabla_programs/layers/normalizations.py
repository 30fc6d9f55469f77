"""Layer, instance, group, weight and spectral normalization; weight standardization; mean subtraction."""
# tolerance: 5e-4
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF

x = nn.Variable.from_numpy_array(np.cos(np.arange(2 * 4 * 3 * 3) * 1.3).reshape(2, 4, 3, 3).astype(np.float32), need_grad=True)
w8 = np.sin(np.arange(2 * 4 * 3 * 3) * 0.7).reshape(2, 4, 3, 3).astype(np.float32)


def run(name, make):
    nn.clear_parameters()
    y = make(x)
    for i, (_, p) in enumerate(sorted(nn.get_parameters().items())):
        p.d = np.cos(np.arange(p.size) * 0.21 + i).reshape(p.shape) + 0.5
        p.grad.zero()
    weights = nn.Variable.from_numpy_array(np.sin(np.arange(y.size) * 0.7).reshape(y.shape))
    loss = F.sum(y * weights)
    loss.forward()
    x.grad.zero()
    loss.backward()
    print(name, y.shape, "%.5f %.5f" % (loss.d, np.abs(x.g).sum()))
    for n, p in sorted(nn.get_parameters().items()):
        print("   ", n, p.shape, "%.5f" % np.abs(p.g).sum())


run("layer", lambda v: PF.layer_normalization(v))
run("layer, batch axes", lambda v: PF.layer_normalization(v, batch_axis=[0, 2], eps=1e-3))
run("instance", lambda v: PF.instance_normalization(v))
run("instance, channel last", lambda v: PF.instance_normalization(v, channel_axis=3, no_bias=True))
run("group", lambda v: PF.group_normalization(v, num_groups=2))
run("norm", lambda v: F.norm_normalization(v, axes=[1]))
run("weight", lambda v: PF.affine(v, 3, apply_w=lambda w: PF.weight_normalization(w, dim=1)))
run("weight convolution", lambda v: PF.convolution(v, 3, (2, 2), apply_w=lambda w: PF.weight_normalization(w)))
run("standardization", lambda v: PF.convolution(v, 3, (2, 2), apply_w=lambda w: F.weight_standardization(w)))
run("prelu", lambda v: PF.prelu(v))
run("prelu shared", lambda v: PF.prelu(v, shared=True))
m = PF.mean_subtraction(x, base_axis=1, name="ms")
m.forward()
print("mean subtraction %.5f" % np.abs(m.d).sum(), sorted(nn.get_parameters(grad_only=False)))
n = F.norm(x, p=2, axis=1)
n.forward()
print("norm %.5f" % n.d.sum())
