"""Let this process import nn_core under NNabla's names; importing this module is enough.

``import nn_core.compat.nnabla`` as the first import of a program makes ``import nnabla``, ``import nnabla.functions`` and
``import nnabla_ext.cudnn`` give the modules of nn_core and of its extensions: the same objects, not copies. The command
``nn-core run`` does it for programs that are not to be changed.

Example:
    >>> import nn_core.compat.nnabla
    >>> import nnabla.functions
    >>> nnabla.functions is nn_core.functions
    True
"""

from nn_core.compat.aliases import install

__all__: list[str] = []

install()
