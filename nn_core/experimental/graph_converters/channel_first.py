"""Images with the channels before the rows and columns."""

from collections.abc import Sequence

from nn_core.experimental.graph_converters.channel_last import LayoutModifier
from nn_core.variable import Variable


class ChannelFirstModifier(LayoutModifier):
    """Rewrite a graph of images with channels last for channels first.

    Weights become the parameters ``<name>_cf`` beside the old ones.

    Args:
        inputs: inputs of the graph that get the new layout.
        inputs_cf: what takes their place; None: new variables with their values, found in ``new_inputs``.
    """

    def __init__(self, inputs: Sequence[Variable], inputs_cf: Sequence[Variable] | None = None) -> None:
        super().__init__(inputs, inputs_cf, False)
