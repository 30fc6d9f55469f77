"""Functions that move elements: joining, splitting, repeating, padding, sorting, gathering."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

a = np.array([[3, 1, 2], [9, 7, 8]], np.float32)
x = nn.Variable.from_numpy_array(a, need_grad=True)
weights = np.cos(np.arange(200))


def show(name, *outputs):
    outputs = [o for o in outputs]
    loss = F.add_n(*[F.sum(o * nn.Variable.from_numpy_array(weights[:o.size].reshape(o.shape))) for o in outputs])
    x.grad.zero()
    nn.forward_all(outputs + [loss])
    loss.backward()
    print(name, [o.shape for o in outputs], [o.d.tolist() for o in outputs], np.round(x.g, 5).tolist())


show("concatenate", F.concatenate(x, x * 2, axis=1))
show("stack", F.stack(x, x * 2, axis=2))
show("split", *F.split(x, axis=1))
show("slice", F.slice(x, start=(0, 2), stop=(2, 0), step=(1, -1)))
show("transpose", F.transpose(x, (1, 0)))
show("reshape", F.reshape(x, (3, 2)))
show("broadcast", F.broadcast(F.reshape(x, (2, 1, 3)), (2, 2, 3)))
show("tile", F.tile(x, (1, 2)))
show("pad", F.pad(x, (1, 0, 0, 2), "constant", 0.5))
show("reflect", F.pad(x, (1, 1, 2, 0), mode="reflect"))
show("repeat", F.pad(x, (0, 0, 1, 2), mode="repeat"))
show("flip", F.flip(x, axes=[0, 1]))
show("shift", F.shift(x, (0, 1), border_mode="nearest"))
show("gather", F.gather(x, nn.Variable.from_numpy_array(np.array([2, 0, 2])), axis=1))
show("gather_nd", F.gather_nd(x, nn.Variable.from_numpy_array(np.array([[0, 1], [2, 0]]))))
show("scatter_nd", F.reshape(F.scatter_nd(F.reshape(x, (6,)), nn.Variable.from_numpy_array(np.array([[5, 4, 3, 2, 1, 0]])), shape=(8,)), (2, 4)))
show("matrix_diag", F.matrix_diag(x))
show("cumsum", F.cumsum(x, axis=1), F.cumsum(x, axis=0, exclusive=True, reverse=True))
show("cumprod", F.cumprod(x, axis=1))
show("sort", F.sort(x * 1, axis=0))
show("triangle", F.trilu(x, k=0, upper=False))
hot = F.one_hot(nn.Variable.from_numpy_array(np.array([[0], [2]])), (3,))
show("one_hot", hot * x)
s, i = F.sort(x, axis=1, reverse=True, with_index=True)
nn.forward_all([s, i])
print("sort", s.d.tolist(), i.d.astype(int).tolist())
m = F.meshgrid(nn.Variable.from_numpy_array(np.arange(2.0)), nn.Variable.from_numpy_array(np.arange(3.0)))
nn.forward_all(list(m))
print("meshgrid", [v.d.tolist() for v in m])
r, c = F.arange(0, 5, 2), F.constant(2.5, (2, 2))
l = F.linspace(0, 1, 5)
nn.forward_all([r, c, l])
print("made", r.d.tolist(), c.d.tolist(), l.d.tolist())
t = F.top_k_data(x, 2, reduce=True, base_axis=1)
t.forward()
print("top k", t.d.tolist())
u = F.searchsorted(nn.Variable.from_numpy_array(np.float32([[1, 3, 5]])), nn.Variable.from_numpy_array(np.float32([[0, 3, 6]])))
u.forward()
print("search", u.d.astype(int).tolist())
