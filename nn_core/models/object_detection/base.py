"""Base of networks that find objects."""

from typing import Any, ClassVar

from nn_core.engine.error_messages.refusal import door, fitted_methods
from nn_core.errors import ArgumentError
from nn_core.models.base import PretrainedModel, Request
from nn_core.variable import Variable


@fitted_methods()
class ObjectDetection(PretrainedModel):
    """Base class of networks that find objects.

    The input is images in RGB with values from 0 to 255, whose lengths are multiples of `stride`.
    """

    task = "object_detection"
    keys: ClassVar[tuple[str, ...]] = ("lastconv", "convdetect", "detection")
    image_size: ClassVar[int] = 416
    #: Lengths of images are multiples of it.
    stride: ClassVar[int] = 32
    #: Number of categories.
    n_categories: int

    def get_nnp_input_size(self) -> tuple[int, int]:
        """Height and width of the images for which the network was made."""
        return (self.image_size, self.image_size)

    def get_category_names(self) -> list[str]:
        """Names of the categories, one in each line of ``object_detection/<name>_categories.txt`` in `get_model_home()`.

        Raises:
            MissingFileError: when there is no such file.
            FileFormatError: when it has another number of lines.
        """
        return self._names_in("get_category_names", f"{self.name}_categories.txt", self.n_categories)

    @door
    def __call__(
        self,
        input_var: Variable | None = None,
        use_from: None = None,
        use_up_to: str = "detection",
        training: bool = False,
        returns_net: bool = False,
        verbose: int = 0,
    ) -> Any:
        """Build the network.

        Args:
            input_var: Images with values from 0 to 255. Shape (N, 3, H, W). None: a new Variable for one image.
            use_from: Must be None.
            use_up_to: Key of the result: "detection", "convdetect" or "lastconv". What follows it is not built.
            training: Normalize by the batch, and train the parameters; if not, they are fixed.
            returns_net: Return an object with ``inputs``, ``outputs`` and ``variables`` by name.
            verbose: 1: log the shapes of the variables of the keys.

        Returns:
            The Variable of the key. "detection" has the shape (N, boxes, 5 + categories): centre x and y, width and height in
            parts of the image, objectness, and a score for each category, which is zero for boxes that are none.

        Raises:
            ArgumentError: when the network has no such key, or an image has lengths that are no multiples of `stride`.
        """
        x = self.get_input_var(input_var)
        if any(length % self.stride or not length for length in x.shape[2:]):
            raise ArgumentError(f"{self.name}: images must have lengths divisible by {self.stride}, got {x.shape[2:]}")
        return self._call(x, use_from, use_up_to, Request(training), returns_net, verbose)
