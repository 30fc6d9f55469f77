"""The mode for unchanged programs of NNabla: who switches it on, and each of its effects."""

import logging
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.compat import unchanged
from nn_core.compat.dropped import add_hint
from nn_core.errors import ArgumentError
from nn_core.ext_utils import get_extension_context
from nn_core.settings import (
    is_nnabla_program,
    keeps_values,
    set_keep_values,
    set_nnabla_program,
    set_switches,
    switches,
)
from nn_core.utils.download import get_data_home

PAGE = Path(__file__).parents[3] / "docs" / "from_nnabla.md"


@pytest.fixture
def mode():
    set_nnabla_program(True)
    yield
    set_nnabla_program(False)


@pytest.fixture
def program(command, tmp_path, monkeypatch):
    """Runs a program by ``nn-core run``, with an empty home."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(code, *words):
        (tmp_path / "program.py").write_text(textwrap.dedent(code), encoding="utf-8")
        if words:
            return subprocess.run(
                [sys.executable, *words, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True
            )
        result = command.run(["run", "program.py"], tmp_path)
        result.check_returncode()
        return result

    return run


def test_the_page_lists_every_effect():
    rows = dict(re.findall(r"^\| (\w+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert {name: rows.get(name, "").replace("`", "") for name in unchanged.EFFECTS} == dict(unchanged.EFFECTS)


def test_the_report_says_whether_the_mode_is_on(mode):
    assert unchanged.report()[0] == "mode for unchanged programs of NNabla: on"
    set_nnabla_program(False)
    assert unchanged.report()[0] == "mode for unchanged programs of NNabla: off; `nn-core run` switches it on"
    assert len(unchanged.report()) == 1 + len(unchanged.EFFECTS)


def test_importing_the_names_does_not_switch_it_on(program):
    code = "import nn_core.compat.nnabla, nn_core.compat.unchanged\nfrom nnabla.settings import is_nnabla_program\n"
    assert program(f"{code}print(is_nnabla_program())\n", "-X", "utf8").stdout == "False\n"


def test_an_explicit_call_switches_it_on(program):
    code = "from nn_core.compat.unchanged import run_unchanged\nrun_unchanged()\nrun_unchanged()\nimport nnabla.settings\n"
    assert program(f"{code}print(nnabla.settings.is_nnabla_program())\n", "-X", "utf8").stdout == "True\n"


def test_only_booleans_switch_it():
    with pytest.raises(ArgumentError, match="set_nnabla_program: unchanged must be True or False, got 1"):
        set_nnabla_program(1)


def test_the_logger_prints_from_info_on(program):
    code = """
        import nnabla as nn
        import nnabla.logger as module_or_logger
        from nnabla import logger
        from nnabla.logger import logger as same
        assert nn.logger is logger is same is module_or_logger
        logger.info("epoch %d", 1)
        logger.debug("unseen")
    """
    assert re.fullmatch(r"[-\d]+ [:,\d]+ \[nn_core\]\[INFO\]: epoch 1\n", program(code).stderr)


def test_a_program_that_has_set_up_logging_keeps_its_setup(program):
    code = """
        import logging, sys
        import nnabla as nn
        nn.logger.setLevel(logging.ERROR)
        nn.logger.warning("unseen")
        nn.logger.error("seen")
    """
    assert program(code).stderr.endswith("[nn_core][ERROR]: seen\n") and "unseen" not in program(code).stderr


@pytest.mark.parametrize("first", ["nnabla", "nnabla.functions", "nnabla_ext.reference", "nnabla_ext"])
def test_interpreters_that_the_program_starts_find_the_names(program, first):
    code = f"""
        import subprocess, sys
        code = "import {first}, nnabla, nnabla_ext, nn_core, nn_core.settings as s\\n"
        code += "print(nnabla is nn_core, s.is_nnabla_program())"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    """
    assert program(code).stdout == "True True\n\n"


def test_the_data_home(program, mode, tmp_path, monkeypatch):
    code = "from nnabla.utils.data_source_loader import download, get_data_home\nprint(get_data_home())\n"
    assert program(code).stdout == f"{tmp_path / 'nnabla_data'}\n"
    monkeypatch.setenv("NN_CORE_DATA", str(tmp_path / "elsewhere"))
    assert program(code, "-m", "nn_core", "run").stdout == f"{tmp_path / 'elsewhere'}\n"
    set_nnabla_program(False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr("nn_core.utils.download.settings", lambda: type("Unset", (), {"data": None}))
    assert get_data_home() == str(tmp_path / "nn_core_data")


def test_an_unknown_keyword_of_a_context_is_ignored_with_one_warning(mode, caplog):
    with caplog.at_level(logging.WARNING):
        contexts = [get_extension_context("reference", acme="float") for _ in range(2)]
    assert contexts[0] == contexts[1] == get_extension_context("reference")
    assert [record.message for record in caplog.records] == [
        "get_extension_context: 'reference' takes device_id, type_config, got 'acme', which is ignored"
    ]
    set_nnabla_program(False)
    assert not is_nnabla_program()
    with pytest.raises(ArgumentError, match="takes device_id, type_config, got 'acme'"):
        get_extension_context("reference", acme="float")


@pytest.mark.parametrize("dynamic", [False, True])
def test_values_that_clear_flags_would_free_are_kept(dynamic):
    set_keep_values(True)
    try:
        x = nn.Variable.from_numpy_array([1.0, 2.0], need_grad=True)
        for _ in range(3):
            x.grad.zero()
            with nn.auto_forward(dynamic):
                h = F.exp(x)
                y = F.sum(h * h)
            if not dynamic:
                y.forward(clear_buffer=True)
            y.backward(clear_buffer=True)
            np.testing.assert_allclose(h.d, np.exp(x.d), rtol=1e-5)
            np.testing.assert_allclose(h.g, 2 * np.exp(x.d), rtol=1e-5)
    finally:
        set_keep_values(False)
    y.forward(clear_buffer=True)
    assert h.data.clear_called
    with pytest.raises(ArgumentError, match="set_keep_values: keep must be True or False, got 1"):
        set_keep_values(1)


def test_switches_that_are_set_back_free_values_again():
    before = switches()
    set_keep_values(True)
    assert keeps_values()
    set_switches(before)
    assert not keeps_values()


def test_the_option_that_keeps_values(program):
    code = """
        import os, subprocess, sys
        import nnabla as nn, nnabla.functions as F
        from nnabla.settings import keeps_values
        h = F.exp(nn.Variable.from_numpy_array([0.0]))
        F.sum(h).forward(clear_buffer=True)
        print(keeps_values(), h.d, os.environ["NN_CORE_KEEP_VALUES"])
    """
    assert program(code, "-m", "nn_core", "run", "--keep-values").stdout == "True [1.] 1\n"


def test_what_numpy_has_dropped_is_explained(tmp_path):
    (tmp_path / "program.py").write_text("import numpy\nnumpy.product([2, 3])\n", encoding="utf-8")
    command = [sys.executable, "-m", "nn_core", "run", "program.py"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.rstrip().endswith("hint: NumPy 2 has dropped the name product; write np.prod")


#: Messages of NumPy 2.4; older versions say other things.
ZERO_D = "only 0-dimensional arrays can be converted to Python scalars"
ELEMENT = ValueError("setting an array element with a sequence.")
ELEMENT.__cause__ = TypeError(ZERO_D)


@pytest.mark.parametrize(
    "error, hint",
    [
        (AttributeError("x", name="tostring", obj=np.zeros(2)), "NumPy 2 has dropped the name tostring; write a.tobytes()"),
        (AttributeError("x", name="tostring", obj=np.float32(1)), "NumPy 2 has dropped the name tostring; write a.tobytes()"),
        (AttributeError("x", name="pad", obj=np.lib), "NumPy 2 has dropped the name pad; write np.pad"),
        (AttributeError("x", name="linalg", obj=np.linalg), "NumPy 2 has dropped the name linalg; write np.linalg itself"),
        (
            ImportError("cannot import name 'product' from 'numpy' (a path)"),
            "NumPy 2 has dropped the name product; write np.prod",
        ),
        (
            TypeError("reshape() got an unexpected keyword argument 'newshape'"),
            "NumPy 2 has dropped the argument newshape of reshape; write the shape as second argument",
        ),
        (TypeError(ZERO_D), "NumPy 2 takes an array with axes for no number; write a.item()"),
        (ELEMENT, "NumPy 2 takes an array with axes for no number; write a.item()"),
        (
            OverflowError("Python integer 300 out of bounds for uint8"),
            "NumPy 2 wraps no integer into a smaller dtype; write np.array(value).astype(dtype)",
        ),
        (
            ModuleNotFoundError("No module named 'cupy'", name="cupy"),
            "cupy: nn-ext-cuda has it: pip install 'nn-ext-cuda[cuda13]', or with cuda12; without a GPU write numpy",
        ),
    ],
)
def test_the_hint_says_what_to_write(error, hint):
    text = str(error)
    add_hint(error)
    assert str(error) == f"{text}\n  hint: {hint}"


@pytest.mark.parametrize(
    "error",
    [
        AttributeError("x", name="prod", obj=np),
        AttributeError("x", name="tostring", obj=object()),
        AttributeError("x", name="in1d", obj=subprocess),
        ImportError("cannot import name 'product' from 'acme'"),
        ModuleNotFoundError("No module named 'acme'", name="acme"),
        TypeError("reshape() got an unexpected keyword argument 'acme'"),
        ValueError("x"),
        KeyError("product"),
    ],
)
def test_other_errors_stay_as_they_are(error):
    text = str(error)
    add_hint(error)
    assert str(error) == text
