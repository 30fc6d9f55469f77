"""The kinds of package that can be written, a row each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of package.

    Attributes:
        what: Content of the package, for its README.
        hook: The hook, without ``nn_core_``.
        info: Class of the hook's results.
        entry: One of these, as Python code; empty for kinds with a template of plugin.py.
        index: Key of it in the index of the package.
        use: How a program uses it.
        requires: Requirements of the package besides nn-core.
        native: Whether it has code in C++.
    """

    what: str
    hook: str
    info: str
    entry: str
    index: str
    use: str
    requires: tuple[str, ...] = ("numpy>=2",)
    native: bool = False


KINDS: Final[Mapping[str, Kind]] = {
    "operators": Kind(
        "An operator with its gradient", "functions", "FunctionPackage", "", "functions.{{name}}_cube",
        "F.{{name}}_cube(x)",
    ),
    "native": Kind(
        "An operator with a kernel in C++", "functions", "FunctionPackage", "", "functions.{{name}}_cube",
        "F.{{name}}_cube(x)", native=True,
    ),
    "backend": Kind(
        "A backend over an array library", "backends", "BackendInfo",
        "", "backends.{{name}}", 'nn.Context(["{{name}}:float"])',
    ),
    "overlay": Kind(
        "A kernel of an operator of nn_core for a backend of nn_core", "functions", "FunctionPackage", "",
        "overlays.reference", 'nn.explain("abs", nn.Context(["reference"]))',
    ),
    "composite": Kind(
        "A function made of other functions", "composites", "CompositeInfo",
        'CompositeInfo(name="{{name}}_mean_square", target="{{package}}.functions:{{name}}_mean_square")',
        "composites.{{name}}_mean_square", "F.{{name}}_mean_square(x)",
    ),
    "parametric": Kind(
        "A layer that makes its parameters", "parametric_functions", "ParametricFunctionInfo",
        'ParametricFunctionInfo(name="{{name}}_scale", target="{{package}}.layers:{{name}}_scale")',
        "parametric_functions.{{name}}_scale", "PF.{{name}}_scale(x)",
    ),
    "solver": Kind(
        "A solver", "solvers", "SolverInfo", 'SolverInfo(name="{{Name}}Sgd", target="{{package}}.solvers:{{Name}}Sgd")',
        "solvers.{{Name}}Sgd", "S.{{Name}}Sgd(lr=0.1)",
    ),
    "initializer": Kind(
        "An initializer", "initializers", "InitializerInfo",
        'InitializerInfo(name="{{Name}}Initializer", target="{{package}}.initializers:{{Name}}Initializer")',
        "initializers.{{Name}}Initializer", "nn_core.initializer.{{Name}}Initializer()",
    ),
    "scheduler": Kind(
        "A learning-rate scheduler", "schedulers", "SchedulerInfo",
        'SchedulerInfo(name="{{Name}}Scheduler", target="{{package}}.schedulers:{{Name}}Scheduler")',
        "schedulers.{{Name}}Scheduler", "nn_core.utils.learning_rate_scheduler.{{Name}}Scheduler(0.1, 5)",
    ),
    "format": Kind(
        "A format of files with parameters", "file_formats", "FileFormatInfo",
        'FileFormatInfo(\n            name="{{name}}",\n            extensions=(".{{name}}",),\n'
        '            read="{{package}}.formats:read",\n            write="{{package}}.formats:write",\n        )',
        "file_formats..{{name}}", 'nn.save_parameters("weights.{{name}}")',
    ),
    "command": Kind(
        "A subcommand of nn-core", "commands", "CommandInfo",
        'CommandInfo(name="{{name}}", help="Count the parameters in a file.", target="{{package}}.commands:count")',
        "commands.{{name}}", "nn-core {{name}} weights.h5", ("click>=8.1", "numpy>=2"),
    ),
    "data": Kind(
        "A source of data", "data", "DataInfo",
        'DataInfo(name="{{Name}}Source", role="source", target="{{package}}.data:{{Name}}Source")',
        "data.{{Name}}Source", "nn_core.utils.data_source.{{Name}}Source(10)",
    ),
    "training": Kind(
        "An extension of the trainer", "training", "TrainingInfo",
        'TrainingInfo(name="{{Name}}Logger", role="logger", target="{{package}}.training:{{Name}}Logger")',
        "training.{{Name}}Logger", 'trainer.extend("{{Name}}Logger")',
    ),
    "pass": Kind(
        "A pass over graphs", "passes", "PassInfo",
        'PassInfo(name="{{name}}_drop", role="pass", target="{{package}}.passes:Drop")',
        "passes.{{name}}_drop", 'GraphConverter(["{{name}}_drop"]).convert(y)',
    ),
    "communicator": Kind(
        "An engine of data-parallel training", "communicators", "CommunicatorInfo",
        'CommunicatorInfo(name="{{name}}", target="{{package}}.engine:Engine")',
        "communicators.{{name}}", 'nn_core.communicators.Communicator(ctx, engine="{{name}}")',
    ),
    "viewer": Kind(
        "A viewer of graphs", "viewers", "ViewerInfo",
        'ViewerInfo(name="{{Name}}Viewer", role="viewer", target="{{package}}.viewers:{{Name}}Viewer")',
        "viewers.{{Name}}Viewer", 'nn_core.utils.inspection.view(y, "{{Name}}Viewer")',
    ),
}  # fmt: skip
