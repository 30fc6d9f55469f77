"""Mutated files: some of each format in the tests, more by ``python -m tools.lanes.mutations``; a planted fault is found."""

import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest
from onnx import parser

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.lanes import changed_values, damaged_models, mutations


def reported(kind: str, count: int, seed: int) -> list[str]:
    texts: list[str] = []
    mutations.check(kind, range(count), seed, lambda _, text: texts.append(text) if text else None)
    return texts


@pytest.mark.parametrize("kind", list(mutations.KINDS))
def test_mutated_files_are_refused_or_equal(kind: str) -> None:
    # a file without its checksum is read on trial by a process of its own; networks are computed
    count = 15 if kind in {".h5", ".onnx"} or kind in changed_values.KINDS else 60
    assert reported(kind, count, 1) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(mutations.KINDS))
def test_many_mutated_files_are_refused_or_equal(kind: str) -> None:
    outcomes: Counter[str] = Counter()
    assert list(mutations.findings(kind, 500, 2, outcomes)) == []
    assert sum(outcomes.values()) == 500


def test_a_reader_that_verifies_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nn_core.files.safetensors.verify", lambda entries, checksums: None)
    assert "file.safetensors: loaded with other contents" in reported(".safetensors", 60, 1)


def test_a_reader_that_lets_foreign_errors_pass_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nn_core.data.file_cache.reading", lambda path: nullcontext())
    texts = reported("values of a cache", 60, 1)
    kinds = {next((kind for kind in ("refused without the name", "Error") if kind in text), text) for text in texts}
    assert kinds == {"Error", "refused without the name"}


def test_files_outside_of_the_folder_are_noticed(tmp_path: Path) -> None:
    program = f"""
import os, pathlib
from tools.lanes.outside import Outside
outside = Outside()
folder = pathlib.Path({str(tmp_path)!r}) / "inside"
folder.mkdir()
with outside.of(folder):
    (folder / "a").write_text("a")
    os.rename(folder / "a", folder / "b")
    open(os.__file__).close()
assert outside.touched == [], outside.touched
with outside.of(folder):
    (folder / ".." / "c").write_text("c")
    (folder / ".." / "c").unlink()
assert [text.split()[0] for text in outside.touched] == ["open", "os.remove"], outside.touched
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


def test_a_model_whose_inputs_no_memory_holds_is_not_judged():
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[{", ".join(["8"] * 20)}] x) => (float[n] y) {{ y = Identity(x) }}""")
    assert damaged_models.outcome(model.SerializeToString()) == "unjudged"
