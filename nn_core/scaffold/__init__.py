"""Packages to start from: ``nn-core new-extension NAME --kind KIND`` writes one whose tests pass as they are.

The templates are files of this package; `KINDS` has a row for each kind.
"""

from nn_core.scaffold.kinds import KINDS as KINDS
from nn_core.scaffold.write import new_extension as new_extension
from nn_core.scaffold.write import new_operator as new_operator

__all__ = ["KINDS", "new_extension", "new_operator"]
