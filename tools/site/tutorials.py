"""Run the tutorials and keep what they print and draw in build/tutorials, for the site; `python -m tools.site.tutorials`.

A script that did not change since it ran is not run again.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "examples" / "tutorials"
#: The files that the scripts share.
_SHARED = ("pictures.py", "tiny_digits.py", "tutorial.py")


def main() -> None:
    """Run what is new."""
    folder = ROOT / "build" / "tutorials"
    folder.mkdir(parents=True, exist_ok=True)
    newest_shared = max((SCRIPTS / name).stat().st_mtime for name in _SHARED)
    for script in sorted(SCRIPTS.glob("*.py")):
        output = folder / f"{script.stem}.txt"
        changed = max(script.stat().st_mtime, newest_shared)
        if script.name in _SHARED or (output.exists() and output.stat().st_mtime > changed):
            continue
        print(f"running {script.name}", flush=True)  # noqa: T201
        output.write_text(_run(script, folder), encoding="utf-8")


def _run(script: Path, folder: Path) -> str:
    """Run a script and return its output; its pictures go to `folder`, with the name of the script in front."""
    with tempfile.TemporaryDirectory() as pictures:
        command = [sys.executable, str(script), "--pictures", pictures]
        environment = {**os.environ, "TQDM_DISABLE": "1"}
        result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=pictures, env=environment)
        for old in folder.glob(f"{script.stem}-*.png"):
            old.unlink()
        for picture in Path(pictures).glob("*.png"):
            picture.rename(folder / f"{script.stem}-{picture.name}")
    return result.stdout


if __name__ == "__main__":
    main()
