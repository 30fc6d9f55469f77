"""Run an LSTM over sequences of different lengths, and train on its last states."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

sequences = [2 * torch.rand(length, 2) - 1 for length in (3, 1, 4, 2)]
t = torch.stack([sequence[:, 0].sum(dim=0, keepdim=True) for sequence in sequences])
lstm, output = nn.LSTM(2, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*lstm.parameters(), *output.parameters()], 0.05)
for _ in range(60):
    _, (last, _) = lstm(pack_sequence(sequences, enforce_sorted=False))
    loss = nn.functional.mse_loss(output(last[0]), t)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert loss.item() < 0.1
