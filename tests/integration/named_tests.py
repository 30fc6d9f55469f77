"""Tables that name the tests behind the rows of a page."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def require_test(place: str) -> None:
    """Fail unless the test of ``path::name`` exists; without a name any test of the file serves."""
    path, _, name = place.partition("::")
    pattern = rf"^ *def {name}\(" if name else "^ *def test_"
    assert re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), place
