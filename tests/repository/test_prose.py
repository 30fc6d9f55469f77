"""The openings of docstrings: imperative for functions ("Return the shapes"), a noun phrase for classes ("The shapes")."""

import re

import pytest

from tests.markdown import ROOT

#: The first word of a docstring, or of a comment that documents a name, where it is the relative pronoun of half a sentence.
HALF_SENTENCE = re.compile(r'^\s*(?:r?"""\W*|#: )(?:What|Who|Whose|Where|Which)\b.*', re.MULTILINE)
#: Files that stay as they were written: programs in NNabla's manner, and plugins of former releases.
AS_WRITTEN = ("tests/nnabla_programs", "tests/packaging/frozen")


def half_sentences(text):
    return [match.group().strip() for match in HALF_SENTENCE.finditer(text)]


@pytest.mark.parametrize("folder", ["nn_core", "extensions", "examples", "tests", "tools", "benchmarks"])
def test_no_docstring_is_half_a_sentence(folder):
    kept = tuple(ROOT / path for path in AS_WRITTEN)
    files = [path for suffix in ("py", "pyi", "in") for path in (ROOT / folder).rglob(f"*.{suffix}")]
    files = [path for path in files if not any(path.is_relative_to(folder) for folder in kept)]
    assert files
    found = {str(path.relative_to(ROOT)): half_sentences(path.read_text(encoding="utf-8")) for path in files}
    assert {path: openings for path, openings in found.items() if openings} == {}


def test_half_sentences_are_found():
    found = ['"""What it does."""', 'r"""Where it is', "#: Who wants it."]
    allowed = ['"""Whether it is so."""', "# What follows is code.", 'x = """What is left"""']
    assert half_sentences("\n".join([*found, *allowed])) == found
