"""Ratings as products of factors with biases, beside a network of both; weight decay; ranks of items."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(16)
USERS, ITEMS, D, BATCH = 8, 9, 3, 12
truth = rng.randn(USERS, 2) @ rng.randn(2, ITEMS) + rng.randn(ITEMS) * 0.3


def model(user, item, dropout=0.0):
    p, q = PF.embed(user, USERS, D, name="p"), PF.embed(item, ITEMS, D, name="q")
    bu, bi = PF.embed(user, USERS, 1, name="bu"), PF.embed(item, ITEMS, 1, name="bi")
    linear = F.sum(p * q, axis=1, keepdims=True) + bu + bi
    with nn.parameter_scope("deep"):
        h = F.concatenate(p, q, p * q, axis=1)
        h = F.selu(PF.affine(h, 6, name="fc1"))
        if dropout:
            h = F.dropout(h, dropout)
        return F.tanh(PF.affine(h, 1, name="fc2")) + linear


user, item, rating = nn.Variable((BATCH,)), nn.Variable((BATCH,)), nn.Variable((BATCH, 1))
predicted = model(user, item)
loss = F.mean(F.squared_error(predicted, rating))
regular = sum(F.sum(p ** 2) for name, p in sorted(nn.get_parameters().items()) if "embed" in name)
objective = loss + 1e-3 * regular
loss.persistent = True
for name, p in sorted(nn.get_parameters().items()):
    p.d = rng.randn(*p.shape) * 0.3
solver = S.Adamax(alpha=0.03)
solver.set_parameters(nn.get_parameters())
for step in range(30):
    u, i = rng.randint(0, USERS, BATCH), rng.randint(0, ITEMS, BATCH)
    user.d, item.d, rating.d = u, i, truth[u, i][:, None]
    nn.forward_all([objective, loss], clear_no_need_grad=True)
    solver.zero_grad()
    objective.backward(clear_buffer=True)
    solver.update()
    if step % 6 == 0:
        print("step", step, "%.5f %.5f" % (loss.d, objective.d))
everyone = nn.Variable.from_numpy_array(np.repeat(np.arange(USERS), ITEMS))
everything = nn.Variable.from_numpy_array(np.tile(np.arange(ITEMS), USERS))
scores = F.reshape(model(everyone, everything), (USERS, ITEMS))
order = F.sort(scores, axis=1, reverse=True, only_index=True)
best = F.top_k_data(scores, 2, abs=False, reduce=True)
nn.forward_all([order, best, scores])
print("first", order.d[:, :3].astype(int).tolist())
print("best", np.round(best.d[0], 4).tolist())
print("error %.5f" % np.sqrt(np.mean((scores.d - truth) ** 2)))
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.5f" % np.linalg.norm(p.d))
