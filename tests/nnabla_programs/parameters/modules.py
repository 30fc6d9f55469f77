"""nn.Module: parameters of modules, submodules, training flag, saving."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF


class Block(nn.Module):
    def __init__(self, n):
        super(Block, self).__init__()
        self.n = n

    def call(self, x):
        h = PF.convolution(x, self.n, (3, 3), pad=(1, 1), with_bias=False)
        h = PF.batch_normalization(h, batch_stat=self.training)
        return F.relu(h)


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.first = Block(4)
        self.second = Block(2)

    def call(self, x):
        h = self.second(self.first(x))
        return PF.affine(F.average_pooling(h, h.shape[2:]), 3)


net = Net()
x = nn.Variable.from_numpy_array(np.sin(np.arange(2 * 3 * 4 * 4)).reshape(2, 3, 4, 4).astype(np.float32))
y = net(x)
parameters = net.get_parameters(grad_only=False)
for i, (name, p) in enumerate(sorted(parameters.items())):
    if not name.endswith(("mean", "var")):
        p.d = np.cos(np.arange(p.size) * 0.3 + i).reshape(p.shape)
    print(name, p.shape, p.need_grad)
y.forward()
print("train %.5f" % np.abs(y.d).sum(), net.training)
net.training = False
print("training", net.first.training)
z = net(x)
z.forward()
print("test %.5f" % np.abs(z.d).sum())
net.save_parameters("net.h5")
other = Net()
other(x)
other.load_parameters("net.h5")
other.training = False
w = other(x)
w.forward()
print("loaded %.5f" % np.abs(w.d).sum(), np.allclose(w.d, z.d))
print("global", len(nn.get_parameters()))
seq = nn.Sequential(Block(2), Block(3))
s = seq(x)
s.forward()
print("sequential", s.shape, len(seq.get_parameters()))
