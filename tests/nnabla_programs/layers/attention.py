"""Multi-head attention and a transformer layer from fixed weights."""
# tolerance: 2e-4
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF


def fill():
    for i, (_, p) in enumerate(sorted(nn.get_parameters().items())):
        p.d = np.cos(np.arange(p.size) * 0.17 + i).reshape(p.shape) * 0.3
        p.grad.zero()


q = nn.Variable.from_numpy_array(np.sin(np.arange(4 * 2 * 6) * 0.3).reshape(4, 2, 6).astype(np.float32), need_grad=True)
k = nn.Variable.from_numpy_array(np.cos(np.arange(5 * 2 * 6) * 0.2).reshape(5, 2, 6).astype(np.float32))
out, weights = PF.multi_head_attention(q, k, k, num_heads=2)
fill()
loss = F.sum(out * out) + F.sum(weights ** 2)
loss.forward()
q.grad.zero()
loss.backward()
print("shapes", out.shape, weights.shape)
print("loss %.6f %.6f" % (loss.d, np.abs(q.g).sum()))
for n, p in sorted(nn.get_parameters().items()):
    print("   ", n, p.shape, "%.5f" % np.abs(p.g).sum())
nn.clear_parameters()

mask = nn.Variable.from_numpy_array(np.triu(np.full((4, 4), -1e9), 1).astype(np.float32))
out, weights = PF.multi_head_attention(q, q, q, num_heads=3, with_bias=False, additive_mask=mask, name="masked")
fill()
nn.forward_all([out, weights])
print("masked %.6f" % out.d.sum(), np.round(weights.d[0, 0], 4).tolist())
nn.clear_parameters()

t = PF.transformer_encode(q, 6, 2, dim_feedforward=8, dropout=0.0, name="encoder")
fill()
t.forward()
print("encoder", t.shape, "%.5f" % np.abs(t.d).sum())
for n, p in sorted(nn.get_parameters().items()):
    print("   ", n, p.shape)

scores = F.batch_matmul(F.transpose(q, (1, 0, 2)), F.transpose(k, (1, 0, 2)), transpose_b=True) / 6 ** 0.5
context = F.batch_matmul(F.softmax(scores, axis=-1), F.transpose(k, (1, 0, 2)))
context.forward()
print("by hand", context.shape, "%.6f" % context.d.sum())
