"""Training in C: losses and parameters are those of nn_core, in memory that is known."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_digits

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from extensions.nn_ext_c.tests.compiled import compile_files
from nn_core.ext import ArgumentError
from nn_ext_c import export_training, export_training_source

BATCH = 4
SOLVERS = {
    "Sgd": lambda: S.Sgd(0.1),
    "Momentum": lambda: S.Momentum(0.02),
    "Nesterov": lambda: S.Nesterov(0.02),
    "Adagrad": lambda: S.Adagrad(0.01),
    "RMSprop": lambda: S.RMSprop(0.001),
    "Adam": lambda: S.Adam(0.002),
}


class Trained:
    """A source of training, compiled; its context lies between bytes that show what is written outside of it."""

    def __init__(self, folder, source):
        self.source = source
        (folder / "net.h").write_text(source.header)
        (folder / "net.c").write_text(source.code)
        made = compile_files(folder, [folder / "net.c"], "net.so", "-O1", "-shared", "-fPIC")
        self.library = ctypes.CDLL(str(made))
        self.size = source.arena_bytes + source.kept_bytes
        self.memory = np.full(self.size + 128, 0xA5, np.uint8)
        self.library.net_reset(self._context())

    def _context(self):
        return ctypes.c_void_p(self.memory[64:].ctypes.data)

    def call(self, function, *arrays):
        """Return the status of a function; outputs are among the arrays."""
        status = getattr(self.library, f"net_{function}")(self._context(), *(ctypes.c_void_p(a.ctypes.data) for a in arrays))
        assert (self.memory[:64] == 0xA5).all()
        assert (self.memory[64 + self.size :] == 0xA5).all(), "written past the context"
        return status

    def train(self, *inputs):
        """Return the loss of an update."""
        loss = np.zeros(1, np.float32)
        assert self.call("train", *(np.ascontiguousarray(array, np.float32) for array in inputs), loss) == 0
        return loss[0]

    def kept(self):
        """Return the numbers that the context keeps: parameters, states, and the learning rate with the count as floats."""
        return np.frombuffer(self.memory[64 + self.source.arena_bytes : 64 + self.size].tobytes(), np.float32)


def digits_net(x, batch_stat):
    h = PF.convolution(x, 8, (3, 3), pad=(1, 1), with_bias=False, name="c1")
    h = F.max_pooling(F.relu(PF.batch_normalization(h, batch_stat=batch_stat, name="bn")), (2, 2))
    h = F.max_pooling(F.relu(PF.convolution(h, 16, (3, 3), pad=(1, 1), name="c2")), (2, 2))
    return PF.affine(h, 10, name="a")


@pytest.fixture
def scope():
    with nn.parameter_scope("", {}):
        yield


def step(loss, solver, decay=0.0):
    """Do an update in nn_core and return the loss before it."""
    loss.forward()
    solver.zero_grad()
    loss.backward()
    if decay:
        solver.weight_decay(decay)
    solver.update()
    return float(loss.d)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_net_of_the_digits_trains_as_in_nn_core(name, scope, tmp_path):
    np.random.seed(1)
    images, labels = load_digits(return_X_y=True)
    images, labels = (images / 16).reshape(-1, 1, 8, 8), labels[:, None]
    x, t, one = nn.Variable((BATCH, 1, 8, 8)), nn.Variable((BATCH, 1)), nn.Variable((1, 1, 8, 8))
    loss = F.mean(F.softmax_cross_entropy(digits_net(x, True), t))
    scores = digits_net(one, False)
    solver = SOLVERS[name]()
    solver.set_parameters(nn.get_parameters())
    source = export_training_source(
        loss, {"image": x, "label": t}, solver=solver, outputs={"scores": scores}, output_inputs={"image": one},
        weight_decay=1e-4, name="net",
    )  # fmt: skip
    assert source.arena_bytes <= 64 * 1024
    trained = Trained(tmp_path, source)
    rng = np.random.default_rng(2)
    for _ in range(100):
        chosen = rng.integers(0, len(images), BATCH)
        x.d, t.d = images[chosen], labels[chosen]
        found = trained.train(x.d, t.d)
        assert found == pytest.approx(step(loss, solver, 1e-4), rel=1e-5, abs=1e-5)
    wanted = np.concatenate([v.d.reshape(-1) for v in nn.get_parameters().values()])
    statistics = np.concatenate([v.d.reshape(-1) for k, v in nn.get_parameters(grad_only=False).items() if not v.need_grad])
    np.testing.assert_allclose(trained.kept()[: wanted.size], wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(trained.kept()[wanted.size : wanted.size + statistics.size], statistics, rtol=1e-5, atol=1e-5)
    one.d = images[:1]
    scores.forward()
    result = np.zeros(10, np.float32)
    assert trained.call("run", np.ascontiguousarray(one.d, np.float32), result) == 0
    np.testing.assert_allclose(result, scores.d[0], rtol=1e-4, atol=1e-4)


def line():
    """Return the inputs and the loss of a line through points."""
    x, t = nn.Variable((4, 3)), nn.Variable((4, 1))
    x.d, t.d = np.arange(12).reshape(4, 3) / 12, np.ones((4, 1))
    return x, t, F.mean(F.squared_error(PF.affine(x, 1), t))


def test_a_wrong_label_changes_nothing(scope, tmp_path):
    x, t = nn.Variable((2, 3)), nn.Variable((2, 1))
    loss = F.mean(F.softmax_cross_entropy(PF.affine(x, 5), t))
    trained = Trained(tmp_path, export_training_source(loss, {"x": x, "t": t}, solver=S.Adam(), name="net"))
    trained.train(np.ones((2, 3)), np.zeros((2, 1)))
    before = trained.kept().tobytes()
    labels = np.array([[1], [5]], np.float32)
    assert trained.call("train", np.ones((2, 3), np.float32), labels, np.zeros(1, np.float32)) == 1
    assert trained.kept().tobytes() == before
    trained.train(np.ones((2, 3)), np.array([[1], [-1]]))  # a negative label is ignored
    assert trained.kept().tobytes() != before


def test_a_parameter_whose_gradient_is_another_one(tmp_path):
    a, b = (nn.Variable.from_numpy_array(np.array(v, np.float32), need_grad=True) for v in ([1.0, 2.0], [3.0, 5.0]))
    solver = S.Sgd(0.5)
    solver.set_parameters({"a": a, "b": b})
    trained = Trained(tmp_path, export_training_source(F.sum(a * b), {}, solver=solver, name="net"))
    assert trained.train() == 13
    np.testing.assert_array_equal(trained.kept()[:4], [-0.5, -0.5, 2.5, 4.0])


def test_training_goes_on_where_the_solver_is(scope, tmp_path):
    x, t, loss = line()
    solver = S.Adam(0.1)
    solver.set_parameters(nn.get_parameters())
    for _ in range(5):
        step(loss, solver)
    trained = Trained(tmp_path, export_training_source(loss, {"x": x, "t": t}, solver=solver, name="net"))
    for _ in range(5):
        assert trained.train(x.d, t.d) == pytest.approx(step(loss, solver), rel=1e-5)


def test_the_learning_rate_may_be_changed(scope, tmp_path):
    x, t, loss = line()
    trained = Trained(tmp_path, export_training_source(loss, {"x": x, "t": t}, solver=S.Sgd(0.5), name="net"))
    rate = trained.memory[64 + trained.size - 8 :][:4].view(np.float32)
    assert rate[0] == 0.5
    rate[0] = 0
    assert len({trained.train(x.d, t.d) for _ in range(3)}) == 1
    rate[0] = 0.1
    assert len({trained.train(x.d, t.d) for _ in range(3)}) == 3


@pytest.mark.parametrize("build", [PF.lstm, PF.gru, PF.rnn])
def test_recurrent_networks(build, scope, tmp_path):
    np.random.seed(3)
    x, h = nn.Variable((5, 2, 3)), nn.Variable((1, 1, 2, 4))
    x.d, h.d = np.random.normal(size=x.shape), 0
    made = build(x, h, h) if build is PF.lstm else build(x, h)
    loss = F.mean(made[0] ** 2)
    solver = S.Sgd(0.1)
    solver.set_parameters(nn.get_parameters())
    trained = Trained(tmp_path, export_training_source(loss, {"x": x, "h": h}, solver=solver, name="net"))
    for _ in range(5):
        assert trained.train(x.d, h.d) == pytest.approx(step(loss, solver), rel=1e-5, abs=1e-6)


def test_sanitizers_find_nothing(scope, tmp_path):
    x, t = nn.Variable((BATCH, 1, 8, 8)), nn.Variable((BATCH, 1))
    loss = F.mean(F.softmax_cross_entropy(digits_net(x, True), t))
    export_training(tmp_path / "net.c", loss, {"x": x, "t": t}, solver=S.Adam())
    (tmp_path / "main.c").write_text(
        '#include "net.h"\n'
        "static net_context context;\n"
        "static float x[NET_TRAIN_INPUT_X_SIZE], t[NET_TRAIN_INPUT_T_SIZE], loss[NET_TRAIN_OUTPUT_LOSS_SIZE];\n"
        "int main(void)\n{\n    net_reset(&context);\n"
        "    for (int k = 0; k < 3; ++k) { if (net_train(&context, x, t, loss)) { return 1; } }\n"
        "    return context.updates == 3u && loss[0] > 0.0f && loss[0] < 3.0f ? 0 : 2;\n}\n"
    )
    files = [tmp_path / "net.c", tmp_path / "main.c"]
    program = compile_files(tmp_path, files, "net", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.skipif(not shutil.which("arm-linux-gnueabihf-gcc") or not shutil.which("qemu-arm"), reason="no compiler for ARM")
def test_an_arm_processor_trains_alike(scope, tmp_path):
    x, t, loss = line()
    solver = S.Momentum(0.1)
    solver.set_parameters(nn.get_parameters())
    export_training(tmp_path / "net.c", loss, {"x": x, "t": t}, solver=solver)
    arrays = [
        f"static const float {name}[] = {{{', '.join(f'{value:.9e}f' for value in array.d.reshape(-1))}}};\n"
        for name, array in {"x": x, "t": t}.items()
    ]
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "net.h"\nstatic net_context context;\n'
        f"{''.join(arrays)}int main(void)\n{{\n    float loss[1];\n    net_reset(&context);\n"
        "    for (int k = 0; k < 5; ++k) {\n        net_train(&context, x, t, loss);\n"
        '        printf("%.9g\\n", (double)loss[0]);\n    }\n    return 0;\n}\n'
    )
    command = ["arm-linux-gnueabihf-gcc", "-O2", "-static", "-std=c99", "-Wall", "-Werror"]
    subprocess.run([*command, tmp_path / "net.c", tmp_path / "main.c", "-o", tmp_path / "net", "-lm"], check=True)
    printed = subprocess.run(["qemu-arm", tmp_path / "net"], capture_output=True, text=True, check=True).stdout.split()
    np.testing.assert_allclose(np.array(printed, float), [step(loss, solver) for _ in range(5)], rtol=1e-5)


def test_refusals(scope):
    x, t, loss = line()
    with pytest.raises(ArgumentError, match=r"loss must be a Variable of one number, got .*\n  hint: F.mean"):
        export_training_source(F.squared_error(x, x), {"x": x}, solver=S.Sgd())
    with pytest.raises(ArgumentError, match=r"solver must be one of Sgd, .*Adam, got Lion"):
        export_training_source(loss, {"x": x, "t": t}, solver=S.Lion())
    with pytest.raises(ArgumentError, match=r"must draw no random numbers, got Dropout"):
        export_training_source(F.mean(F.dropout(PF.affine(x, 1))), {"x": x}, solver=S.Sgd())
    with pytest.raises(ArgumentError, match=r"depend on a parameter that is trained, got none\n  hint: solver.set_parameters"):
        export_training_source(F.mean(x), {"x": x}, solver=S.Sgd())
    w = nn.Variable.from_numpy_array(np.ones(3, np.float32), need_grad=True)
    solver = S.Sgd()
    solver.set_parameters({"w": w})
    with pytest.raises(ArgumentError, match=r"only batch normalizations may rewrite their inputs, got MeanSubtraction"):
        export_training_source(F.mean(PF.mean_subtraction(x) * w), {"x": x}, solver=solver)
