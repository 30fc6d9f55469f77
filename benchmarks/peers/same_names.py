"""nn_core and NNabla, whose modules have the same names: a workload that is written once serves both."""

from importlib import import_module


def modules(package):
    """The package called `package`, and its functions, parametric functions and solvers."""
    return [import_module(package + part) for part in ("", ".functions", ".parametric_functions", ".solvers")]
