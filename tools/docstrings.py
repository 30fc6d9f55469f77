"""An extension of griffe: the prompts under "Example:" of our docstrings become examples, which are highlighted.

The two colons before a block of code become one.
"""

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^(\s*)Example:$", re.MULTILINE)
_BLOCK = re.compile(r"::$", re.MULTILINE)


class Examples(Extension):
    """Gives sections of examples the name that griffe knows."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Called by griffe for each object."""
        if obj.docstring is not None:
            obj.docstring.value = _BLOCK.sub(":", _EXAMPLE.sub(r"\1Examples:", obj.docstring.value))
