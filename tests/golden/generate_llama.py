#!/usr/bin/env python3
"""Writes llama_float32.safetensors and llama_float64.safetensors for tests/suites/library/test_llama.c: a block each of
Llama 3.1, Qwen3 and Gemma 2, its values and gradients, and what a small model of Qwen3 writes after two prompts of
different lengths. The classes are those of Hugging Face's transformers, with random weights.

Run this with PyTorch 2.15 (reference.py says how to install PyTorch, and how its bits are kept equal on all machines)
and with `pip install transformers==5.24`.
"""
import pathlib

from reference import torch
import transformers
from safetensors.torch import save_file

B, N, C, WINDOW = 2, 6, 16, 4
# Of the four speeds of a head of 8 numbers one stays, two are between, and one is divided by 8.
LLAMA3 = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
COMMON = dict(hidden_size=C, intermediate_size=16, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
              vocab_size=32, max_position_embeddings=512, attn_implementation="eager", tie_word_embeddings=False,
              pad_token_id=0, bos_token_id=None, eos_token_id=None)
MODELS = {
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        num_hidden_layers=1, rope_parameters=LLAMA3, **COMMON)),
    "qwen3": lambda: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        num_hidden_layers=2, layer_types=["full_attention", "sliding_attention"], use_sliding_window=True,
        sliding_window=WINDOW, rope_parameters=LLAMA3, **COMMON)),
    "gemma2": lambda: transformers.Gemma2ForCausalLM(transformers.Gemma2Config(
        num_hidden_layers=1, layer_types=["sliding_attention"], sliding_window=WINDOW, query_pre_attn_scalar=10,
        attn_logit_softcapping=2.0, rope_parameters={"rope_type": "default", "rope_theta": 10000.0}, **COMMON)),
}


def in_double():
    """Transformers computes norms, angles and softmax in float32. From here on they are computed in float64."""
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double


def model_of(name):
    torch.manual_seed(53)
    model = MODELS[name]().eval()
    for w in model.parameters():
        torch.nn.init.normal_(w, 1 if w.dim() == 1 and name != "gemma2" else 0, 0.3)
    return model


def block_of(name, file):
    """The values and gradients of the first block."""
    model = model_of(name).model
    layer, x, dy = model.layers[0], torch.randn(B, N, C, requires_grad=True), torch.randn(B, N, C)
    seen = torch.ones(N, N).tril().bool()
    if name == "gemma2":
        seen &= torch.ones(N, N).triu(1 - WINDOW).bool()
    mask = torch.zeros(N, N).masked_fill(~seen, torch.finfo(x.dtype).min)[None, None]
    positions = torch.arange(N)[None]
    y = layer(x, attention_mask=mask, position_ids=positions, position_embeddings=model.rotary_emb(x, positions))
    y.backward(dy)
    file |= {f"data.{name}.x": x, f"data.{name}.dy": dy, f"data.{name}.y": y, f"data.{name}.dx": x.grad}
    for path, w in layer.named_parameters():
        file[f"{name}.{path}"], file[f"gradient.{name}.{path}"] = w, w.grad


def text_of(file):
    """What the model writes after two prompts, of which the second is padded on the left, and its scores."""
    model = model_of("qwen3")
    prompts = torch.tensor([[5, 9, 2, 31, 7, 12], [0, 0, 0, 8, 3, 20]])
    text = model.generate(prompts, attention_mask=(prompts > 0).long(), max_new_tokens=8, do_sample=False,
                          output_logits=True, return_dict_in_generate=True)
    logits = torch.stack(text.logits, 1)  # (B, 8, V)
    best = logits.topk(2).values
    assert (text.sequences[:, 6:] != 0).all(), "the padding looks like a token"
    assert (best[..., 0] - best[..., 1]).min() > 1e-3, "two tokens are nearly as probable"
    file |= {"data.lm.text": text.sequences, "data.lm.logits": logits}
    file |= {f"lm.{path}": w for path, w in model.named_parameters()}


for dtype in "float32", "float64":
    if dtype == "float64":
        in_double()
    file = {}
    for name in MODELS:
        block_of(name, file)
    text_of(file)
    path = pathlib.Path(__file__).parent / f"llama_{dtype}.safetensors"
    save_file({name: t.detach().contiguous() for name, t in file.items()}, path)
