"""Clear flags, persistent, recompute, hooks and several results in one graph, in every combination."""
import itertools

import numpy as np

import nnabla as nn
import nnabla.functions as F

data = np.sin(np.arange(6)).reshape(2, 3).astype(np.float32)


def build(persistent, recompute):
    x = nn.Variable.from_numpy_array(data, need_grad=True)
    with nn.recompute(recompute):
        h = F.exp(x * 0.5)
        k = F.tanh(h) + h
    k.persistent = persistent
    loss = F.sum(k * F.sin(k))
    return x, k, loss


for persistent, recompute, lean, clear, hooked in itertools.product((False, True), repeat=5):
    x, k, loss = build(persistent, recompute)
    seen = []
    hook = (lambda f: seen.append(f.name)) if hooked else None
    results = []
    for step in range(2):
        x.d = data * (step + 1)
        loss.forward(clear_no_need_grad=lean, function_post_hook=hook)
        x.grad.zero()
        loss.backward(clear_buffer=clear, function_post_hook=hook)
        results.append("%.5f %.5f" % (loss.d, np.abs(x.g).sum()))
    kept = "%.5f" % k.d.sum() if persistent else "-"
    print(int(persistent), int(recompute), int(lean), int(clear), results, kept, "hooked" if len(seen) > 10 else "")

x, k, loss = build(True, False)
loss.forward(clear_buffer=True)
print("inference %.5f %.5f" % (loss.d, k.d.sum()))
loss.forward()
x.grad.zero()
loss.backward()
print("after it %.5f %.5f" % (loss.d, np.abs(x.g).sum()))
nn.forward_all([loss, k], clear_no_need_grad=True)
x.grad.zero()
loss.backward(clear_buffer=True)
print("all %.5f %.5f" % (k.d.sum(), np.abs(x.g).sum()))
x.d = data.astype(np.float64)
loss.forward(clear_no_need_grad=True)
x.grad.zero()
loss.backward(clear_buffer=True)
print("other dtype %.5f %.5f" % (loss.d, np.abs(x.g).sum()))
