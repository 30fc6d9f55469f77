"""Write the files of PyTorch that tests/unit/test_torch_files.py reads: needs torch.

python -m tools.release.save_torch_files tests/data/torch
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn


def main(folder: str) -> None:
    """Write a state dictionary, a checkpoint with an optimizer, tensors of all dtypes and layouts, and a whole module."""
    target = Path(folder)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 4))
    model(torch.randn(5, 2, 4, 4)).sum().backward()
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.step()
    torch.save(model.state_dict(), target / "state.pth")
    torch.save({"epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, target / "checkpoint.pt")
    torch.save(model.state_dict(), target / "protocol4.pth", pickle_protocol=4)
    torch.save(model, target / "module.pth")
    torch.save(model.state_dict(), target / "old.pth", _use_new_zipfile_serialization=False)
    torch.save({"w": torch.eye(3).to_sparse()}, target / "sparse.pth")
    whole = torch.arange(24.0).reshape(4, 6)
    odd = {
        "turned": whole.T[1:3],
        "part": whole[1:, ::2],
        "parameter": nn.Parameter(whole[0]),
        "number": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "half": whole[0].half(),
        "bfloat16": whole[0].bfloat16(),
        "float8": whole[0].to(torch.float8_e4m3fn),
        "uint16": torch.tensor([0, 1, 40000], dtype=torch.uint16),
        **{
            str(dtype).removeprefix("torch."): (torch.arange(5) - 2).to(dtype)
            for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float64, torch.bool)
        },
        "inner": {"values": [1, 2.5, "text", None, (True, torch.Size([2]))], 7: torch.ones(2)},
    }
    torch.save(odd, target / "odd.pth")
    np.savez(target / "state.npz", **{name: tensor.numpy() for name, tensor in model.state_dict().items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
