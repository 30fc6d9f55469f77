"""An extension of griffe: the prompts under "Example:" of our docstrings become examples, which are highlighted.

The two colons before a block of code become one. Attributes that only say what to use instead are left out.
"""

import re
from typing import Any

from griffe import Class, Extension, Object

from nn_core.engine.error_messages.attributes import Misnamed

_EXAMPLE = re.compile(r"^(\s*)Example:$", re.MULTILINE)
_BLOCK = re.compile(r"::$", re.MULTILINE)


class Examples(Extension):
    """Gives sections of examples the name that griffe knows."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Take an object that griffe has found."""
        if obj.docstring is not None:
            obj.docstring.value = _BLOCK.sub(":", _EXAMPLE.sub(r"\1Examples:", obj.docstring.value))

    def on_class_members(self, *, cls: Class, **kwargs: Any) -> None:
        """Take a class whose members griffe has."""
        python = kwargs.get("node")
        described = vars(getattr(python, "obj", type(None)))
        for name, member in described.items():
            if isinstance(member, Misnamed):
                cls.members.pop(name, None)
