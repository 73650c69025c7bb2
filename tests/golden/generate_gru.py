#!/usr/bin/env python3
"""Writes gru.safetensors for tests/suites/programs/test_pronounce.c: nn.GRU of PyTorch, both directions, sequences of different
lengths, states and gradients, in float64; and its initial values in float32.

Run this with PyTorch 2.15 (reference.py says how to install PyTorch, and how its bits are kept equal on all machines).
"""
import pathlib

from reference import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

B, T, IN, H = 4, 6, 3, 5
LENGTHS = torch.tensor([6, 1, 4, 3])
file = {}

torch.manual_seed(7)
for name, w in nn.GRU(IN, H).named_parameters():
    file[f"initial.{name}"] = w.detach()

torch.set_default_dtype(torch.float64)
torch.manual_seed(8)
gru = nn.GRU(IN, H, batch_first=True, bidirectional=True)
x = torch.randn(B, T, IN, requires_grad=True)
packed, _ = gru(pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False))
states, _ = pad_packed_sequence(packed, batch_first=True)  # 0 after the end of a sequence
dy = torch.randn(B, T, 2 * H) * (torch.arange(T)[None, :, None] < LENGTHS[:, None, None])
states.backward(dy)
file |= {"x": x.detach(), "lengths": LENGTHS, "states": states.detach(), "dy": dy, "dx": x.grad}
for name, w in gru.named_parameters():
    direction = "backward" if name.endswith("_reverse") else "forward"
    name = name.removesuffix("_reverse")
    file[f"{direction}.{name}"] = w.detach()
    file[f"d_{direction}.{name}"] = w.grad

# from a state that is not 0, one direction
one = nn.GRU(IN, H, batch_first=True)
one.load_state_dict({name: w for name, w in gru.state_dict().items() if not name.endswith("_reverse")})
h = torch.randn(B, H)
file |= {"h": h, "states_from_h": one(x, h[None])[0].detach()}

save_file({name: t.contiguous() for name, t in file.items()}, pathlib.Path(__file__).parent / "gru.safetensors")
