"""Programs written for NNabla: the names they import, and the command that runs them."""

import subprocess
import sys
import textwrap

import pytest

import nn_core.solvers as S
from nn_core.compat.aliases import advice
from nn_core.compat.substitutes import RENAMED, SUBSTITUTES, substitute


@pytest.fixture
def python(tmp_path):
    """Runs Python in an empty folder, with the files that the test wrote there."""

    def run(*words, **files):
        for name, code in files.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(code), encoding="utf-8")
        return subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def program(command, tmp_path):
    """Runs the text of a program by ``nn-core run``."""

    def run(code, *arguments):
        (tmp_path / "program.py").write_text(textwrap.dedent(code), encoding="utf-8")
        return command.run(["run", "program.py", *arguments], tmp_path)

    return run


def lines(result):
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_modules_are_the_same_objects_under_both_names(program):
    code = """
        import nnabla as nn
        import nnabla.functions as F
        import nnabla.grad, nnabla.random, nnabla.recompute, nnabla.auto_forward, nnabla.context
        import nnabla.utils.data_iterator
        from nnabla.parameter import get_parameter_or_create
        from nnabla.utils import learning_rate_scheduler
        from nnabla._variable import Variable
        import nnabla.solvers as S
        import nn_core, nn_core.functions, nn_core.parameter, nn_core.solvers, nn_core.utils.learning_rate_scheduler as l
        import nn_core.utils.data_iterator as d
        print(nn is nn_core, F is nn_core.functions, S is nn_core.solvers, learning_rate_scheduler is l)
        print(nnabla.utils.data_iterator is d, get_parameter_or_create is nn_core.parameter.get_parameter_or_create)
        print(Variable is nn.Variable, callable(nn.grad), callable(nn.recompute), callable(nn.auto_forward))
        print(nn.__name__, nn.__spec__.name, F.__spec__.name)
    """
    assert lines(program(code)) == ["True True True True", "True True", "True True True True",
                                    "nn_core nn_core nn_core.functions"]  # fmt: skip


def test_extensions_are_found_by_their_names(program):
    code = """
        import nnabla_ext.reference
    """
    missing = program("try:\n    import nnabla_ext.acme\nexcept ModuleNotFoundError as error:\n    print(error)\n")
    assert "nn-core doctor lists the backends that are installed" in missing.stdout
    assert program(code).returncode == 0
    pytest.importorskip("nn_ext_cudnn")
    code = """
        import nnabla_ext.cudnn, nn_ext_cudnn
        from nnabla_ext import cuda
        import nn_ext_cuda
        print(nnabla_ext.cudnn is nn_ext_cudnn, cuda is nn_ext_cuda, nnabla_ext.cudnn.context(device_id=1).device_id)
    """
    assert lines(program(code)) == ["True True 1"]


def test_the_program_is_main(program):
    code = """
        import os, sys
        print(__name__, os.path.basename(__file__), sys.argv[1:], __spec__, sys.path[0] == os.getcwd())
        print(sys.modules["__main__"].__dict__ is globals())
    """
    result = program(code, "--epochs", "3", "-m", "--help")
    assert lines(result) == ["__main__ program.py ['--epochs', '3', '-m', '--help'] None True", "True"]


def test_the_program_knows_what_python_tells_it(python):
    code = """
        import os, pickle, sys
        class Point: pass
        os.chdir(os.sep)
        print(__file__, __package__, __spec__, type(__loader__).__name__, sys.argv, sys.path[0])
        print(type(pickle.loads(pickle.dumps(Point()))) is Point, __doc__, "annotations" in globals())
        raise ValueError("after another folder")
    """
    results = [python(*words, "program.py", "x", program=textwrap.dedent(code)) for words in ((), ("-m", "nn_core", "run"))]
    told, here = ((result.stdout, result.stderr) for result in results)
    assert "program.py" in told[0] and "after another folder" in told[1]
    assert here == told


@pytest.mark.parametrize("flags", [(), ("-P",)])
def test_places_of_the_environment_stay(flags, tmp_path, monkeypatch, python):
    if flags and sys.version_info < (3, 11):
        pytest.skip("the interpreter has no -P")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "acme.py").write_text("print('found')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    code = "import sys, os, acme\nprint(sys.path[0] == os.getcwd())\n"
    assert lines(python(*flags, "-m", "nn_core", "run", "program.py", program=code)) == ["found", "True"]


def test_a_module_is_run_as_python_runs_it(python):
    files = {"pack": "import nnabla\nimport sys\nprint(__name__, __spec__.name, sys.argv[1:], nnabla.__name__)\n"}
    assert lines(python("-m", "nn_core", "run", "-m", "pack", "--help", **files)) == ["__main__ pack ['--help'] nn_core"]


@pytest.mark.parametrize(
    ("code", "status", "printed"),
    [
        ("raise SystemExit(3)", 3, ""),
        ("import sys; sys.exit('no data')", 1, "no data\n"),
        ("raise EOFError('end')", 1, "EOFError: end\n"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt\n"),
        ("x = (", 1, "SyntaxError: '(' was never closed\n"),
    ],
)
def test_exit_codes_are_those_of_python(program, code, status, printed):
    result = program(code)
    assert result.returncode == status
    assert result.stderr.endswith(printed)
    assert "runpy" not in result.stderr and "nn_core" not in result.stderr


def test_a_traceback_starts_at_the_program(program):
    result = program("import nnabla as nn\n\ndef f():\n    raise ValueError('here')\n\nf()\n")
    shown = [line.strip() for line in result.stderr.splitlines() if line.startswith("  File")]
    assert [line.split(", line ")[1] for line in shown] == ["6, in <module>", "4, in f"]
    assert "f()" in result.stderr


def test_a_script_that_is_not_there_is_a_usage_error(python):
    result = python("-m", "nn_core", "run", "absent.py")
    assert result.returncode == 2
    assert "run: PROGRAM must be a file, got 'absent.py'" in result.stderr


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_child_processes_find_the_names(program, method):
    if sys.platform == "win32" and method != "spawn":
        pytest.skip("Windows starts processes by spawn only")
    code = f"""
        import multiprocessing
        import nnabla as nn

        def work(n):
            return n + nn.Variable((n, 2)).size

        if __name__ == "__main__":
            with multiprocessing.get_context({method!r}).Pool(1) as pool:
                print(pool.map(work, [1, 2]))
    """
    assert lines(program(code)) == ["[3, 6]"]


def test_one_line_makes_the_names_for_a_program(python):
    code = "import nn_core.compat.nnabla\nimport nnabla as nn\nprint(nn.Variable((2, 3)).shape)\n"
    assert lines(python("program.py", program=code)) == ["(2, 3)"]


def test_the_line_is_refused_after_another_nnabla(python):
    fake = {"nnabla": "", "program": "import nnabla\nimport nn_core.compat.nnabla\n"}
    result = python("program.py", **fake)
    assert result.returncode == 1
    assert "ImportError: nn_core.compat.nnabla: must be imported before nnabla, got a process" in result.stderr


def test_the_command_takes_nn_core_even_if_nnabla_is_installed(tmp_path, monkeypatch, python):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "nnabla.py").write_text("raise RuntimeError\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setenv("NN_CORE_LOG_LEVEL", "DEBUG")
    result = python("-m", "nn_core", "run", "program.py", program="import nnabla\nprint(nnabla.__name__)\n")
    assert lines(result) == ["nn_core"]
    assert "nn_core is imported as nnabla in place of" in result.stderr


MISSES = {
    "import nnabla.utils.nvml": "nnabla.utils.nvml: nn_ext_cuda.memory_info()",
    "import nnabla.utils.load_function": "nnabla.utils.load_function: nn_core.function.Affine(ctx, base_axis=1)",
    "import nnabla.utils.get_file_handle": "nnabla.utils.get_file_handle: nn_core.utils.save",
    "from nnabla.grad import GradEndFunction": "nnabla.grad.GradEndFunction: the function nn_core.grad",
    "import nnabla as nn; nn.ProtoVariable": "nnabla.ProtoVariable: a graph of Variables",
    "import nnabla.solvers as S; S.Adam().setup": "nnabla.solver.Solver.setup: set_parameters of the solver",
    "from nnabla.solver import Solver; Solver.setup": "nnabla.solver.Solver.setup: set_parameters of the solver",
    "import nnabla.functions as F; F.no_such": "nnabla.functions.no_such: nn_core has no functions.no_such",
}


@pytest.mark.parametrize("code", MISSES)
def test_what_is_missing_is_named_with_what_to_use_instead(program, code):
    result = program(code)
    assert result.returncode == 1
    assert f"hint: {MISSES[code]}" in result.stderr
    assert result.stderr.count("hint:") == 1


def test_errors_of_the_program_itself_get_no_advice():
    assert advice(ValueError("nnabla")) is None
    assert advice(AttributeError("x", name="x", obj=3)) is None
    assert advice(AttributeError("setup", name="setup", obj=type("Solver", (), {})())) is None
    assert advice(AttributeError("weights", name="weights", obj=S.Adam())) is None
    assert advice(ModuleNotFoundError("no", name="numpy.x")) is None


def test_importing_a_core_without_the_line_leaves_nnabla_alone(python):
    code = "import nn_core, sys\nassert not [n for n in sys.modules if n.startswith('nnabla')]\nimport nnabla\n"
    assert "No module named 'nnabla'" in python("program.py", program=code).stderr


def test_the_table_holds_for_what_is_inside_of_an_entry():
    assert substitute("nnabla.utils.nvml.nvmlInit") == SUBSTITUTES["nnabla.utils.nvml"]
    assert substitute("nnabla.functions.relu") is None


def test_nothing_in_the_table_exists(python):
    names = [name for name in SUBSTITUTES if name.count(".")]
    code = f"""
        import importlib, importlib.util
        def there(name):
            parent, _, last = name.replace("nnabla", "nn_core", 1).rpartition(".")
            try:
                return hasattr(importlib.import_module(parent), last) or importlib.util.find_spec(f"{{parent}}.{{last}}")
            except ModuleNotFoundError:
                return False
        print([name for name in {names!r} if there(name)])
        for name in {list(RENAMED.values())!r}:
            importlib.import_module(name)
    """
    assert lines(python("program.py", program=code)) == ["[]"]
