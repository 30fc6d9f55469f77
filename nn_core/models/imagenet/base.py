"""Base of networks that tell the 1000 classes of ImageNet."""

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from nn_core.engine.error_messages.refusal import door, fitted_methods
from nn_core.errors import ArgumentError
from nn_core.functions import global_average_pooling, relu, reshape, split, stack
from nn_core.models.base import PretrainedModel, Request
from nn_core.models.layers import Layers, average_pool
from nn_core.variable import Variable

N_CLASSES: Final = 1000
#: Keys of networks with a pooling of the whole image at the end.
GLOBAL_POOLING_KEYS: Final = ("lastconv", "lastconv+relu", "pool", "classifier")


@fitted_methods()
class ImageNetBase(PretrainedModel):
    """Base class of classifiers of ImageNet.

    The input is images in RGB with values from 0 to 255; the network subtracts means and divides by standard deviations.

    Args:
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    Example:
        >>> from nn_core.models.imagenet import ShuffleNet05
        >>> model = ShuffleNet05(weights=None)
        >>> model.input_shape, model.keys
        ((3, 224, 224), ('lastconv', 'lastconv+relu', 'pool', 'classifier'))
        >>> model(nn.Variable((8, 3, 96, 160)), use_up_to="pool", force_global_pooling=True).shape
        (8, 480, 1, 1)
    """

    task = "imagenet"
    keys: ClassVar[tuple[str, ...]] = GLOBAL_POOLING_KEYS
    image_size: ClassVar[int] = 224
    #: Length of both axes of what the last pooling gets for such images.
    final_size: ClassVar[int] = 7
    #: Subtracted from the channels, and what they are divided by then.
    means: ClassVar[tuple[float, ...]] = (123.675, 116.28, 103.53)
    deviations: ClassVar[tuple[float, ...]] = (58.395, 57.12, 57.375)
    #: Number of classifiers beside the main one.
    n_aux_towers: ClassVar[int] = 0

    @property
    def category_names(self) -> list[str]:
        """Names of the 1000 classes, one in each line of ``imagenet/categories.txt`` in `get_model_home()`.

        Raises:
            MissingFileError: when there is no such file.
            FileFormatError: when it has another number of lines.
        """
        return self._names_in("category_names", "categories.txt", N_CLASSES)

    @door
    def __call__(
        self,
        input_var: Variable | None = None,
        use_from: None = None,
        use_up_to: str = "classifier",
        training: bool = False,
        force_global_pooling: bool = False,
        check_global_pooling: bool = True,
        returns_net: bool = False,
        verbose: int = 0,
        with_aux_tower: bool = False,
    ) -> Any:
        """Build the network.

        Args:
            input_var: Images with values from 0 to 255. Shape (N, 3, H, W). None: a new Variable for one image.
            use_from: Must be None.
            use_up_to: Key of the result: "classifier" (N, 1000) before the softmax, "pool", "lastconv+relu", "lastconv",
                or one of the further keys in `keys`. What follows it is not built.
            training: Normalize by the batch, drop, and train the parameters; if not, they are fixed.
            force_global_pooling: Let the last pooling take the mean of images of any size.
            check_global_pooling: Refuse images for which the last pooling does not see all; if not, it gives several means.
            returns_net: Return an object with ``inputs``, ``outputs`` and ``variables`` by name.
            verbose: 1: log the shapes of what the keys stand for.
            with_aux_tower: Also return the results of the classifiers in the middle of the network.

        Returns:
            The Variable of the key; with `with_aux_tower` a tuple.

        Raises:
            ArgumentError: when the network has no such key, or images of another size are refused.
        """
        if with_aux_tower and (not self.n_aux_towers or use_up_to != "classifier"):
            raise ArgumentError(
                f"{self.name}: with_aux_tower must be False for a network without classifiers in its middle, and unless the "
                f"result is the classifier, got {self.n_aux_towers} of them and use_up_to={use_up_to!r}"
            )
        request = Request(training, force_global_pooling, check_global_pooling, with_aux_tower)
        return self._call(input_var, use_from, use_up_to, request, returns_net, verbose)

    def configure_global_average_pooling(
        self, callback: Any, force_global_pooling: bool, check_global_pooling: bool, name: str, by_type: bool = False
    ) -> None:
        """Tell an ``NnpNetworkPass`` to make the average pooling called `name` a global one, or to check that it is.

        Args:
            callback: The pass.
            force_global_pooling: Make it global.
            check_global_pooling: Check it, if it is not made global.
            name: Of the function, or a type of functions.
            by_type: Whether `name` is a type.
        """
        if force_global_pooling:
            callback.force_average_pooling_global(name, by_type=by_type)
        elif check_global_pooling:
            callback.check_average_pooling_global(name, by_type=by_type)

    def _normalized(self, x: Variable) -> Variable:
        """Channel by channel, so that files of networks have the numbers as arguments of functions."""
        channels = zip(split(x, axis=1), self.means, self.deviations, strict=True)
        return stack(*((channel - mean) / deviation for channel, mean, deviation in channels), axis=1)

    def _pooled(self, h: Variable, request: Request) -> Variable:
        """Return the mean of each channel, shape (N, C, 1, 1)."""
        if request.force_global_pooling or h.shape[2:] == (self.final_size, self.final_size):
            return global_average_pooling(h)
        if request.check_global_pooling:
            raise ArgumentError(
                f"{self.name}: images must have the size {self.input_shape[1:]}, got others: the last pooling sees "
                f"{h.shape[2:]} in place of {(self.final_size, self.final_size)}\n"
                "  hint: force_global_pooling=True takes the mean of images of any size"
            )
        return average_pool(h, self.final_size, 1)

    def _head(self, h: Variable, layers: Layers, request: Request, drop: float = 0.0, name: str = "fc") -> Any:
        """Yield the keys of a network that ends with a pooling and an affine layer; `h` is the last convolution's."""
        yield "lastconv", h
        h = relu(h)
        yield "lastconv+relu", h
        h = self._pooled(h, request)
        yield "pool", h
        yield "classifier", layers.affine(layers.dropout(h, drop) if drop else h, name, N_CLASSES)

    def _convolved_classes(self, h: Variable, request: Request) -> Iterator[tuple[str, Variable]]:
        """Yield the keys of a network whose last convolution has a channel for each class."""
        yield "lastconv", h
        h = relu(h)
        yield "lastconv+relu", h
        h = self._pooled(h, request)
        yield "pool", h
        yield "classifier", reshape(h, (-1, h.shape[1] * h.shape[2] * h.shape[3]))
