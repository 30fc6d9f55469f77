"""A tagger: two layers of two-directional GRU, words and letters, a chain of tags as a conditional random field."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

T, B, D, TAGS = 5, 3, 4, 3
rng = np.random.RandomState(13)


def log_sum(x, axis):
    top = F.max(x, axis=axis, keepdims=True)
    return F.log(F.sum(F.exp(x - top), axis=axis)) + F.reshape(top, [n for i, n in enumerate(x.shape) if i != axis])


words, letters, tags = nn.Variable((T, B)), nn.Variable((T, B, 6)), nn.Variable((T, B))
with nn.parameter_scope("tagger"):
    of_letters = F.max(PF.embed(letters, 9, 3, name="letters"), axis=2)
    x = F.concatenate(PF.embed(words, 10, 5, name="words"), of_letters, axis=2)
    h0 = nn.Variable.from_numpy_array(np.zeros((2, 2, B, D), np.float32))
    y, hn = PF.gru(x, h0, num_layers=2, bidirectional=True, training=True, name="gru")
    scores = PF.affine(y, TAGS, base_axis=2, name="scores")
    moves = nn.parameter.get_parameter_or_create("moves", (TAGS, TAGS))

alpha = scores[0]
for t in range(1, T):
    alpha = log_sum(F.reshape(alpha, (B, TAGS, 1)) + F.reshape(moves, (1, TAGS, TAGS)), 1) + scores[t]
total = log_sum(alpha, 1)
marks = F.one_hot(F.reshape(tags, (T, B, 1)), (TAGS,))
gold = F.sum(scores * marks, axis=(0, 2))
pairs = F.batch_matmul(F.reshape(marks[:-1], ((T - 1) * B, TAGS, 1)), F.reshape(marks[1:], ((T - 1) * B, 1, TAGS)))
gold = gold + F.sum(F.reshape(pairs * F.reshape(moves, (1, TAGS, TAGS)), (T - 1, B, TAGS * TAGS)), axis=(0, 2))
loss = F.mean(total - gold)
for name, p in sorted(nn.get_parameters().items()):
    p.d = rng.randn(*p.shape) * 0.3
    print(name, p.shape)
solver = S.Adagrad(0.05)
solver.set_parameters(nn.get_parameters())
scores.persistent = True
for step in range(6):
    words.d, letters.d = rng.randint(0, 10, (T, B)), rng.randint(0, 9, (T, B, 6))
    tags.d = (words.d + np.roll(words.d, 1, axis=0)) % TAGS
    loss.forward()
    solver.zero_grad()
    loss.backward()
    solver.update()
    print("step", step, "%.5f" % loss.d)


def best(score, move):
    back, value = [], score[0]
    for row in score[1:]:
        options = value[:, None] + move
        back.append(options.argmax(axis=0))
        value = options.max(axis=0) + row
    path = [int(value.argmax())]
    for choice in reversed(back):
        path.append(int(choice[path[-1]]))
    return path[::-1]


print("paths", [best(scores.d[:, b], moves.d) for b in range(B)])
for name, p in sorted(nn.get_parameters().items()):
    print(name, "%.5f %.5f" % (np.linalg.norm(p.d), np.linalg.norm(p.g)))
