#!/usr/bin/env python3
"""Writes charlm.txt, the losses of nanoGPT's model in PyTorch, for tests/suites/programs/test_charlm.c.

Run this with PyTorch 2.15 (reference.py says how to install PyTorch, and how its bits are kept equal on all
machines). The files are written beside this one, with the same bytes every time.

This is examples/charlm.c in PyTorch: the same seed draws the same parameters and the same windows of
LICENSE. A line is a tensor: name, type, number of dimensions, sizes, elements.
"""
import math
import pathlib

from reference import torch
from torch.nn import functional as F

HERE = pathlib.Path(__file__).parent
T, C, H, LAYERS, B, STEPS, LR = 16, 16, 2, 2, 4, 60, 0.01

text = (HERE.parent.parent / "LICENSE").read_bytes()
vocabulary = sorted(set(text))
symbols = torch.tensor([vocabulary.index(byte) for byte in text])
held_out = len(text) - len(text) // 10


def normal(std, *shape):
    return torch.empty(shape).normal_(0, std).requires_grad_()


def ones():
    return torch.ones(C, requires_grad=True)


def block():
    for size_in, size_out in [(C, C)] * 4 + [(C, 4 * C), (4 * C, C)]:
        torch.nn.Linear(size_in, size_out, bias=False)  # draws, as charlm does; then the weights are drawn again
    adds = 0.02 / math.sqrt(2 * LAYERS)
    return {
        "W_q": normal(0.02, C, C), "W_k": normal(0.02, C, C), "W_v": normal(0.02, C, C),
        "up": normal(0.02, 4 * C, C), "W_o": normal(adds, C, C), "down": normal(adds, C, 4 * C),
        "norm1": ones(), "norm2": ones(),
    }


torch.manual_seed(1)
tokens, places = normal(0.02, len(vocabulary), C), normal(0.02, T, C)
blocks = [block() for _ in range(LAYERS)]
norm = ones()
parameters = [tokens, places, norm] + [p for b in blocks for p in b.values()]


def attention(b, x):
    q, k, v = [(x @ b[w].T).view(*x.shape[:2], H, C // H).transpose(1, 2)
               for w in ("W_q", "W_k", "W_v")]
    future = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
    scores = (q @ k.transpose(-2, -1) / math.sqrt(C // H)).masked_fill(future, -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape) @ b["W_o"].T


def forward(x):
    x = tokens[x] + places[: x.shape[1]]
    for b in blocks:
        x = x + attention(b, F.layer_norm(x, (C,), b["norm1"]))
        x = x + F.gelu(F.layer_norm(x, (C,), b["norm2"]) @ b["up"].T) @ b["down"].T
    return F.layer_norm(x, (C,), norm) @ tokens.T


def loss_of(starts):
    windows = torch.stack([symbols[i : i + T + 1] for i in starts])
    return F.cross_entropy(forward(windows[:, :-1]).transpose(1, 2), windows[:, 1:])


adamw = torch.optim.AdamW(
    [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
     {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0}],
    lr=LR, betas=(0.9, 0.99))
losses = []
for step in range(STEPS):
    loss = loss_of(torch.randint(0, held_out - T, (B,)))
    factor = min(1, (step + 1) / (STEPS // 20)) * (0.55 + 0.45 * math.cos(math.pi * step / STEPS))
    for group in adamw.param_groups:
        group["lr"] = LR * factor
    adamw.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1)
    adamw.step()
    losses.append(loss.item())

with torch.no_grad():
    result = loss_of(range(held_out, len(text) - T, T)).item()
with open(HERE / "charlm.txt", "w") as file:
    file.write(" ".join(["losses", "float32", "1", str(STEPS), *map(float.hex, losses)]) + "\n")
    file.write(" ".join(["held_out", "float32", "0", float.hex(result)]) + "\n")
