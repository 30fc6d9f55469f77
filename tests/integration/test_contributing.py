"""The rows of CONTRIBUTING's budget, performed in a copy of the package: what they name is enough, and so few lines."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| (an? [^|]+?) \| [^|]+ \| ([^|]+) \|$", TEXT.split("## The budget")[1], re.MULTILINE))

IMPORTS = """
import numpy as np
import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
nn.set_default_context(nn.Context(["reference:float"]))
"""


class Copy:
    """A copy of the package; edits count lines."""

    def __init__(self, folder):
        self.folder, self.n_lines = folder, 0
        skipped = shutil.ignore_patterns("__pycache__", "pyinstaller", "scaffold")
        shutil.copytree(ROOT / "nn_core", folder / "nn_core", ignore=skipped)
        shutil.copyfile(ROOT / "function_spec.yaml", folder / "function_spec.yaml")

    def add(self, path, text, after=None):
        """Write lines behind the first line that has `after`, else at the end."""
        file, text = self.folder / path, textwrap.dedent(text) if after is None else text
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
        index = len(lines) if after is None else next(k for k, line in enumerate(lines) if after in line) + 1
        file.write_text("".join([*lines[:index], text, *lines[index:]]), encoding="utf-8")
        self.n_lines += sum(1 for line in text.splitlines() if line.strip())

    def change(self, path, old, new):
        """Change a line."""
        file = self.folder / path
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1
        file.write_text(text.replace(old, new), encoding="utf-8")
        self.n_lines += 1

    def output(self, program, *, generated=False):
        """Return what a program that uses the copy prints, after ``make gen`` where that is part of the row."""
        if generated:
            self._run("-m", "nn_core.operators.spec")
        return self._run("-c", IMPORTS + textwrap.dedent(program))

    def _run(self, *words):
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        done = subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


def budget(row):
    return sum(map(int, re.findall(r"\d+", ROWS[row])))


def diff():
    """Paths and added lines of the operator that CONTRIBUTING shows."""
    (text,) = re.findall(r"```diff\n(--- function_spec.*?)```", TEXT, re.DOTALL)
    parts = re.split(r"^--- (.*)\n", text, flags=re.MULTILINE)[1:]
    return {path: [line[1:] for line in lines.splitlines()] for path, lines in zip(parts[::2], parts[1::2], strict=True)}


def added_operator(copy):
    for path, lines in diff().items():
        if path.startswith("nn_core") or path == "function_spec.yaml":
            rows = [line for line in lines if line.startswith('    "SoftSign"')]
            for line in rows:
                copy.add(
                    path, line.replace("SoftSign", "SoftTurn").replace("_softsign", "_softturn") + "\n", after='    "SoftSign"'
                )
            others = [line for line in lines if line not in rows]
            text = "\n".join(others).replace("SoftSign", "SoftTurn").replace("softsign", "softturn")
            if path == "function_spec.yaml":
                copy.add(path, "\n" + text + "\n  example: F.softturn(nn.NdArray.from_numpy_array([0.5, -0.5]))\n")
            elif others:
                copy.add(path, "\n\n" + text + "\n\n\n", after="GradientCall")


USES_IT = """
    x = nn.Variable.from_numpy_array([1.0, -3.0], need_grad=True)
    x.grad.zero()
    y = F.softturn(x)
    y.forward()
    y.backward()
    print(y.d.tolist(), x.g.tolist())
"""


@pytest.mark.slow
def test_an_element_wise_operator(copy):
    added_operator(copy)
    assert copy.output(USES_IT, generated=True) == "[0.5, -0.75] [0.25, 0.0625]\n"
    assert copy.n_lines <= budget("an element-wise operator") + 6  # the rule of this one has three lines


@pytest.mark.slow
def test_an_argument(copy):
    copy.add(
        "function_spec.yaml",
        '  args:\n    slope: {type: float, default: 1.0, doc: "Factor of x.", since: "0.1"}\n',
        after="api: softsign",
    )
    copy.change(
        "nn_core/operators/reference/activation.py",
        "lambda xp, x: x / (1 + xp.abs(x))",
        "lambda xp, x, slope: slope * x / (1 + xp.abs(x))",
    )
    copy.change(
        "nn_core/operators/rules/activation.py",
        "    return root * root\n\n\ndef _",
        "    return root * root * g.slope\n\n\ndef _",
    )
    printed = copy.output(
        """
        x = nn.Variable.from_numpy_array([1.0, -3.0], need_grad=True)
        x.grad.zero()
        y = F.softsign(x, slope=2.0)
        y.forward()
        y.backward()
        print(y.d.tolist(), x.g.tolist(), F.softsign(nn.NdArray.from_numpy_array([1.0])).numpy())
        """,
        generated=True,
    )
    assert printed == "[1.0, -1.5] [0.5, 0.125] [0.5]\n"
    assert copy.n_lines <= budget("an argument")


@pytest.mark.slow
def test_a_function_of_other_functions(copy):
    path = "nn_core/functions/composite/arithmetic.py"
    copy.add(
        path,
        '''

        @door
        def cube(x: Operand) -> Operand:
            """Take the cube of every element."""
            return operators.pow_scalar(x, 3.0)
        ''',
    )
    assert (
        copy.output(
            "from nn_core.functions.composite.arithmetic import cube\nprint(cube(nn.NdArray.from_numpy_array([2.0])).numpy())"
        )
        == "[8.]\n"
    )
    assert copy.n_lines <= budget("a function of other functions")


@pytest.mark.slow
def test_a_parametric_function(copy):
    copy.add(
        "nn_core/parametric_functions/activation.py",
        '''

        @layer("scaled", [("scale", "Factor.", "()", True)])
        def scaled(inp: Operand, fix_parameters: bool = False, name: str | None = None) -> Operand:
            """Multiply by a trained number.

            Args:
                inp: Input of any shape.

            Returns:
                The shape of `inp`.
            """
            return inp * trained("scale", (), _QUARTERS, fix_parameters)
        ''',
    )
    printed = copy.output(
        """
        from nn_core.parametric_functions.activation import scaled
        y = scaled(nn.Variable.from_numpy_array([4.0]), name="last")
        y.forward()
        print(y.d, list(nn.get_parameters()), "name" in scaled.__doc__)
        """
    )
    assert printed == "[1.] ['last/scaled/scale'] True\n"
    assert copy.n_lines <= budget("a parametric function")


@pytest.mark.slow
def test_a_solver(copy):
    copy.add(
        "nn_core/solvers/plain.py",
        '''
        """Gradient descent, in the least code."""

        from collections.abc import Sequence

        from nn_core.solvers.base import Solver
        from nn_core.typing import Array, Namespace


        class Plain(Solver, closed=True):
            """Step against the gradient."""

            lr: float
            hyper_names = ("lr",)
            reads_t = False

            def __init__(self, lr: float = 0.1) -> None:
                super().__init__(lr)

            @staticmethod
            def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
                """Change `w` in place."""
                w -= hyper[0] * g
        ''',
    )
    copy.add("nn_core/solvers/__init__.py", "from nn_core.solvers.plain import Plain as Plain\n", after="import Lion as Lion")
    copy.add("nn_core/solvers/__init__.py", '    "Plain",\n', after='    "Nesterov",')
    printed = copy.output(
        """
        x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        solver = S.Plain(0.25)
        solver.set_parameters({"x": x})
        solver.minimize(F.sum(x * x))
        print(x.d)
        """
    )
    assert printed == "[2.]\n"
    assert copy.n_lines <= budget("a solver")


@pytest.mark.slow
def test_a_fusion_of_operators(copy):
    pytest.importorskip("nn_ext_cpu", reason="a backend with kernels of fusions")
    copy.add(
        "nn_core/operators/rules/fusions.py",
        '            ChainLink("Identity", optional=True),\n',
        after="requires=_adds_before_nonlinearity),",
    )
    printed = copy.output(
        """
        from nn_core.engine.graph.forward import KEEP_OUTPUTS, forward_plan
        nn.set_default_context(nn.Context(["cpu:float"]))
        x, w = nn.Variable.from_numpy_array(np.ones((1, 1, 3, 3))), nn.Variable.from_numpy_array(np.full((1, 1, 2, 2), 0.1))
        y = F.relu(F.identity(F.convolution(x, w)))
        y.forward(clear_buffer=True)
        entries = forward_plan((y,), KEEP_OUTPUTS).entries
        print(np.allclose(y.d, 0.4), [entry.node.spec.name for entry in entries if entry.node])
        """
    )
    assert printed == "True ['FusedConvolution']\n"
    assert copy.n_lines <= budget("a fusion of operators")
