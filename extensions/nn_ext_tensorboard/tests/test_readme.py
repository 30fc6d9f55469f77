"""The lines of the README do what it says."""

import re
from pathlib import Path

import pytest

pytest.importorskip("tensorboardX")
pytest.importorskip("PIL", reason="packs the images of the README")

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.training import Trainer, Updater, every
from nn_core.utils.data_iterator import data_iterator_simple

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize("number", [0, 1])
def test_the_lines_run(number: int, tmp_path: Path) -> None:
    lines = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[number]
    x, generated = nn.Variable((2, 3)), nn.Variable((2, 1, 4, 4))
    loss = F.mean(PF.affine(x, 1) ** 2)
    solver = S.Sgd(0.1)
    solver.set_parameters(nn.get_parameters())
    with data_iterator_simple(lambda i: (x.d[0],), 4, 2) as data:
        trainer = Trainer(Updater(data, [x], loss, solver), every(1, "epoch"), tmp_path / "result")
        exec(lines, {"trainer": trainer, "loss": loss, "generated": generated})
        trainer.run()
    assert len(list((tmp_path / "result" / "tensorboard").glob("events.out.tfevents.*"))) == 1
