"""Module."""

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF


class Block(nn.Module):
    def __init__(self, maps: int) -> None:
        self.maps = maps

    def call(self, x: nn.Variable) -> nn.Variable:
        return F.relu(PF.convolution(x, self.maps, 3, pad=1))


class Net(nn.Module):
    def __init__(self) -> None:
        self.blocks = [Block(4), Block(8)]

    def call(self, x: nn.Variable) -> nn.Variable:
        for block in self.blocks:
            x = block(x)
        return PF.affine(x, 10)


net = Net()
y: nn.Variable = net(nn.Variable((2, 3, 8, 8)))
names: list[str] = list(net.get_parameters())
net.training = False
print(nn.summary(net, (2, 3, 8, 8)))
