"""An actor with a critic on a walk along a line: returns, advantages, an entropy bonus, norms of gradients clipped."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(31)
CELLS, STEPS, GAMMA = 6, 12, 0.9


def actor(s):
    with nn.parameter_scope("actor"):
        return PF.affine(F.tanh(PF.affine(s, 10, name="fc1")), 2, name="fc2")


def critic(s):
    with nn.parameter_scope("critic"):
        return PF.affine(F.elu(PF.affine(s, 10, name="fc1")), 1, name="fc2")


def seen(cell):
    return np.eye(CELLS)[cell]


one = nn.Variable((1, CELLS))
chances = F.softmax(actor(one))
state, action, gained, advantage = nn.Variable((STEPS, CELLS)), nn.Variable((STEPS, 1)), nn.Variable((STEPS, 1)), nn.Variable((STEPS, 1))
logits, value = actor(state), critic(state)
value.persistent = True
log_p = F.log_softmax(logits)
taken = F.sum(log_p * F.one_hot(action, (2,)), axis=1, keepdims=True)
entropy = -F.mean(F.sum(F.exp(log_p) * log_p, axis=1))
entropy.persistent = True
actor_loss = -F.mean(taken * advantage) - 0.01 * entropy
critic_loss = F.mean(F.huber_loss(value, gained, 1.0))
for name, p in sorted(nn.get_parameters().items()):
    p.d = rng.randn(*p.shape) * 0.5
solvers = {}
for scope, solver in (("actor", S.Adam(2e-2)), ("critic", S.RMSpropGraves(1e-2))):
    with nn.parameter_scope(scope):
        solver.set_parameters(nn.get_parameters())
    solvers[scope] = solver
for episode in range(10):
    cell, cells, moves, rewards = CELLS // 2, [], [], []
    for _ in range(STEPS):
        one.d = seen([cell])
        chances.forward(clear_buffer=True)
        move = int(rng.rand() < chances.d[0, 1])
        cells.append(cell)
        moves.append(move)
        cell = int(np.clip(cell + 2 * move - 1, 0, CELLS - 1))
        rewards.append(1.0 if cell == CELLS - 1 else -0.1)
    total, returns = 0.0, []
    for reward in reversed(rewards):
        total = reward + GAMMA * total
        returns.insert(0, total)
    state.d, action.d, gained.d = seen(cells), np.array(moves)[:, None], np.array(returns)[:, None]
    critic_loss.forward(clear_no_need_grad=True)
    advantage.d = gained.d - value.d
    solvers["critic"].zero_grad()
    critic_loss.backward(clear_buffer=True)
    solvers["critic"].update()
    actor_loss.forward(clear_no_need_grad=True)
    solvers["actor"].zero_grad()
    actor_loss.backward(clear_buffer=True)
    solvers["actor"].clip_grad_by_norm(0.5)
    solvers["actor"].update()
    print("episode", episode, "%.1f %.5f %.5f %.5f" % (sum(rewards), actor_loss.d, critic_loss.d, entropy.d), moves)
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.4f %.4f" % (np.linalg.norm(p.d), np.linalg.norm(p.g)))
