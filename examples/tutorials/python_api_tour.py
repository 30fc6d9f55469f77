"""A tour of the Python interface: arrays, variables, functions, parameters, solvers, and a net that learns a length.

    python examples/tutorials/python_api_tour.py

Each part is a function of its own that checks what it shows.
"""

import tempfile
from pathlib import Path

import numpy as np
from pictures import new_figure
from tutorial import expect, start

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S


def arrays():
    """NdArray: values that know no device and no dtype until somebody asks for them."""
    a = nn.NdArray((2, 3, 4))
    # .data is a NumPy array over the same memory, so writing to it changes the NdArray.
    a.data = np.random.randn(*a.shape)
    a.data[0, :, ::2] = 0
    assert a.data[0].sum() == a.data[0, :, 1::2].sum()
    # zero() and fill() happen on the device, when somebody reads the values.
    a.fill(1)
    b = nn.NdArray.from_numpy_array(np.ones(a.shape))
    assert np.array_equal(a.data, b.data)
    print("an array:", a, "of dtype", a.dtype)


def variables():
    """Variable: a place in a graph, with values (data, d) and a gradient (grad, g)."""
    x = nn.Variable((2, 3, 4), need_grad=True)
    x.d = 1.2345
    x.g = 1
    x.grad.zero()
    assert np.array_equal(x.d, x.data.data)
    assert not x.g.any()
    # A variable that no function computed is a leaf.
    assert x.parent is None
    y = nn.Variable.from_numpy_array(np.ones(3), np.zeros(3), need_grad=True)
    print("a variable:", y, y.d, y.g)
    return x


def functions(x):
    """Functions build a graph; forward() and backward() run it."""
    sigmoid = F.sigmoid(x)
    total = F.sum(sigmoid)
    print("computed by", sigmoid.parent.name, "from", sigmoid.parent.inputs)
    total.forward()
    np.testing.assert_allclose(total.d, np.sum(1 / (1 + np.exp(-x.d))), rtol=1e-5)
    # backward() adds to the gradients of leaves, so they are set to zero before.
    x.grad.zero()
    total.backward()
    np.testing.assert_allclose(x.g, sigmoid.d * (1 - sigmoid.d), rtol=1e-5)

    # Parameters are variables like others. An input that needs no gradient gets none.
    x = nn.Variable.from_numpy_array(np.random.randn(5, 2).astype(np.float32))
    w = nn.Variable.from_numpy_array(np.random.randn(2, 3).astype(np.float32), need_grad=True)
    b = nn.Variable.from_numpy_array(np.random.randn(3).astype(np.float32), need_grad=True)
    for variable in (x, w, b):
        variable.grad.zero()
    y = F.affine(x, w, b)
    y.forward()
    y.backward()  # from ones, when the variable is not a scalar
    np.testing.assert_allclose(y.d, x.d @ w.d + b.d, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(b.g, np.full(3, 5.0))
    assert not x.g.any()


def parametric_functions():
    """Parametric functions make their parameters, and find them again under the name of the scope."""
    x = nn.Variable((5, 2))
    with nn.parameter_scope("affine1"):
        PF.affine(x, 3)
    PF.affine(x, 3, name="affine1")  # the same parameters, named in another way
    with nn.parameter_scope("outer"):
        h = PF.affine(x, 3)
        with nn.parameter_scope("inner"):
            PF.affine(h, 4)
        print("in the scope outer:", list(nn.get_parameters()))
    print("all parameters:", list(nn.get_parameters()))
    assert len(nn.get_parameters()) == 6
    with nn.parameter_scope("outer"):
        nn.clear_parameters()
    assert list(nn.get_parameters()) == ["affine1/affine/W", "affine1/affine/b"]
    nn.clear_parameters()


def imperative():
    """Compute at once with NdArrays, without a graph."""
    x = nn.NdArray.from_numpy_array(np.arange(4).reshape(2, 2))
    y = F.relu(x - 1)
    assert np.array_equal(y.data, [[0, 0], [1, 2]])
    # x = x + 1 would make a new array; copy_from() and += change this one.
    x.copy_from(x + 1)
    x += 1
    assert np.array_equal(x.data, np.arange(4).reshape(2, 2) + 2)
    print("imperative:", y.data.tolist())


def one_step():
    """One step of gradient descent by hand, and the same step by a solver."""
    x = nn.Variable.from_numpy_array(np.random.randn(16, 2).astype(np.float32))
    t = nn.Variable.from_numpy_array(np.random.randn(16, 1).astype(np.float32))
    y = PF.affine(F.tanh(PF.affine(x, 512, name="fc1")), 1, name="fc2")
    loss = F.mean(F.squared_error(y, t))
    parameters = nn.get_parameters()
    solver = S.Sgd(lr=0.001)
    solver.set_parameters(parameters)
    loss.forward()
    solver.zero_grad()
    loss.backward()
    before = {name: parameter.d.copy() for name, parameter in parameters.items()}
    solver.update()
    for name, parameter in parameters.items():
        by_hand = nn.NdArray.from_numpy_array(before[name])
        by_hand -= parameter.grad * 0.001
        np.testing.assert_allclose(parameter.d, by_hand.data, rtol=1e-5, atol=1e-7)
    nn.clear_parameters()


def vector2length(x):
    """Return the function that the network learns: (B, 2) -> (B, 1)."""
    return np.sqrt(np.sum(x**2, axis=1, keepdims=True))


def length_mlp(x):
    """Five affine layers: (B, 2) -> (B, 1)."""
    h = x
    for i, size in enumerate((4, 8, 4, 2)):
        h = F.tanh(PF.affine(h, size, name=f"fc{i}"))
    return PF.affine(h, 1, name="fc")


def train_length(n_steps=2000, batch_size=100):
    """Train `length_mlp` on random points of a square; returns the losses."""
    x = nn.Variable((batch_size, 2))
    t = nn.Variable((batch_size, 1))
    y = length_mlp(x)
    loss = F.mean(F.squared_error(y, t))
    solver = S.Adam(alpha=0.01)
    solver.set_parameters(nn.get_parameters())
    losses = []
    for step in range(n_steps):
        x.d = np.random.uniform(-1, 1, size=(batch_size, 2))
        t.d = vector2length(x.d)
        # The clear options let the pass reuse the memory of values that nothing reads any more.
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.weight_decay(1e-6)
        solver.update()
        losses.append(float(loss.d))
        if step % 200 == 0 or step == n_steps - 1:
            print(f"loss in step {step:4d}: {losses[-1]:.6f}")

    # A value that was cleared cannot be read; a persistent one is kept.
    y.persistent = True
    loss.forward(clear_buffer=True)
    np.testing.assert_allclose(np.mean((y.d - t.d) ** 2), loss.d, rtol=1e-3)
    return losses


def predict(points):
    """Return the learned lengths (N, 1) of `points` (N, 2), computed imperatively."""
    return length_mlp(nn.NdArray.from_numpy_array(points.astype(np.float32))).data


def plot_lengths(path, n=100):
    """Draw the true and the learned length over the square on one scale, and the error."""
    side = np.linspace(-1, 1, n)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    truth, learned = (function(points).reshape(n, n) for function in (vector2length, predict))
    figure, (left, middle, right) = new_figure(ncols=3, figsize=(10, 2.9), subplot_kw={"aspect": "equal"})
    levels = np.linspace(0, 1.5, 11)
    for axis, title, values in ((left, "true length", truth), (middle, "learned length", learned)):
        picture = axis.contourf(side, side, values, levels=levels, extend="max")
        axis.set_title(title)
    figure.colorbar(picture, ax=[left, middle], label="length", shrink=0.85)
    limit = float(np.abs(learned - truth).max())
    errors = right.pcolormesh(side, side, learned - truth, cmap="RdBu_r", vmin=-limit, vmax=limit, shading="nearest")
    right.set_title("error")
    figure.colorbar(errors, ax=right, label="learned - true", shrink=0.85)
    for axis in (left, middle, right):
        axis.set(xlabel="first component", xlim=(-1, 1), ylim=(-1, 1))
        axis.grid(visible=False)
    left.set_ylabel("second component")
    figure.savefig(path)


def save_and_load():
    """Write the parameters to a file and read them again, at their place and in a scope."""
    values = {name: parameter.d.copy() for name, parameter in nn.get_parameters().items()}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "vector2length.h5")
        nn.save_parameters(path)
        nn.clear_parameters()
        nn.load_parameters(path)
        with nn.parameter_scope("copy"):
            nn.load_parameters(path)
    print("loaded:", list(nn.get_parameters()))
    for name, value in values.items():
        assert np.array_equal(nn.get_parameters()[name].d, value)
        assert np.array_equal(nn.get_parameters()[f"copy/{name}"].d, value)


def main():
    """Every stop of the tour."""
    pictures = start(__doc__)
    arrays()
    functions(variables())
    parametric_functions()
    imperative()
    one_step()
    losses = train_length()
    if pictures is not None:
        plot_lengths(pictures / "lengths.png")
    save_and_load()
    points = np.random.uniform(-1, 1, size=(1000, 2))
    expect("loss in step 0", losses[0], low=0.05)
    expect("mean loss of the last 100 steps", np.mean(losses[-100:]), high=0.002)
    expect("mean error of 1000 predictions", np.abs(predict(points) - vector2length(points)).mean(), high=0.05)


if __name__ == "__main__":
    main()
