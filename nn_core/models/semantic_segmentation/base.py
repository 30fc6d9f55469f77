"""Base of networks that give pixels categories."""

from typing import Any, ClassVar

from nn_core.engine.error_messages.refusal import door
from nn_core.models.base import PretrainedModel, Request
from nn_core.variable import Variable


class SemanticSegmentation(PretrainedModel):
    """Base class of networks that give each pixel a category.

    The input is images in RGB with values from -1 to 1; `nn_core.models.semantic_segmentation.ProcessImage` makes them.
    """

    task = "semantic_segmentation"
    keys: ClassVar[tuple[str, ...]] = ("lastconv", "lastconv+relu", "segmentation")
    image_size: ClassVar[int] = 513
    #: Names of the categories, by their numbers.
    categories: ClassVar[tuple[str, ...]]

    @property
    def category_names(self) -> list[str]:
        """Names of the categories, by their numbers."""
        return list(self.categories)

    @door
    def __call__(
        self,
        input_var: Variable | None = None,
        use_from: None = None,
        use_up_to: str = "segmentation",
        training: bool = False,
        returns_net: bool = False,
        verbose: int = 0,
    ) -> Any:
        """Build the network.

        Args:
            input_var: Images with values from -1 to 1. Shape (N, 3, H, W). None: a new Variable for one image.
            use_from: Must be None.
            use_up_to: Key of the result: "segmentation", "lastconv+relu" or "lastconv". What follows it is not built.
            training: Normalize by the batch, drop, and train the parameters; if not, they are fixed.
            returns_net: Return an object with ``inputs``, ``outputs`` and ``variables`` by name.
            verbose: 1: log the shapes of the variables of the keys.

        Returns:
            The Variable of the key. "segmentation" has a score for each category and pixel, shape (N, categories, H, W).

        Raises:
            ArgumentError: when the network has no such key.
        """
        return self._call(input_var, use_from, use_up_to, Request(training), returns_net, verbose)
