#!/usr/bin/env python3
"""Writes nn.txt and nn_print.txt for tests/suites/library/test_nn.c: PyTorch's modules, the numbers that they draw and
compute, and the text that they print.

Run this with PyTorch 2.15 (reference.py says how to install PyTorch, and how its bits are kept equal on all
machines). The files are written beside this one, with the same bytes every time.

A line of nn.txt is a tensor: name, type, number of dimensions, sizes, elements. Floats are written
in hexadecimal, to the bit. nn_print.txt is the output of print(module) for several modules.
"""
import math
import pathlib
import warnings

import numpy as np
from reference import torch
from torch import nn

warnings.filterwarnings("ignore")
HERE = pathlib.Path(__file__).parent
TYPES = {torch.float32: "float32", torch.float64: "float64", torch.int64: "int64"}
lines = []


def record(name, x):
    write = str if x.dtype == torch.int64 else float.hex
    elements = [write(e) for e in x.detach().reshape(-1).tolist()]
    lines.append(" ".join([name, TYPES[x.dtype], str(x.dim()), *map(str, x.shape), *elements]))


# ---- the modules, as the notebook defines them; those of attention are only printed here ---------


class DotProductAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)


class AdditiveAttention(nn.Module):
    def __init__(self, num_hiddens, dropout):
        super().__init__()
        self.W_k = nn.LazyLinear(num_hiddens, bias=False)
        self.W_q = nn.LazyLinear(num_hiddens, bias=False)
        self.w_v = nn.LazyLinear(1, bias=False)
        self.dropout = nn.Dropout(dropout)


class MultiHeadAttention(nn.Module):
    def __init__(self, num_hiddens, num_heads, dropout, bias, q_size=0, k_size=0, v_size=0):
        super().__init__()
        self.attention = DotProductAttention(dropout)
        for name, size in ("W_q", q_size), ("W_k", k_size), ("W_v", v_size), ("W_o", num_hiddens):
            lazy = size == 0 or name == "W_o" and q_size == 0
            layer = nn.LazyLinear if lazy else lambda *a, **b: nn.Linear(size, *a, **b)
            setattr(self, name, layer(num_hiddens, bias=bias))


class PositionalEncoding(nn.Module):
    def __init__(self, num_hiddens, dropout, max_len=1000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.P = torch.zeros((1, max_len, num_hiddens))
        dtype = torch.get_default_dtype()
        X = torch.arange(max_len, dtype=dtype).reshape(-1, 1) / torch.pow(
            10000, torch.arange(0, num_hiddens, 2, dtype=dtype) / num_hiddens)
        self.P[:, :, 0::2] = torch.sin(X)
        self.P[:, :, 1::2] = torch.cos(X)

    def forward(self, X):
        return self.dropout(X + self.P[:, : X.shape[1], :])


# ---- the recorded numbers -----------------------------------------------------------------------


def draws():
    for dtype in torch.float32, torch.float64:
        torch.set_default_dtype(dtype)
        for size in 1, 2, 3, 5, 6, 7, 10, 11, 20, 48, 100, 300:
            torch.manual_seed(size)
            layer = nn.Linear(size, 2)
            record(f"draw_{TYPES[dtype]}_{size}_weight", layer.weight)
            record(f"draw_{TYPES[dtype]}_{size}_bias", layer.bias)


def checksum(x):
    """A number for the bits of all elements: sum of (2 i + 1) bits[i], modulo 2^53."""
    bits = x.detach().numpy().reshape(-1).view(f"u{x.element_size()}").astype("u8")
    return int((bits * (2 * np.arange(len(bits), dtype="u8") + 1)).sum(dtype="u8")) % 2**53


def fifty_layers():
    """Checksums of the weights of fifty Linear layers of many sizes, drawn one after the other."""
    for dtype in torch.float32, torch.float64:
        torch.set_default_dtype(dtype)
        torch.manual_seed(50)
        layers = [nn.Linear(1 + 37 * i % 211, 1 + 53 * i % 97) for i in range(50)]
        checksums = [[checksum(layer.weight), checksum(layer.bias)] for layer in layers]
        record(f"fifty_{TYPES[dtype]}_checksums", torch.tensor(checksums))


def forward_and_backward(name, module, x):
    """Records the output, a cotangent, and the gradient of the input and of every parameter."""
    x = x.clone().requires_grad_()
    output = module(x)
    cotangent = torch.randn_like(output)
    output.backward(cotangent)
    record(f"{name}_output", output)
    record(f"{name}_cotangent", cotangent)
    record(f"{name}_dx", x.grad)
    for path, parameter in module.named_parameters():
        record(f"{name}_d{path}", parameter.grad)


def linear():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(1)
    layer, x = nn.Linear(4, 5), torch.randn(2, 3, 4)
    record("linear_weight", layer.weight)
    record("linear_bias", layer.bias)
    record("linear_x", x)
    forward_and_backward("linear", layer, x)


def embedding():
    """PyTorch draws fewer than 16 normal numbers one by one, and more in blocks."""
    for dtype in torch.float32, torch.float64:
        torch.set_default_dtype(dtype)
        for size in 2, 5, 50:
            torch.manual_seed(size)
            record(f"embedding_{TYPES[dtype]}_{size}_weight", nn.Embedding(size, 3).weight)
    torch.manual_seed(11)
    layer, index = nn.Embedding(4, 3), torch.tensor([[0, 3], [3, 1]])
    y, dy = layer(index), torch.randn(2, 2, 3)
    y.backward(dy)
    record("embedding_index", index)
    record("embedding_y", y)
    record("embedding_dy", dy)
    record("embedding_dweight", layer.weight.grad)


def layer_norm():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(12)
    layer, x = nn.LayerNorm((3, 4)), torch.randn(2, 3, 4)
    record("norm_x", x)
    nn.init.normal_(layer.weight)
    nn.init.normal_(layer.bias)
    record("norm_weight", layer.weight)
    record("norm_bias", layer.bias)
    forward_and_backward("norm", layer, x)


def rms_norm():
    torch.manual_seed(15)
    layer, x = nn.RMSNorm((3, 4)), torch.randn(2, 3, 4)
    x[0] *= 1e-8  # beside the eps of float64
    record("rms_x", x)
    nn.init.normal_(layer.weight)
    record("rms_weight", layer.weight)
    forward_and_backward("rms", layer, x)


def positional_encoding():
    for dtype in torch.float32, torch.float64:
        torch.set_default_dtype(dtype)
        P = PositionalEncoding(32, 0, 1000).P[:, ::37]
        record(f"position_{TYPES[dtype]}_P", P)
    torch.manual_seed(13)
    layer, x = PositionalEncoding(6, 0.5, 20), torch.randn(2, 5, 6)
    record("position_x", x)
    torch.manual_seed(14)
    forward_and_backward("position", layer, x)


def dropout():
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(6)
    record("dropout_x", torch.randn(5, 7))
    record("dropout_y", nn.Dropout(0.3)(torch.ones(5, 7)))


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = MultiHeadAttention(10, 5, 0.5, False, 10, 10, 10)
        self.head = nn.Linear(10, 3)


FLOATS = (1e-4, 0.00001234, 10.0, 123456.0, 1e15, 123456789012345678.0, 1e16, math.inf, math.nan)


class Empty(nn.Module):
    pass


def prints():
    torch.set_default_dtype(torch.float32)
    lazy = nn.LazyLinear(8, bias=False)
    modules = [nn.Linear(10, 10, bias=False), nn.Linear(2, 3), lazy]
    text = "".join(f"{m}\n" for m in modules)
    lazy(torch.ones(2, 3))
    modules = [lazy, nn.LazyLinear(3), Empty(), DotProductAttention(0.1), AdditiveAttention(8, 0.25),
               MultiHeadAttention(10, 5, 0.5, False, 10, 10, 10), MultiHeadAttention(8, 2, 0.0, True),
               Outer(), nn.Embedding(10, 3), nn.LayerNorm(4), nn.LayerNorm((2, 3), eps=0.1),
               nn.RMSNorm(4), nn.RMSNorm((2, 3), eps=1e-6),
               PositionalEncoding(4, 0.1, 9), *map(nn.LayerNorm, [5] * 9, FLOATS), *map(nn.Dropout, (0.0, 1.0, 0.1, 1 / 3, 1e-5, 0.0001))]
    return text + "".join(f"{m}\n" for m in modules)


draws()
fifty_layers()
linear()
embedding()
layer_norm()
rms_norm()
positional_encoding()
dropout()
(HERE / "nn.txt").write_text("\n".join(lines) + "\n")
(HERE / "nn_print.txt").write_text(prints())
