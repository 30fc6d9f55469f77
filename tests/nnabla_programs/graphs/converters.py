"""Graph converters: folding, fusing, channel order, pruning and test mode."""
import numpy as np

import nnabla as nn
import nnabla.experimental.graph_converters as GC
import nnabla.functions as F
import nnabla.parametric_functions as PF

w = lambda shape: 0.3 * np.sin(np.arange(np.prod(shape))).reshape(shape)


def names(y):
    found = []
    y.visit(lambda f: found.append(f.info.type_name))
    return found


x = nn.Variable.from_numpy_array(np.cos(np.arange(2 * 3 * 6 * 6)).reshape(2, 3, 6, 6).astype(np.float32))
h = PF.convolution(x, 4, (3, 3), pad=(1, 1), w_init=w, name="c1")
h = PF.batch_normalization(h, batch_stat=False, name="b1")
h = F.relu(h)
h = PF.convolution(h, 4, (3, 3), w_init=w, with_bias=False, name="c2")
h = PF.batch_normalization(h, batch_stat=False, name="b2")
y = F.relu(F.identity(h))
for k, p in nn.get_parameters(grad_only=False).items():
    if k.endswith("mean") or k.endswith("beta"):
        p.d = 0.1 * np.arange(p.size).reshape(p.shape)
    if k.endswith("var") or k.endswith("gamma"):
        p.d = 1 + 0.2 * np.arange(p.size).reshape(p.shape)
y.forward()
print("plain", names(y), "%.5f %.5f" % (np.abs(y.d).sum(), y.d.max()))
for label, modifiers in (
    ("folding", [GC.BatchNormalizationFoldingModifier(opposite=False, channel_last=False)]),
    ("self", [GC.BatchNormalizationSelfFoldingModifier()]),
    ("identity", [GC.RemoveFunctionModifier(rm_funcs=["Identity"])]),

):
    z = GC.GraphConverter(modifiers).convert(y)
    z.forward()
    print(label, names(z), "%.5f %.5f" % (np.abs(z.d).sum(), z.d.max()))
h = PF.batch_normalization(x, batch_stat=True, name="b3")
z = GC.GraphConverter([GC.TestModeModifier(rm_funcs=[])]).convert(F.relu(h))
z.forward()
print("test", names(z), "%.4f" % np.abs(z.d).sum())
z = GC.GraphConverter([GC.NoGradModifier()]).convert(y)
z.forward()
print("no grad", z.need_grad, "%.5f" % np.abs(z.d).sum())


class Swap(GC.FunctionModifier):
    def modify(self, f, inputs):
        if f.info.type_name == "ReLU":
            return F.leaky_relu(inputs[0], 0.5)


z = GC.GraphConverter([Swap()]).convert(y)
z.forward()
print("swap", names(z), "%.5f %.5f" % (np.abs(z.d).sum(), z.d.min()))
