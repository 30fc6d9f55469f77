"""The page about searches runs its trials on Ray."""

import os
import subprocess
import sys

from tests.markdown import ROOT


def test_the_page_about_searches_runs(tmp_path):
    page = ROOT / "docs" / "howto" / "hyperparameters.md"
    code = f"from pathlib import Path; from tests.markdown import run_blocks; run_blocks(Path({str(page)!r}))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}  # a process of its own: the page starts and ends a cluster
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)
