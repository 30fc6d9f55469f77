"""Find the function whose gradient is NaN."""

import torch

x = torch.tensor([0.0, 1.0], requires_grad=True)
message = ""
try:
    with torch.autograd.detect_anomaly(check_nan=True):
        loss = (torch.sqrt(x) * x).sum()
        loss.backward()
except RuntimeError as error:
    message = str(error)
assert "SqrtBackward" in message
