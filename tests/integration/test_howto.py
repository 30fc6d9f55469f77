"""Every how-to page is a complete program that runs; see docs/howto."""

import contextvars
import os
import subprocess
import sys

import pytest

import nn_core as nn
from nn_core import context
from tests.markdown import ROOT, code_of, run_blocks

FOLDER = ROOT / "docs" / "howto"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "index")
#: Pages whose program starts processes, which import it as a file.
AS_FILE = ("threads_and_processes",)
#: Packages whose blocks start processes for half a minute: the tests of nn_ext_ray run them.
STARTED_ELSEWHERE = ("ray",)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in AS_FILE])
def test_the_program_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    contextvars.Context().run(_run, FOLDER / f"{page}.md")


def _run(page):
    """Run a page as a new program does: without scopes, on the reference backend, with the first random numbers."""
    default = nn.get_current_context()
    context._current.set_default(nn.Context(["reference:float"]))
    try:
        nn.seed(0)
        run_blocks(page, without=STARTED_ELSEWHERE)
    finally:
        nn.clear_parameters()
        context._current.set_default(default)


@pytest.mark.parametrize("page", AS_FILE)
def test_the_program_of_the_page_runs_as_a_file(page, tmp_path):
    program = tmp_path / f"{page}.py"
    program.write_text(code_of(FOLDER / f"{page}.md"), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NN_CORE_NUM_THREADS": "1"}
    subprocess.run([sys.executable, str(program)], check=True, cwd=tmp_path, env=environment)


def test_the_index_has_every_page():
    text = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert [page for page in PAGES if f"({page}.md)" not in text] == []
