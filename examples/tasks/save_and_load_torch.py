"""Save the parameters of a network, and load them into a new one."""

import torch

x = torch.ones(2, 3)
model = torch.nn.Linear(3, 4)
torch.save(model.state_dict(), "net.pt")
again = torch.nn.Linear(3, 4)
again.load_state_dict(torch.load("net.pt"))
assert torch.equal(again(x), model(x))
