"""Transformers for images and for text: a vision transformer, and a decoder in the form of GPT-2.

They are modules: parameters are made by the first call, and ``module.training = False`` turns dropout off.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.core.module import Module
from nn_core.engine.error_messages.refusal import checked_count, described, fitted, fitted_methods
from nn_core.errors import ArgumentError, ShapeError
from nn_core.initializer import NormalInitializer
from nn_core.models.decoding import Cache, Prompt, checked_prompts, decoder_of, is_several
from nn_core.parametric_functions.scope import get_parameter_or_create
from nn_core.variable import Variable

#: Standard deviation of initial weights, as GPT-2 has it.
_SIGMA = 0.02


class Block(Module):
    """A layer of a transformer: attention of a sequence to itself and two affine layers, each behind a normalization.

    Args:
        n_features: Features of each position, E.
        n_heads: Number of heads; it divides `n_features`.
        n_hidden: Units between the affine layers.
        is_causal: Positions see themselves and earlier ones only.
        exact_gelu: The activation is x times the normal distribution function; if not, its tanh approximation.
        eps: Added to variances in normalizations.
        dropout: Part of the results of attention and of the affine layers that is dropped while training.

    References:
        Vaswani et al. (2017), Attention is all you need; with the normalizations first, as in Radford et al. (2019).

    Example:
        >>> from nn_core.models.transformer import Block
        >>> Block(16, 4, 64)(nn.Variable((2, 5, 16))).shape
        (2, 5, 16)
    """

    @fitted
    def __init__(
        self,
        n_features: int,
        n_heads: int,
        n_hidden: int,
        is_causal: bool = False,
        exact_gelu: bool = False,
        eps: float = 1e-5,
        dropout: float = 0.0,
    ) -> None:
        _require_counts("Block", n_features=n_features, n_heads=n_heads, n_hidden=n_hidden)
        if n_features % n_heads:
            raise ArgumentError(f"Block: n_heads must divide n_features, got {n_heads} and {n_features}")
        self.n_features, self.n_heads, self.n_hidden = n_features, n_heads, n_hidden
        self.is_causal, self.exact_gelu, self.eps, self.dropout = is_causal, exact_gelu, eps, dropout

    def call(self, x: Variable, cache: Cache | None = None) -> Variable:
        """Map shape (N, T, E) to (N, T, E); with a cache, of the positions that follow those in it."""
        if cache is not None and not self.is_causal:
            raise ArgumentError("Block: a block with a cache must have is_causal=True, got False")
        x = x + self._dropped(self._attended(self._norm(x, "norm1"), cache))
        h = _affine(self._norm(x, "norm2"), self.n_hidden, "hidden")
        h = h * (0.5 + 0.5 * F.erf(h * 2**-0.5)) if self.exact_gelu else F.gelu(h)
        return x + self._dropped(_affine(h, self.n_features, "output"))

    def _attended(self, x: Variable, cache: Cache | None) -> Variable:
        n_steps, width = x.shape[1], self.n_features // self.n_heads
        heads = F.reshape(_affine(x, 3 * self.n_features, "qkv"), (-1, n_steps, 3, self.n_heads, width))
        q, k, v = F.split(F.transpose(heads, (2, 0, 3, 1, 4)), axis=0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal) if cache is None else cache.attend(q, k, v)
        joined = F.reshape(F.transpose(mixed, (0, 2, 1, 3)), (-1, n_steps, self.n_features))
        return _affine(joined, self.n_features, "projection")

    def _norm(self, x: Variable, name: str) -> Variable:
        return _layer_norm(x, self.eps, name)

    def _dropped(self, x: Variable) -> Variable:
        return F.dropout(x, self.dropout) if self.training and self.dropout else x


@fitted_methods()
class VisionTransformer(Module):
    """A classifier of images that sees them as a sequence of square patches (ViT).

    Args:
        image_size: Length of both axes of the images.
        patch_size: Length of both axes of a patch; it divides `image_size`.
        n_layers: Number of blocks.
        n_features: Features of each patch, E.
        n_heads: Number of heads; it divides `n_features`.
        n_hidden: Units between the affine layers of a block.
        n_classes: Number of classes.
        dropout: Part that is dropped while training.

    References:
        Dosovitskiy et al. (2021), An image is worth 16x16 words. The default is their ViT-B/16.

    Example:
        >>> from nn_core.models.transformer import VisionTransformer
        >>> vit = VisionTransformer(32, 8, n_layers=2, n_features=16, n_heads=4, n_hidden=64, n_classes=5)
        >>> vit(nn.Variable((2, 3, 32, 32))).shape
        (2, 5)
    """

    @fitted
    def __init__(
        self,
        image_size: int = 224,
        patch_size: int = 16,
        n_layers: int = 12,
        n_features: int = 768,
        n_heads: int = 12,
        n_hidden: int = 3072,
        n_classes: int = 1000,
        dropout: float = 0.0,
    ) -> None:
        _require_counts(
            "VisionTransformer", image_size=image_size, patch_size=patch_size, n_layers=n_layers, n_classes=n_classes
        )
        if image_size % patch_size:
            raise ArgumentError(f"VisionTransformer: patch_size must divide image_size, got {patch_size} and {image_size}")
        self.image_size, self.patch_size = image_size, patch_size
        self.n_features, self.n_classes = n_features, n_classes
        self.blocks = [
            Block(n_features, n_heads, n_hidden, exact_gelu=True, eps=1e-6, dropout=dropout) for _ in range(n_layers)
        ]

    def call(self, x: Variable) -> Variable:
        """Return normalized images, shape (N, 3, H, W), to the classes before the softmax, shape (N, n_classes)."""
        size = (self.image_size, self.image_size)
        if x.ndim != 4 or x.shape[2:] != size:
            raise ShapeError(f"VisionTransformer: x must have the shape (N, 3, {size[0]}, {size[1]}), got {x.shape}")
        patch = (self.patch_size, self.patch_size)
        patches = PF.convolution(x, self.n_features, patch, stride=patch, name="patches")
        sequence = F.transpose(F.reshape(patches, (x.shape[0], self.n_features, -1)), (0, 2, 1))
        first = get_parameter_or_create("class_token", (1, 1, self.n_features), NormalInitializer(_SIGMA))
        h = F.concatenate(F.broadcast(first, (x.shape[0], 1, self.n_features)), sequence, axis=1)
        h = h + get_parameter_or_create("positions", (1, h.shape[1], self.n_features), NormalInitializer(_SIGMA))
        for block in self.blocks:
            h = block(h)
        h = _layer_norm(h, 1e-6, "norm")
        return PF.affine(h[:, 0], self.n_classes, name="classes")

    def torchvision_layers(self) -> dict[str, str]:
        """Return the layers of torchvision's VisionTransformer and the scopes here, for `load_pytorch_parameters`.

        Example:
            >>> from nn_core.models.transformer import VisionTransformer
            >>> vit = VisionTransformer(32, 8, n_layers=1, n_features=16, n_heads=4, n_hidden=64)
            >>> vit.torchvision_layers()["heads.head"]
            'classes'
        """
        layers = {
            "class_token": "class_token",
            "encoder.pos_embedding": "positions",
            "conv_proj": "patches",
            "encoder.ln": "norm",
            "heads.head": "classes",
        }
        return layers | _blocks("encoder.layers.encoder_layer_{}", len(self.blocks), _TORCHVISION_BLOCK)


@fitted_methods()
class GPT(Module):
    """A language model that predicts the next token of each position, in the form of GPT-2.

    Args:
        n_tokens: Number of different tokens.
        n_positions: Largest length of a sequence.
        n_layers: Number of blocks.
        n_features: Features of each position, E.
        n_heads: Number of heads; it divides `n_features`.
        dropout: Part that is dropped while training.

    References:
        Radford et al. (2019), Language models are unsupervised multitask learners. The default is their smallest model.

    Example:
        >>> from nn_core.models.transformer import GPT
        >>> gpt = GPT(n_tokens=100, n_positions=16, n_layers=2, n_features=16, n_heads=4)
        >>> gpt(nn.Variable.from_numpy_array(np.zeros((2, 8), np.int32))).shape
        (2, 8, 100)
    """

    @fitted
    def __init__(
        self,
        n_tokens: int = 50257,
        n_positions: int = 1024,
        n_layers: int = 12,
        n_features: int = 768,
        n_heads: int = 12,
        dropout: float = 0.0,
    ) -> None:
        _require_counts("GPT", n_tokens=n_tokens, n_positions=n_positions, n_layers=n_layers)
        self.n_tokens, self.n_positions, self.n_features = n_tokens, n_positions, n_features
        self.dropout = dropout
        self.blocks = [Block(n_features, n_heads, 4 * n_features, is_causal=True, dropout=dropout) for _ in range(n_layers)]

    def call(self, x: Variable, cache: Cache | None = None) -> Variable:
        """Tokens, shape (N, T), to the scores of the next tokens before the softmax, shape (N, T, n_tokens).

        With a cache the tokens follow those in it, and the scores are those after the last one, shape (N, 1, n_tokens).
        The table of tokens is also the weight of the scores.
        """
        if x.ndim != 2 or not 0 < x.shape[1] <= self.n_positions:
            raise ShapeError(f"GPT: x must have the shape (N, T) with T from 1 to {self.n_positions}, got {x.shape}")
        if cache is not None and cache.capacity > self.n_positions:
            raise ShapeError(f"GPT: a cache must have a capacity of at most {self.n_positions}, got {cache.capacity}")
        initial = NormalInitializer(_SIGMA)
        h = PF.embed(x, self.n_tokens, self.n_features, initial, name="tokens")
        positions = get_parameter_or_create("positions/embed/W", (self.n_positions, self.n_features), initial)
        if cache is None:
            h = h + F.reshape(positions[: x.shape[1]], (1, -1, self.n_features))
        else:
            h = h + F.embed(cache.positions(x.shape[1]), positions)
        h = F.dropout(h, self.dropout) if self.training and self.dropout else h
        for block in self.blocks:
            h = block(h, cache)
        h = h if cache is None else cache.last(h)
        table = get_parameter_or_create("tokens/embed/W", (self.n_tokens, self.n_features))
        flat = F.reshape(_layer_norm(h, 1e-5, "norm"), (1, -1, self.n_features))
        scores = F.batch_matmul(flat, F.reshape(table, (1, *table.shape)), transpose_b=True)
        return F.reshape(scores, (-1, h.shape[1], self.n_tokens))

    def generate(
        self,
        prompt: Prompt | Sequence[Prompt],
        length: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: int | Sequence[int] | None = None,
    ) -> Any:
        """Generate the tokens that follow a prompt, or each of several ones, with a cache of keys and values.

        Dropout is off. `nn_core.seed` makes the tokens that are drawn repeatable. Further calls with as many prompts use
        the same graphs where they have room. A `Decoder` of `nn_core.models.decoding` gives the tokens one by one, and
        keeps its graphs for all calls.

        Args:
            prompt: The tokens of a sequence, or a list with those of several, which may have different lengths.
            length: Largest number of tokens to generate. With those of the prompt they are at most `n_positions`.
            temperature: The scores are divided by it; 0 takes the most likely token.
            top_k: The `top_k` most likely tokens are drawn from. Default: all.
            top_p: The most likely tokens are drawn from that have at least this probability together. Default: all.
            stop: A token, or some, after which a sequence ends.

        Returns:
            The new tokens, an array of int64; a list of arrays for several prompts. The token that ended a sequence is
            among them.

        Raises:
            ArgumentError: when an argument is out of range, or prompt and new tokens are more than `n_positions`.

        Example:
            >>> from nn_core.models.transformer import GPT
            >>> gpt = GPT(n_tokens=100, n_positions=16, n_layers=2, n_features=16, n_heads=4)
            >>> nn.seed(0)
            >>> gpt.generate([5, 3, 8], length=4, top_k=10).shape
            (4,)
            >>> [len(tokens) for tokens in gpt.generate([[5, 3, 8], [7]], length=4, temperature=0)]
            [4, 4]
        """
        several = is_several(prompt)
        prompts = checked_prompts("generate", cast("Sequence[Prompt]", prompt if several else [prompt]), self.n_tokens)
        count = checked_count("generate: length", length)
        longest = max((len(one) for one in prompts), default=0)
        if longest + count > self.n_positions:
            text = f"{self.n_positions}, got {longest} and {count}"
            raise ArgumentError(f"generate: the tokens of prompt and result together must be at most {text}")
        trains, self.training = self.training, False
        try:
            parameters = _parameters(self, *self.blocks)
            with decoder_of(self, parameters, len(prompts), longest + count, self.n_positions) as decoder:
                generated = decoder.generate(prompts, count, temperature, top_k, top_p, stop)
        finally:
            self.training = trains
        return generated if several else generated[0]

    def gpt2_layers(self, prefix: str = "") -> dict[str, str]:
        """Return the layers of GPT-2 as the library transformers calls them, and the scopes here.

        Its affine layers are of the kind Conv1D: ``load_pytorch_parameters`` gets ``conv1d=True``.

        Args:
            prefix: In front of the names of the file, such as "transformer.".

        Example:
            >>> from nn_core.models.transformer import GPT
            >>> GPT(n_layers=1).gpt2_layers("transformer.")["transformer.wte"]
            'tokens'
        """
        layers = {"wte": "tokens", "wpe": "positions", "ln_f": "norm"}
        layers |= _blocks("h.{}", len(self.blocks), _GPT2_BLOCK)
        return {f"{prefix}{layer}": scope for layer, scope in layers.items()}


#: The layers of a block here, by their names in PyTorch's state dicts.
_TORCHVISION_BLOCK: Mapping[str, str] = {
    "ln_1": "norm1",
    "self_attention.in_proj": "qkv",
    "self_attention.out_proj": "projection",
    "ln_2": "norm2",
    "mlp.0": "hidden",
    "mlp.3": "output",
}
_GPT2_BLOCK: Mapping[str, str] = {
    "ln_1": "norm1",
    "attn.c_attn": "qkv",
    "attn.c_proj": "projection",
    "ln_2": "norm2",
    "mlp.c_fc": "hidden",
    "mlp.c_proj": "output",
}


def _blocks(pattern: str, n_layers: int, names: Mapping[str, str]) -> dict[str, str]:
    return {f"{pattern.format(n)}.{theirs}": f"@blocks/@{n}/{ours}" for n in range(n_layers) for theirs, ours in names.items()}


def _affine(x: Variable, n_outputs: int, name: str) -> Any:
    return PF.affine(x, n_outputs, base_axis=2, w_init=NormalInitializer(_SIGMA), name=name)


def _layer_norm(x: Variable, eps: float, name: str) -> Any:
    return PF.layer_normalization(x, batch_axis=(0, 1), eps=eps, name=name)


def _parameters(*modules: Module) -> list[Variable]:
    """Return the parameters that are in the scopes of these modules now, in their order."""
    waiting: list[Any] = [module.parameter_scope for module in reversed(modules)]
    found = []
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, Variable):
            found.append(entry)
        else:
            waiting.extend(entry.values())
    return found


def _require_counts(function: str, **counts: Any) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ArgumentError(f"{function}: {name} must be a whole number of at least 1, got {described(value)}")
