"""An image-to-image GAN: generator with skips and instance normalization, a critic of patches, L1."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(3)


def generator(x):
    with nn.parameter_scope("generator"):
        a = F.leaky_relu(PF.convolution(x, 4, (4, 4), pad=(1, 1), stride=(2, 2), name="down1"), 0.2)
        b = PF.instance_normalization(PF.convolution(a, 8, (4, 4), pad=(1, 1), stride=(2, 2), with_bias=False, name="down2"), name="norm2")
        c = PF.deconvolution(F.relu(b), 4, (4, 4), pad=(1, 1), stride=(2, 2), with_bias=False, name="up2")
        c = F.relu(F.concatenate(PF.instance_normalization(c, name="norm3"), a, axis=1))
        return F.tanh(PF.deconvolution(c, 2, (4, 4), pad=(1, 1), stride=(2, 2), name="up1"))


def patches(x, y):
    with nn.parameter_scope("patches"):
        h = F.concatenate(x, y, axis=1)
        h = F.leaky_relu(PF.convolution(h, 6, (3, 3), pad=(1, 1), stride=(2, 2), name="conv1"), 0.2)
        return PF.convolution(h, 1, (3, 3), pad=(1, 1), name="conv2")


x, y = nn.Variable((2, 1, 8, 8)), nn.Variable((2, 2, 8, 8))
made = generator(x)
made.persistent = True
fooled = patches(x, made)
l1 = F.mean(F.absolute_error(made, y))
l1.persistent = True
g_loss = F.mean(F.squared_error(fooled, F.constant(1.0, fooled.shape))) + 10.0 * l1
on_real, on_made = patches(x, y), patches(x, made.get_unlinked_variable())
d_loss = 0.5 * F.mean((on_real - 1.0) ** 2) + 0.5 * F.mean(on_made ** 2)

for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b"):
        p.d = rng.randn(*p.shape) * 0.2
solvers = {}
for scope in ("generator", "patches"):
    with nn.parameter_scope(scope):
        solvers[scope] = S.Adam(alpha=2e-3, beta1=0.5)
        solvers[scope].set_parameters(nn.get_parameters())
for step in range(5):
    x.d, y.d = rng.rand(*x.shape), rng.rand(*y.shape) * 2 - 1
    g_loss.forward()
    solvers["generator"].zero_grad()
    g_loss.backward(clear_buffer=False)
    solvers["generator"].update()
    d_loss.forward()
    solvers["patches"].zero_grad()
    d_loss.backward()
    solvers["patches"].update()
    print("step", step, "%.5f %.5f %.5f" % (g_loss.d, l1.d, d_loss.d))
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.4f" % np.linalg.norm(p.d))
print("image", np.round(made.d[0, 0, 0], 4).tolist())
