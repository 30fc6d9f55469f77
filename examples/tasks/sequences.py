"""Run an LSTM over sequences of different lengths, and train on its last states."""

import numpy as np

import nn_core as nn
from nn_core import PF, F, S

rng = np.random.default_rng(0)
sequences = [nn.Variable.from_numpy_array(rng.uniform(-1, 1, (length, 2))) for length in (3, 1, 4, 2)]
t = F.stack(*[F.sum(sequence[:, 0], keepdims=True) for sequence in sequences])
last, _, _ = PF.contrib.n_step_lstm(None, None, sequences, n_layers=1, n_units=8)
loss = F.mean(F.squared_error(PF.affine(last[0], 1), t))
solver = S.Adam(0.05)
for _ in range(60):
    solver.minimize(loss)
assert loss.item() < 0.1
