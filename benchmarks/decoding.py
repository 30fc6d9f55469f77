"""Time of generating tokens with a cache of keys and values, beside PyTorch's eager mode with the same network and cache.

    python -m benchmarks.decoding
    python -m benchmarks.decoding --layers 12 --features 768 --tokens 50257    the smallest GPT-2

Milliseconds of processor time of one thread: the first call in the process, which includes what each builds and prepares,
then the best of the rounds, in which the two take turns. Both have the same weights, the most likely token follows, and
their tokens are compared. PyTorch's cache is allocated in advance too, and its scores are those of the last token only.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch.nn import functional

import nn_core as nn
from nn_core.ext_utils import get_extension_context
from nn_core.models.transformer import GPT

PROMPT, NEW = 128, 64
BATCHES = (1, 8)


class OfTorch:
    """The network of `GPT` in PyTorch, with the same weights."""

    def __init__(self, gpt: GPT, n_heads: int) -> None:
        self.n_heads, self.n_layers = n_heads, len(gpt.blocks)
        self.weights = {
            name: torch.tensor(weight.d).T.contiguous() if name.endswith("affine/W") else torch.tensor(weight.d)
            for name, weight in gpt.get_parameters().items()
        }

    def __call__(self, x: torch.Tensor, caches: list[tuple[torch.Tensor, torch.Tensor]], place: int) -> torch.Tensor:
        """Return the scores after the last of some tokens that begin at a place."""
        end = place + x.shape[1]
        w = self.weights
        h = functional.embedding(x, w["tokens/embed/W"]) + w["positions/embed/W"][place:end]
        for number, cache in enumerate(caches):
            h = self._block(f"@blocks/@{number}/", h, cache, place, end)
        return self._norm("norm", h[:, -1]) @ w["tokens/embed/W"].T

    def _block(
        self, name: str, x: torch.Tensor, cache: tuple[torch.Tensor, torch.Tensor], place: int, end: int
    ) -> torch.Tensor:
        n, steps, features = x.shape
        heads = self._affine(f"{name}qkv", self._norm(f"{name}norm1", x)).view(n, steps, 3, self.n_heads, -1)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        keys, values = cache
        keys[:, :, place:end], values[:, :, place:end] = k, v
        mixed = functional.scaled_dot_product_attention(q, keys[:, :, :end], values[:, :, :end], is_causal=steps > 1)
        x = x + self._affine(f"{name}projection", mixed.transpose(1, 2).reshape(n, steps, features))
        hidden = functional.gelu(self._affine(f"{name}hidden", self._norm(f"{name}norm2", x)), approximate="tanh")
        return x + self._affine(f"{name}output", hidden)

    def _affine(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, self.weights[f"{name}/affine/W"], self.weights[f"{name}/affine/b"])

    def _norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        gamma, beta = (self.weights[f"{name}/layer_normalization/{part}"].flatten() for part in ("gamma", "beta"))
        return functional.layer_norm(x, gamma.shape, gamma, beta)

    @torch.inference_mode()
    def generate(self, prompt: torch.Tensor, length: int) -> torch.Tensor:
        """Return the most likely tokens."""
        n, steps = prompt.shape
        width = self.weights["tokens/embed/W"].shape[1] // self.n_heads
        shape = (n, self.n_heads, steps + length, width)
        caches = [(torch.empty(shape), torch.empty(shape)) for _ in range(self.n_layers)]
        tokens = [self(prompt, caches, 0).argmax(1)]
        for place in range(steps, steps + length - 1):
            tokens.append(self(tokens[-1][:, None], caches, place).argmax(1))
        return torch.stack(tokens, 1)


def measured(call: Callable[[], object]) -> float:
    """Measure milliseconds of processor time."""
    start = time.process_time()
    call()
    return 1e3 * (time.process_time() - start)


def row(gpt: GPT, peer: OfTorch, n: int, rounds: int) -> list[str]:
    """Return times of one batch size: first call, prompt, token; each with the ratio."""
    prompt = np.random.default_rng(0).integers(0, gpt.n_tokens, (n, PROMPT))
    of_torch = torch.tensor(prompt)
    calls = [
        lambda length: gpt.generate(prompt, length, temperature=0),
        lambda length: peer.generate(of_torch, length).numpy(),
    ]
    first = [measured(lambda call=call: call(NEW)) for call in calls]
    assert np.mean(np.stack(calls[0](NEW)) == calls[1](NEW)) > 0.9  # the scores of two tokens may be nearly equal
    prompts, alls = ([min(times) for times in zip(*runs, strict=True)] for runs in zip(*_rounds(calls, rounds), strict=True))
    cells = []
    tokens = [(both - one) / (NEW - 1) for one, both in zip(prompts, alls, strict=True)]
    for own, other in (first, prompts, tokens, alls):
        cells += [f"{own:.2f}", f"{other:.2f}", f"{own / other:.2f}"]
    return cells


def _rounds(calls: list[Callable[[int], object]], rounds: int) -> list[tuple[list[float], list[float]]]:
    """For each round the times of one token after the prompt, and of all tokens, of both."""
    found = []
    for _ in range(rounds):
        times = [(measured(lambda call=call: call(1)), measured(lambda call=call: call(NEW))) for call in calls]
        found.append(([one for one, _ in times], [both for _, both in times]))
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--features", type=int, default=384)
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    nn.set_num_threads(1)
    nn.set_default_context(get_extension_context("cpu"))
    n_heads = options.features // 64
    gpt = GPT(options.tokens, PROMPT + NEW, options.layers, options.features, n_heads)
    gpt(nn.Variable((1, 1)))
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, PyTorch {version('torch')}")
    print(f"{options.layers} layers, {options.features} features, {options.tokens} tokens; prompt {PROMPT}, {NEW} new\n")
    groups = ("first call", "prompt and first token", "further token", "all")
    print("| batch | " + " | ".join(f"{group}, nn_core | PyTorch | ratio" for group in groups) + " |")
    print("|---" * (1 + 3 * len(groups)) + "|")
    peer = OfTorch(gpt, n_heads)
    for n in BATCHES:
        print(f"| {n} | " + " | ".join(row(gpt, peer, n, options.rounds)) + " |", flush=True)


if __name__ == "__main__":
    main()
