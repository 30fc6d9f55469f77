"""Two small networks trained for a few steps: a residual network of images and an autoencoder."""
# tolerance: 1e-3
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(21)
images = rng.rand(8, 3, 8, 8).astype(np.float32)
labels = rng.randint(0, 4, (8, 1))


def unit(x, n, name, test=False):
    with nn.parameter_scope(name):
        with nn.parameter_scope("a"):
            h = F.relu(PF.batch_normalization(PF.convolution(x, n, (3, 3), pad=(1, 1), with_bias=False), batch_stat=not test))
        with nn.parameter_scope("b"):
            h = PF.batch_normalization(PF.convolution(h, n, (3, 3), pad=(1, 1), with_bias=False), batch_stat=not test)
        if x.shape[1] != n:
            with nn.parameter_scope("shortcut"):
                x = PF.convolution(x, n, (1, 1))
        return F.relu(h + x)


def resnet(x, test=False):
    h = unit(x, 4, "u1", test)
    h = F.max_pooling(h, (2, 2))
    h = unit(h, 6, "u2", test)
    return PF.affine(F.global_average_pooling(h), 4)


def autoencoder(x):
    h = F.elu(PF.convolution(x, 6, (4, 4), pad=(1, 1), stride=(2, 2), name="enc"))
    return F.sigmoid(PF.deconvolution(h, 3, (4, 4), pad=(1, 1), stride=(2, 2), name="dec"))


def train(name, x, loss, lr):
    for n, p in sorted(nn.get_parameters().items()):
        if not n.endswith("gamma"):
            p.d = rng.randn(*p.shape) * (0.25 if n.endswith("W") else 0.05)
    solver = S.Adam(lr)
    solver.set_parameters(nn.get_parameters())
    for step in range(6):
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.weight_decay(1e-4)
        solver.update()
        print(name, step, "%.5f" % loss.d)


x, t = nn.Variable(images.shape), nn.Variable(labels.shape)
x.d, t.d = images, labels
train("residual", x, F.mean(F.softmax_cross_entropy(resnet(x), t)), 0.01)
y = resnet(x, test=True)
y.forward(clear_buffer=True)
e = F.mean(F.top_n_error(y, t, n=2))
e.forward()
print("test %.3f" % np.abs(y.d).sum(), "error %.4f" % e.d, len(nn.get_parameters(grad_only=False)))
nn.clear_parameters()
train("autoencoder", x, F.mean(F.squared_error(autoencoder(x), x)), 0.02)
