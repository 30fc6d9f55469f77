"""Transformers against their equations in NumPy, with weights under the names of PyTorch's state dicts."""

import numpy as np
import pytest
from scipy.special import erf

import nn_core as nn
from nn_core.errors import ArgumentError, ShapeError
from nn_core.io import load_pytorch_parameters
from nn_core.models.transformer import GPT, Block, VisionTransformer

E, HEADS, HIDDEN = 8, 2, 32


def _norm(x, weight, bias, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def _attention(qkv, is_causal):
    """Shape (N, T, 3 E) to (N, T, E)."""
    n, steps, _ = qkv.shape
    q, k, v = (part.reshape(n, steps, HEADS, -1).transpose(0, 2, 1, 3) for part in np.split(qkv, 3, axis=2))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(E // HEADS)
    if is_causal:
        scores = np.where(np.tri(steps, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(n, steps, E)


def _vit(t, x):
    patches = x.reshape(2, 3, 2, 4, 2, 4).transpose(0, 2, 4, 1, 3, 5).reshape(2, 4, -1)
    h = patches @ t["conv_proj.weight"].reshape(E, -1).T + t["conv_proj.bias"]
    h = np.concatenate([np.broadcast_to(t["class_token"], (2, 1, E)), h], axis=1) + t["encoder.pos_embedding"]
    for number in range(2):
        p = {key: t[f"encoder.layers.encoder_layer_{number}.{key}"] for key in VIT_BLOCK}
        qkv = _norm(h, p["ln_1.weight"], p["ln_1.bias"], 1e-6) @ p["self_attention.in_proj_weight"].T
        mixed = _attention(qkv + p["self_attention.in_proj_bias"], False)
        h = h + mixed @ p["self_attention.out_proj.weight"].T + p["self_attention.out_proj.bias"]
        m = _norm(h, p["ln_2.weight"], p["ln_2.bias"], 1e-6) @ p["mlp.0.weight"].T + p["mlp.0.bias"]
        h = h + m * (1 + erf(m / np.sqrt(2))) / 2 @ p["mlp.3.weight"].T + p["mlp.3.bias"]
    h = _norm(h, t["encoder.ln.weight"], t["encoder.ln.bias"], 1e-6)[:, 0]
    return h @ t["heads.head.weight"].T + t["heads.head.bias"]


def _gpt(t, x):
    h = t["wte.weight"][x] + t["wpe.weight"][: x.shape[1]]
    for number in range(2):
        p = {key: t[f"h.{number}.{key}"] for key in GPT_BLOCK}
        qkv = _norm(h, p["ln_1.weight"], p["ln_1.bias"], 1e-5) @ p["attn.c_attn.weight"] + p["attn.c_attn.bias"]
        h = h + _attention(qkv, True) @ p["attn.c_proj.weight"] + p["attn.c_proj.bias"]
        m = _norm(h, p["ln_2.weight"], p["ln_2.bias"], 1e-5) @ p["mlp.c_fc.weight"] + p["mlp.c_fc.bias"]
        m = m / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (m + 0.044715 * m**3)))
        h = h + m @ p["mlp.c_proj.weight"] + p["mlp.c_proj.bias"]
    return _norm(h, t["ln_f.weight"], t["ln_f.bias"], 1e-5) @ t["wte.weight"].T


NORMS = {"ln_1.weight": (E,), "ln_1.bias": (E,), "ln_2.weight": (E,), "ln_2.bias": (E,)}
VIT_BLOCK = NORMS | {
    "self_attention.in_proj_weight": (3 * E, E),
    "self_attention.in_proj_bias": (3 * E,),
    "self_attention.out_proj.weight": (E, E),
    "self_attention.out_proj.bias": (E,),
    "mlp.0.weight": (HIDDEN, E),
    "mlp.0.bias": (HIDDEN,),
    "mlp.3.weight": (E, HIDDEN),
    "mlp.3.bias": (E,),
}
VIT = {
    "class_token": (1, 1, E),
    "conv_proj.weight": (E, 3, 4, 4),
    "conv_proj.bias": (E,),
    "encoder.pos_embedding": (1, 5, E),
    **{f"encoder.layers.encoder_layer_{n}.{key}": shape for n in range(2) for key, shape in VIT_BLOCK.items()},
    "encoder.ln.weight": (E,),
    "encoder.ln.bias": (E,),
    "heads.head.weight": (5, E),
    "heads.head.bias": (5,),
}
GPT_BLOCK = NORMS | {
    "attn.c_attn.weight": (E, 3 * E),
    "attn.c_attn.bias": (3 * E,),
    "attn.c_proj.weight": (E, E),
    "attn.c_proj.bias": (E,),
    "mlp.c_fc.weight": (E, HIDDEN),
    "mlp.c_fc.bias": (HIDDEN,),
    "mlp.c_proj.weight": (HIDDEN, E),
    "mlp.c_proj.bias": (E,),
}
GPT2 = {
    "wte.weight": (11, E),
    "wpe.weight": (6, E),
    **{f"h.{n}.{key}": shape for n in range(2) for key, shape in GPT_BLOCK.items()},
    "ln_f.weight": (E,),
    "ln_f.bias": (E,),
}


def _file(path, shapes, rng, prefix=""):
    tensors = {name: rng.uniform(-0.5, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    nn.save_parameters(path, {prefix + name: nn.Variable.from_numpy_array(values) for name, values in tensors.items()})
    return tensors


def test_a_vision_transformer_computes_what_torchvision_s_would(tmp_path, rng):
    tensors = _file(tmp_path / "vit.safetensors", VIT, rng)
    vit = VisionTransformer(8, 4, n_layers=2, n_features=E, n_heads=HEADS, n_hidden=HIDDEN, n_classes=5)
    x = nn.Variable.from_numpy_array(rng.standard_normal((2, 3, 8, 8)))
    y = vit(x)
    report = load_pytorch_parameters(tmp_path / "vit.safetensors", vit.torchvision_layers(), vit.get_parameters())
    assert report.is_exact
    y.forward()
    np.testing.assert_allclose(y.d, _vit(tensors, x.d), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_a_language_model_computes_what_gpt_2_would(tmp_path, rng, prefix):
    tensors = _file(tmp_path / "gpt.safetensors", GPT2, rng, prefix)
    gpt = GPT(11, n_positions=6, n_layers=2, n_features=E, n_heads=HEADS)
    x = nn.Variable.from_numpy_array(rng.integers(0, 11, (2, 5)).astype(np.int32))
    y = gpt(x)
    layers = gpt.gpt2_layers(prefix)
    assert load_pytorch_parameters(tmp_path / "gpt.safetensors", layers, gpt.get_parameters(), conv1d=True).is_exact
    y.forward()
    np.testing.assert_allclose(y.d, _gpt(tensors, x.d), rtol=1e-4, atol=1e-5)


def test_dropout_takes_place_in_training_only(rng):
    block = Block(E, HEADS, HIDDEN, dropout=0.5)
    x = nn.Variable.from_numpy_array(rng.standard_normal((2, 5, E)))
    for training in (True, False):
        block.training = training
        first, second = block(x), block(x)
        nn.forward_all([first, second])
        assert np.array_equal(first.d, second.d) is not training


def test_the_defaults_have_the_sizes_of_the_papers():
    vit, gpt = VisionTransformer(), GPT()
    assert (len(vit.blocks), vit.n_features, len(gpt.blocks), gpt.n_features, gpt.n_tokens) == (12, 768, 12, 768, 50257)
    block = vit.blocks[0]
    block(nn.Variable((1, 2, 768)))
    assert sum(w.size for w in block.get_parameters().values()) == 7_087_872  # twelfth of ViT-B, nearly


def test_wrong_sizes_are_refused():
    for call, error, message in (
        (lambda: Block(8, 3, 4), ArgumentError, "n_heads must divide n_features, got 3 and 8"),
        (lambda: Block(8, 2, 0), ArgumentError, "n_hidden must be a whole number of at least 1, got 0"),
        (lambda: VisionTransformer(10, 4), ArgumentError, "patch_size must divide image_size, got 4 and 10"),
        (lambda: GPT(2.5), ArgumentError, r"n_tokens must be a whole number of at least 1, got 2\.5"),
        (lambda: VisionTransformer(8, 4)(nn.Variable((1, 3, 4, 8))), ShapeError, r"must have the shape \(N, 3, 8, 8\), got"),
        (lambda: GPT(5, 4)(nn.Variable((1, 5))), ShapeError, r"\(N, T\) with T from 1 to 4, got \(1, 5\)"),
    ):
        with pytest.raises(error, match=message):
            call()
