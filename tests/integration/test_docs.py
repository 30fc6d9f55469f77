"""The documentation is true: its code runs, its links lead somewhere, and it names what there is."""

import ast
import importlib
import inspect
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import errors, ext, ext_utils, files, initializer, monitor, settings, training
from nn_core.__main__ import main
from nn_core.data import iterators, source, split
from nn_core.operators.spec import load
from nn_core.utils import learning_rate_scheduler
from tests.markdown import ROOT, blocks, relative_links, run_blocks
from tools.site import function_pages

PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("extensions/*/README.md"))]
WITH_CODE = [page.relative_to(ROOT).as_posix() for page in PAGES if blocks(page)]
#: Tests that run the other pages with code, and check more than that it runs.
RUN_BY = {
    "README.md": "tests/integration/test_readme.py",
    "docs/deployment.md": "extensions/nn_ext_c/tests/test_docs.py",
    "docs/extension_guides.md": "tests/packaging/test_scaffold.py",
    "docs/howto/": "tests/integration/test_howto.py",
    "extensions/nn_ext_serve/README.md": "extensions/nn_ext_serve/tests/test_readme.py",
    "extensions/nn_ext_sklearn/README.md": "extensions/nn_ext_sklearn/tests/test_readme.py",
    "extensions/nn_ext_tensorboard/README.md": "extensions/nn_ext_tensorboard/tests/test_readme.py",
}
#: Pages that change what the whole process uses: names of modules, samples, packages that are half imported.
ALONE = {
    "docs/conformance.md": "",
    "docs/errors.md": "sys.modules['ml_dtypes'] = None",  # it shows what happens without the package
    "docs/from_nnabla.md": "",
}
#: Blocks that are not run, by page and number, with the reason.
NOT_RUN = {
    ("docs/cuda.md", 1): "needs a GPU",
    ("docs/cuda.md", 3): "needs a GPU, and PyTorch for it",
    ("extensions/nn_ext_ray/README.md", 1): "is an outline; tests/test_training.py of the package runs examples/digits_ray.py",
}
RUN = [page for page in WITH_CODE if not page.startswith((*RUN_BY, *ALONE)) and (page, 1) not in NOT_RUN]
#: Names that only programs written for NNabla use.
OF_NNABLA = {"add_available_context", "array_classes", "prefer_cached_array", "reset_array_preference"}
#: Imports that the examples of the reference assume; tests/unit/test_docstrings.py runs them with these names.
IMPORTS = """import numpy as np
import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
import nn_core.initializer as I
"""
#: Names that other pages describe: the standard of array libraries, types, base classes and parts of what is listed.
ELSEWHERE = {"Namespace", "Array", "ParameterSource", "OrderedDataSource", "extension_of", "remove_leftovers"}


@pytest.mark.parametrize("page", RUN)
def test_the_code_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(ROOT / page)


@pytest.mark.parametrize("page", ALONE)
def test_the_code_of_the_page_runs_in_a_process_of_its_own(page, tmp_path):
    imports = "import sys; from pathlib import Path; from tests.markdown import run_blocks"
    code = f"{imports}; {ALONE[page] or 'pass'}; run_blocks(Path({str(ROOT / page)!r}))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)


def test_the_steps_of_the_page_about_cuda_run(tmp_path):
    x, t = nn.Variable((2, 3)), nn.Variable((2, 1))
    loss = F.mean((PF.affine(x, 1) - t) ** 2)
    solver = S.Sgd(0.1)
    solver.set_parameters(nn.get_parameters())
    data = [(np.ones((2, 3)), np.ones((2, 1)))] * 50
    run_blocks(ROOT / "docs" / "cuda.md", without=(1, 3), given={"nn": nn, **locals()})
    assert loss.d < 1e-3


@pytest.mark.parametrize(("page", "number"), NOT_RUN)
def test_code_that_is_not_run_imports_what_there_is(page, number):
    code = ast.parse(blocks(ROOT / page)[number - 1])
    for node in ast.walk(code):
        if isinstance(node, ast.ImportFrom) and find_spec(node.module):
            assert [name.name for name in node.names if not hasattr(importlib.import_module(node.module), name.name)] == []


def test_the_tests_that_run_other_pages_read_them():
    for page, test in RUN_BY.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        assert f'"{page.rstrip("/").rpartition("/")[2]}"' in text, (page, test)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_the_links_of_the_page_lead_somewhere(page):
    assert [link for link in relative_links(page) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", ["from_jax", "from_keras", "from_pytorch"])
def test_the_names_of_the_table_exist(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    table = text[text.index("## Names") :]
    modules = {"nn": nn, "F": F, "PF": PF, "S": S}
    # the last column has our names
    used = re.findall(r"\b(nn|F|PF|S)\.(\w+)", " ".join(line.rsplit("|", 2)[1] for line in table.splitlines() if "|" in line))
    assert [f"{module}.{name}" for module, name in used if not hasattr(modules[module], name)] == []
    assert len(used) > 20


def test_every_exception_is_described():
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    headings = {line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")}
    classes = {name for name, value in vars(errors).items() if inspect.isclass(value) and value.__module__ == errors.__name__}
    assert headings == classes


def test_every_key_of_the_specification_is_described():
    text = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
    tables = (load._FUNCTION_KEYS, load._INPUT_KEYS, load._OUTPUT_KEYS, load._ARG_KEYS, load._BACKWARD_KEYS)
    keys = {key for table in tables for key in table.kinds}
    assert {key for key in keys if f"`{key}`" not in text} == set()


def test_the_example_change_of_the_contributors_guide_is_what_the_files_have():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    content, checked = "", 0
    for line in text.splitlines():
        if line.startswith("--- "):
            content = (ROOT / line.removeprefix("--- ")).read_text(encoding="utf-8")
        elif line.startswith("+"):
            assert line.removeprefix("+") in content.splitlines()
            checked += 1
    assert checked > 15


def test_the_pages_of_the_site_exist():
    pages = _flat(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    made = {f"reference/{name}" for name in function_pages.pages(ROOT)}
    assert {page for page in pages if not (ROOT / "docs" / page).exists()} == made
    written = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert written - set(pages) == set()


def _flat(entry):
    """The pages of an entry of the navigation."""
    if isinstance(entry, str):
        return [entry]
    return [page for part in (entry.values() if isinstance(entry, dict) else entry) for page in _flat(part)]


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_the_anchors_of_the_page_exist(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#\s]*\.md)?#([^)]+)\)", text)
    missing = [(path, anchor) for path, anchor in links if anchor not in _anchors(page.parent / path if path else page)]
    assert missing == []


def _anchors(page):
    """The anchors that a page has for its headings."""
    headings = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def _reference_entries():
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        yield from re.findall(r"(?m)^::: (\S+)$", page.read_text(encoding="utf-8"))


def test_the_pages_of_the_reference_say_what_their_examples_assume():
    pages = [page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.md"))]
    assert all(IMPORTS in page for page in pages if "\n::: " in page)


def test_the_entries_of_the_reference_are_documented_objects():
    entries = list(_reference_entries())
    found = {entry: pkgutil.resolve_name(entry) for entry in entries}
    assert [entry for entry, thing in found.items() if not (thing.__doc__ or "").strip()] == []
    assert [entry for entry, thing in found.items() if inspect.ismodule(thing)] == []
    assert len(entries) == len(set(entries)) > 200


def _listed(module):
    """The public functions and classes of a module: those that it exports, or else those that are made there."""
    names = getattr(module, "__all__", dir(module))
    found = {name: getattr(module, name) for name in names if name[0] != "_" and not inspect.ismodule(getattr(module, name))}
    return [
        name
        for name, thing in found.items()
        if inspect.isroutine(thing) or inspect.isclass(thing)
        if hasattr(module, "__all__") or module is nn or thing.__module__ == module.__name__
    ]


@pytest.mark.parametrize(
    "module",
    [nn, PF, S, initializer, training, ext, ext_utils, monitor, learning_rate_scheduler, files, iterators, source, split],
    ids=lambda module: module.__name__,
)
def test_the_reference_has_all_public_names(module):
    entries = {entry.rpartition(".")[2] for entry in _reference_entries()}
    classes_of_errors = {name for name, thing in vars(errors).items() if inspect.isclass(thing)}
    assert set(_listed(module)) - entries - OF_NNABLA - ELSEWHERE - classes_of_errors == set()


def test_the_reference_has_all_commands_and_environment_variables():
    text = (ROOT / "docs" / "api" / "cli.md").read_text(encoding="utf-8")
    assert [name for name in main.commands if f"`nn-core {name}" not in text] == []
    text = (ROOT / "docs" / "api" / "settings.md").read_text(encoding="utf-8")
    variables = set(re.findall(r"NN_CORE_[A-Z0-9_]+", inspect.getsource(settings)))
    assert {name for name in variables if f"`{name}`" not in text} == set()


#: Rows of the tables of errors: a call or a command, the class, the message. "..." stands for any text.
ERROR_ROW = re.compile(r"(?m)^\| `(.+)` \| `(?:(\w+Error): )?(.+)` \|$")
PAGES_OF_THE_API = sorted(page.stem for page in ROOT.glob("docs/api/*.md") if page.stem != "index")
PAGES_WITH_ERRORS = ["reference/index", *(f"api/{page}" for page in PAGES_OF_THE_API)]


def _error_rows(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    section = text[text.index("## Errors") :].replace("\\|", "|")
    return ERROR_ROW.findall(section[: section.find("\n## ", 1)])


def _fits(message, expected):
    pattern = re.escape(expected).replace(r"\ \.\.\.\ ", " (?:.* )?").replace(r"\.\.\.", ".*")
    return re.fullmatch(pattern, message.partition("\n")[0])


@pytest.mark.parametrize("page", [page for page in PAGES_WITH_ERRORS if page != "api/cli"])
def test_calls_raise_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = _error_rows(page)
    assert len(rows) >= 3
    documented = {entry.rpartition(".")[2]: pkgutil.resolve_name(entry) for entry in _reference_entries()}
    for call, kind, message in rows:
        names = {**documented, "__name__": "acme", "training": training}
        names |= {"nn": nn, "np": np, "F": F, "PF": PF, "S": S, "I": initializer, "x": nn.Variable((8, 20))}
        with nn.parameter_scope("", {}), pytest.raises(getattr(errors, kind)) as caught:
            eval(call, names)
        assert type(caught.value).__name__ == kind
        assert _fits(str(caught.value), message), str(caught.value)


def test_the_session_of_the_page_is_what_the_command_prints():
    pytest.importorskip("nn_ext_cpu")
    text = (ROOT / "docs" / "api" / "cli.md").read_text(encoding="utf-8")
    ((command, output),) = re.findall(r"(?ms)^```text\n\$ nn-core (.+?)\n(.+?)^```$", text)
    result = CliRunner().invoke(main, shlex.split(command))
    assert result.exit_code == 0
    assert result.output == output


def test_commands_print_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = _error_rows("api/cli")
    assert len(rows) >= 9
    for command, _, message in rows:
        result = CliRunner().invoke(main, shlex.split(command)[1:])
        assert result.exit_code != 0
        assert _fits(result.output.rpartition("Error: ")[2], message), result.output


def test_the_site_finds_what_pages_of_the_interface_name():
    """The site looks at modules as they are imported: it knows of them what `dir` lists."""
    named = re.findall(
        r"^::: ([\w.]+)$", "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("api/*.md")), re.M
    )
    assert len(named) > 100
    missing = []
    for name in named:
        owner, _, attribute = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ImportError:
            if attribute not in dir(importlib.import_module(owner)):
                missing.append(name)
    assert not missing
