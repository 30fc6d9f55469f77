"""Binary Tree-LSTM with 32 units over random trees of 5 to 20 words, classified at the root, one tree a step, SGD.

Tai et al. (2015), Improved semantic representations from tree-structured long short-term memory networks, section 3.2.
Nearly every tree has a structure that was not there before, so nothing that was compiled for one serves the next.
"""

import random

import numpy as np

from benchmarks.peers.same_names import dynamic_step, modules

WORDS, WIDTH, CLASSES, SIZES = 1000, 32, 5, range(5, 21)


def random_tree(chance, words):
    """`words` as the leaves of a binary tree: a number, or a pair of trees."""
    if len(words) == 1:
        return words[0]
    cut = chance.randint(1, len(words) - 1)
    return random_tree(chance, words[:cut]), random_tree(chance, words[cut:])


def sample(chance):
    """Return the words of a random tree, the tree of their places, and its class."""
    places = range(chance.choice(SIZES))
    words = np.array([chance.randrange(WORDS) for _ in places])
    return words, random_tree(chance, places), chance.randrange(CLASSES)


def nn_core():
    """Dynamic graph."""
    return _dynamic(*modules("nn_core"))


def nnabla():
    """Dynamic graph."""
    return _dynamic(*modules("nnabla"))


def _dynamic(nn, F, PF, S):
    chance = random.Random(0)

    def part(x, i, row=0):
        return x[row : row + 1, i * WIDTH : (i + 1) * WIDTH]

    def states(tree, leaves):
        if isinstance(tree, int):
            return part(leaves, 0, tree), part(leaves, 1, tree)
        (h1, c1), (h2, c2) = (states(branch, leaves) for branch in tree)
        gates = PF.affine(F.concatenate(h1, h2, axis=1), 5 * WIDTH, name="node")
        i, f1, f2, o = (F.sigmoid(part(gates, n)) for n in range(4))
        c = i * F.tanh(part(gates, 4)) + f1 * c1 + f2 * c2
        return o * F.tanh(c), c

    def network(words, tree, label):
        embedded = PF.embed(nn.Variable.from_numpy_array(words), WORDS, WIDTH)
        h, _ = states(tree, PF.affine(embedded, 2 * WIDTH, name="leaf"))
        target = nn.Variable.from_numpy_array(np.array([[label]]))
        return F.mean(F.softmax_cross_entropy(PF.affine(h, CLASSES, name="out"), target))

    network(np.arange(2), (0, 1), 0)
    return dynamic_step(nn, S.Sgd(lr=1e-2), lambda: network(*sample(chance)))


def torch():
    """Eager."""
    import torch as th

    chance = random.Random(0)
    embed = th.nn.Embedding(WORDS, WIDTH)
    leaf, node = th.nn.Linear(WIDTH, 2 * WIDTH), th.nn.Linear(2 * WIDTH, 5 * WIDTH)
    out = th.nn.Linear(WIDTH, CLASSES)
    optimizer = th.optim.SGD(th.nn.ModuleList([embed, leaf, node, out]).parameters(), 1e-2)

    def part(x, i, row=0):
        return x[row : row + 1, i * WIDTH : (i + 1) * WIDTH]

    def states(tree, leaves):
        if isinstance(tree, int):
            return part(leaves, 0, tree), part(leaves, 1, tree)
        (h1, c1), (h2, c2) = (states(branch, leaves) for branch in tree)
        gates = node(th.cat((h1, h2), dim=1))
        i, f1, f2, o = (th.sigmoid(part(gates, n)) for n in range(4))
        c = i * th.tanh(part(gates, 4)) + f1 * c1 + f2 * c2
        return o * th.tanh(c), c

    def step():
        words, tree, label = sample(chance)
        optimizer.zero_grad()
        h, _ = states(tree, leaf(embed(th.from_numpy(words))))
        th.nn.functional.cross_entropy(out(h), th.tensor([label])).backward()
        optimizer.step()

    return step
