"""Arrays beside variables in one call: the whole call is computed at once."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

x = nn.Variable.from_numpy_array(np.arange(6).reshape(2, 3).astype(np.float32), need_grad=True)
a = nn.NdArray.from_numpy_array(np.full((2, 3), 0.5, np.float32))
for name, y in [
    ("add", F.add2(x, a)),
    ("reversed", F.add2(a, x)),
    ("affine", F.affine(a, nn.Variable.from_numpy_array(np.ones((3, 2), np.float32)))),
    ("concatenate", F.concatenate(x, a, axis=0)),
    ("where", F.where(a, x, a)),
    ("squared error", F.squared_error(x, a)),
]:
    print(name, type(y).__name__, y.shape, "%.6f" % float(np.sum(y.data)))
rows = x[nn.NdArray.from_numpy_array(np.array([[1, 0, 1]]))]
print("rows", type(rows).__name__, rows.shape, float(np.sum(rows.data)))
h = F.exp(x)
h.forward()
s = F.add2(h, a)
print("forwarded", type(s).__name__, "%.5f" % float(np.sum(s.data)))
