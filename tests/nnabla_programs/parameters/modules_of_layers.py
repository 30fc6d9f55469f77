"""nn.Module and core.modules: names, calls, modes and files."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF


class Block(nn.Module):
    def __init__(self, channels):
        self.channels = channels

    def call(self, x):
        h = PF.convolution(x, self.channels, (3, 3), pad=(1, 1), w_init=lambda shape: 0.1 * np.ones(shape), with_bias=False, name="conv")
        return F.relu(PF.batch_normalization(h, batch_stat=self.training))


class Net(nn.Module):
    def __init__(self):
        self.one = Block(2)
        self.two = Block(3)

    def call(self, x):
        h = self.two(self.one(x))
        if self.training:
            h = h * 1.0
        return PF.affine(F.global_average_pooling(h), 2, w_init=lambda shape: 0.1 * np.ones(shape), name="fc")


net = Net()
x = nn.Variable.from_numpy_array(np.cos(np.arange(2 * 1 * 4 * 4)).reshape(2, 1, 4, 4).astype(np.float32))
y = net(x)
y.forward()
print(np.round(y.d, 5).tolist(), net.training)
print(sorted((k, v.shape) for k, v in net.get_parameters().items()))
print(sorted(net.get_parameters(grad_only=True)) == sorted(net.get_parameters()))
net.training = False
print(net.one.training, net.two.training)
z = net(x)
z.forward()
print(np.round(z.d, 5).tolist())
net.save_parameters("net.h5")
other = Net()
other.training = False
other(x)
other.load_parameters("net.h5")
u = other(x)
u.forward()
print(np.allclose(u.d, z.d, atol=1e-6), sorted(nn.get_parameters()))
net.zero_grad()
