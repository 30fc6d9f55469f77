"""The workloads in nn_core, and in NNabla, whose modules have the same names."""

from importlib import import_module
from typing import Any

from nn_core.cli.bench.workloads import DEMO_CLASSES, DEMO_MAPS, DROPOUT, LEARNING_RATE, Programs, Sizes, Step


def programs(package: str, sizes: Sizes) -> Programs:
    """Build static graphs in the default context: on the CPU."""
    nn, F, PF, S = (import_module(package + part) for part in ("", ".functions", ".parametric_functions", ".solvers"))

    def matmul() -> Step:
        a, b = map(nn.Variable.from_numpy_array, sizes.matrices())
        return _forward(F.affine(a, b))

    def convolution() -> Step:
        x, w = map(nn.Variable.from_numpy_array, sizes.convolution())
        return _forward(F.convolution(x, w, pad=(1, 1)))

    def inference() -> Step:
        images, _ = sizes.digits()
        return _forward(F.softmax(_network(nn, F, PF, nn.Variable.from_numpy_array(images), is_training=False)))

    def training() -> Step:
        images, labels = sizes.digits()
        x, t = nn.Variable(images.shape), nn.Variable(labels.shape)
        loss = F.mean(F.softmax_cross_entropy(_network(nn, F, PF, x, is_training=True), t))
        solver = S.Adam(alpha=LEARNING_RATE)
        solver.set_parameters(nn.get_parameters())

        def step() -> object:
            x.d, t.d = images, labels
            loss.forward(clear_no_need_grad=True)
            solver.zero_grad()
            loss.backward(clear_buffer=True)
            solver.update()
            return loss

        return step

    return {"matmul": matmul, "convolution": convolution, "training": training, "inference": inference}


def _forward(y: Any) -> Step:
    def step() -> object:
        y.forward(clear_buffer=True)
        return y.d

    return step


def _network(nn: Any, F: Any, PF: Any, h: Any, *, is_training: bool) -> Any:
    """Return the network of ``examples/digits_demo.py``: (B, 1, 8, 8) -> (B, 10)."""
    for i, maps in enumerate(DEMO_MAPS):
        with nn.parameter_scope(f"conv{i}"):
            h = PF.convolution(h, maps, (3, 3), pad=(1, 1), with_bias=False)
            h = F.relu(PF.batch_normalization(h, batch_stat=is_training))
        if i > 0:
            h = F.max_pooling(h, (2, 2))
    return PF.affine(F.dropout(h, DROPOUT) if is_training else h, DEMO_CLASSES, name="classifier")
