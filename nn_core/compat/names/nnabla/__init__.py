"""NNabla's name in interpreters that ``nn-core run`` starts indirectly; replaced by nn_core when it is imported."""

import sys
from importlib import import_module

from nn_core.compat.unchanged import run_unchanged

del sys.modules[__name__]
run_unchanged()
import_module(__name__)  # by the finder that stands first now; the import system returns what is registered at the end
