"""The page about devices is a program that runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "deployment.md"


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        exec(block, names)
    assert {path.name for path in tmp_path.iterdir()} == {"digits.c", "digits.h", "digits8.c", "digits8.h"}
    assert "bytes of memory" in capsys.readouterr().out
