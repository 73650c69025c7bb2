#!/usr/bin/env python3
"""Writes llama_float32.safetensors and llama_float64.safetensors for tests/suites/library/test_llama.c: a block of
Llama with the names of Hugging Face's files, and its values and gradients.

Run this with PyTorch 2.15 (reference.py says how to install PyTorch, and how its bits are kept equal on all machines).
The block is written as LlamaDecoderLayer of Hugging Face's transformers, which is not needed here.
"""
import pathlib

from reference import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

B, N, C, H, G, HIDDEN, BASE, EPS = 2, 6, 16, 4, 2, 24, 10000.0, 1e-6
D = C // H


def rotate_half(x):
    return torch.cat([-x[..., D // 2:], x[..., :D // 2]], -1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(C, H * D, bias=False), nn.Linear(C, G * D, bias=False)
        self.v_proj, self.o_proj = nn.Linear(C, G * D, bias=False), nn.Linear(H * D, C, bias=False)

    def forward(self, x):
        q, k, v = (w(x).view(B, N, -1, D).transpose(1, 2) for w in (self.q_proj, self.k_proj, self.v_proj))
        angle = torch.arange(N)[:, None] * BASE ** (-torch.arange(0, D, 2).double() / D)
        cos, sin = (torch.cat([f(angle)] * 2, -1).to(x.dtype) for f in (torch.cos, torch.sin))
        q, k = (t * cos + rotate_half(t) * sin for t in (q, k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).reshape(B, N, C))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(C, HIDDEN, bias=False), nn.Linear(C, HIDDEN, bias=False)
        self.down_proj = nn.Linear(HIDDEN, C, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn, self.mlp = Attention(), MLP()
        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(C, EPS), nn.RMSNorm(C, EPS)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


for dtype in torch.float32, torch.float64:
    torch.set_default_dtype(dtype)
    torch.manual_seed(50)
    layer, x, dy = Layer(), torch.randn(B, N, C, requires_grad=True), torch.randn(B, N, C)
    for norm in layer.input_layernorm, layer.post_attention_layernorm:
        nn.init.normal_(norm.weight, 1, 0.5)
    y = layer(x)
    y.backward(dy)
    file = {"x": x, "dy": dy, "y": y, "dx": x.grad}
    for name, w in layer.named_parameters():
        file[f"model.layers.0.{name}"], file[f"gradient.model.layers.0.{name}"] = w, w.grad
    path = pathlib.Path(__file__).parent / f"llama_{str(dtype).removeprefix('torch.')}.safetensors"
    save_file({name: t.detach().contiguous() for name, t in file.items()}, path)
