"""nn_core and NNabla, whose modules have the same names: a workload that is written once serves both."""

from importlib import import_module


def modules(package):
    """Return the package called `package`, and its functions, parametric functions and solvers."""
    return [import_module(package + part) for part in ("", ".functions", ".parametric_functions", ".solvers")]


def dynamic_step(nn, solver, loss_of_a_step):
    """Return a training step that builds and computes the graph of `loss_of_a_step()` anew, for all parameters there are."""
    solver.set_parameters(nn.get_parameters())

    def step():
        with nn.auto_forward():
            loss = loss_of_a_step()
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()

    return step
