"""Train a transformer to continue a text character by character, with a trainer.

The text is made here: sums of two numbers from 0 to 9, in words. A second run continues from the newest checkpoint in -o.
Ends with an error when the model completes fewer than 95 % of the sums rightly.
"""

import numpy as np
from command import require, start

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.data import data_iterator_simple
from nn_core.training import Checkpoint, Log, Plot, Progress, Schedule, Trainer, Updater, every
from nn_core.utils.learning_rate_scheduler import CosineScheduler, LinearWarmupScheduler

NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve"
WORDS = [*NUMBERS.split(), "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"]
SUMS = [f"{WORDS[a]} plus {WORDS[b]} is {WORDS[a + b]}.\n" for a in range(10) for b in range(10)]
ALPHABET = sorted(set("".join(SUMS)))
LENGTH, WIDTH, HEADS, BLOCKS, BATCH_SIZE, EPOCHS = max(map(len, SUMS)), 64, 4, 2, 25, 100


def numbers(text):
    """Return the characters as numbers, filled up with the last one, the end of a line."""
    return np.array([ALPHABET.index(character) for character in text.ljust(LENGTH, "\n")])


def network(x):
    """Scores of the next character at each place: (B, L) -> (B, L, characters)."""
    batch, length = x.shape
    h = PF.embed(x, len(ALPHABET), WIDTH, name="characters")
    h = h + PF.embed(F.constant(0, (1, length)) + F.reshape(F.arange(0, length), (1, length)), LENGTH, WIDTH, name="places")
    for block in range(BLOCKS):
        with nn.parameter_scope(f"block{block}"):
            qkv = PF.affine(PF.layer_normalization(h, batch_axis=(0, 1), name="first"), 3 * WIDTH, base_axis=2, name="qkv")
            q, k, v = F.split(F.transpose(F.reshape(qkv, (batch, length, 3, HEADS, -1)), (2, 0, 3, 1, 4)), axis=0)
            mixed = F.transpose(F.scaled_dot_product_attention(q, k, v, is_causal=True), (0, 2, 1, 3))
            h = h + PF.affine(F.reshape(mixed, (batch, length, WIDTH)), WIDTH, base_axis=2, name="mix")
            wide = PF.affine(PF.layer_normalization(h, batch_axis=(0, 1), name="second"), 4 * WIDTH, base_axis=2, name="wide")
            h = h + PF.affine(F.gelu(wide), WIDTH, base_axis=2, name="narrow")
    return PF.affine(PF.layer_normalization(h, batch_axis=(0, 1), name="last"), len(ALPHABET), base_axis=2, name="next")


def completed(y, x):
    """Return the share of the sums that are right when the most likely character is taken again and again."""
    right = 0
    for some in range(0, len(SUMS), BATCH_SIZE):
        lines = SUMS[some : some + BATCH_SIZE]
        texts = [line[: line.index(" is ") + 4] for line in lines]
        for _ in range(LENGTH - min(map(len, texts))):
            x.d = np.stack([numbers(text) for text in texts])
            y.forward(clear_buffer=True)
            best = y.d.argmax(axis=2)
            texts = [(text + ALPHABET[row[len(text) - 1]])[:LENGTH] for text, row in zip(texts, best, strict=True)]
        right += sum(text.startswith(line) for text, line in zip(texts, lines, strict=True))
    return right / len(SUMS)


def main():
    """Train, complete all sums, and compare with what is expected."""
    out = start(__doc__)
    texts = np.stack([numbers(line) for line in SUMS])
    x, t = nn.Variable((BATCH_SIZE, LENGTH)), nn.Variable((BATCH_SIZE, LENGTH - 1, 1))
    y = network(x)
    loss = F.mean(F.softmax_cross_entropy(y[:, :-1], t, axis=2))
    solver = S.Adam(0.002)
    solver.set_parameters(nn.get_parameters())
    steps = EPOCHS * len(SUMS) // BATCH_SIZE
    with data_iterator_simple(lambda i: (texts[i], texts[i, 1:, None]), len(SUMS), BATCH_SIZE, shuffle=True) as data:
        trainer = Trainer(Updater(data, [x, t], loss, solver, clip_norm=1.0), every(EPOCHS, "epoch"), out)
        schedule = Schedule(LinearWarmupScheduler(CosineScheduler(0.002, steps), warmup_iter=20))
        trainer.extend(schedule, Log(), Plot("loss"), Progress(), Checkpoint())
        trainer.run(resume=True)
    require(completed(y, x), 0.95, "the sums are completed rightly")


if __name__ == "__main__":
    main()
