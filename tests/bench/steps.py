#!/usr/bin/env python3
"""steps.py - the cases of steps.c, trained by PyTorch: a JSON object per line, with the same keys.

The models are written as in Dive into Deep Learning and nanoGPT. A path is a way to compute attention:
"composed" of ops, by "sdpa" (F.scaled_dot_product_attention) or by the "module" nn.MultiheadAttention, which
computes q, k and v in one product. With --compile=compiled, torch.compile makes one function of the forward
pass and the loss; with --compile=autotuned in its mode "max-autotune". Memory is the peak of the process minus
the memory after the imports.

tests/bench/compare runs this beside steps.c.
"""
import math
import time

import torch
import torch._dynamo  # large; otherwise the first optimizer imports it
import torch.nn.functional as F
from torch import nn

import common

FOOTPRINT = common.peak_memory()

# ---- models ---------------------------------------------------------------------------------------


class NWKernelRegression(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(1))

    def forward(self, queries, keys, values):
        K = keys.shape[1]
        queries = queries.repeat_interleave(K).reshape(-1, K)
        weights = F.softmax(-(((queries - keys) * self.w) ** 2) / 2, dim=1)
        return torch.bmm(weights.unsqueeze(1), values.unsqueeze(-1)).reshape(-1)


def behind(length):
    """(N, N): true for the keys after each query"""
    return torch.ones(length, length).triu(1).bool()


def padding(keys, lengths):
    """(B, K): true for the keys after the end of their sequence"""
    return torch.arange(keys.shape[1]) >= lengths[:, None]


def attend(path, q, k, v, ignored=None, causal=False, dropout=0.0):
    """q, k, v: (B, H, N, D) -> same. ignored: pairs of a query and a key; causal means keys after the query"""
    if path == "sdpa":
        allowed = None if causal or ignored is None else ~ignored
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout, is_causal=causal)
    B, D = q.shape[0], q.shape[-1]
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    scores = (torch.bmm(q, k.transpose(1, 2)) / math.sqrt(D)).unflatten(0, (B, -1))
    if ignored is not None:
        scores = scores.masked_fill(ignored, -math.inf)
    weights = F.dropout(F.softmax(scores, dim=-1), dropout)
    return torch.bmm(weights.flatten(0, 1), v).unflatten(0, (B, -1))


class MultiHeadAttention(nn.Module):
    def __init__(self, path, C, H, dropout, causal_length=0):
        super().__init__()
        self.path, self.H, self.dropout = path, H, dropout
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(C, C, bias=False) for _ in range(4))
        self.later = behind(causal_length) if causal_length else None

    def split(self, x):
        """(B, N, C) -> (B, H, N, D)"""
        return x.unflatten(2, (self.H, -1)).transpose(1, 2)

    def forward(self, q, k, v, lengths):
        ignored = self.later if lengths is None else padding(k, lengths)[:, None, None, :]
        q, k, v = self.split(self.W_q(q)), self.split(self.W_k(k)), self.split(self.W_v(v))
        y = attend(self.path, q, k, v, ignored, self.later is not None, self.dropout)
        return self.W_o(y.transpose(1, 2).flatten(2))


class PyTorchsOwn(nn.Module):
    """The path "module"."""

    def __init__(self, C, H, dropout, causal_length=0):
        super().__init__()
        self.attention = nn.MultiheadAttention(C, H, dropout=dropout, bias=False, batch_first=True)
        self.later = behind(causal_length) if causal_length else None

    def forward(self, q, k, v, lengths):
        ignored = None if lengths is None else padding(k, lengths)
        return self.attention(q, k, v, key_padding_mask=ignored, need_weights=False, attn_mask=self.later,
                              is_causal=self.later is not None)[0]


class AdditiveAttention(nn.Module):
    def __init__(self, query_size, key_size, C, dropout):
        super().__init__()
        self.W_q = nn.Linear(query_size, C, bias=False)
        self.W_k = nn.Linear(key_size, C, bias=False)
        self.w_v = nn.Linear(C, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, q, k, v, lengths):
        features = torch.tanh(self.W_q(q).unsqueeze(2) + self.W_k(k).unsqueeze(1))
        scores = self.w_v(features).squeeze(-1).masked_fill(padding(k, lengths)[:, None, :], -math.inf)
        return torch.bmm(self.dropout(F.softmax(scores, dim=-1)), v)


class Block(nn.Module):
    def __init__(self, path, C, H, length):
        super().__init__()
        self.path, self.H = path, H
        self.ln1, self.ln2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.proj = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)
        self.fc, self.out = nn.Linear(C, 4 * C, bias=False), nn.Linear(4 * C, C, bias=False)
        self.later = behind(length)

    def forward(self, x):
        qkv = self.qkv(self.ln1(x)).chunk(3, dim=2)
        q, k, v = (part.unflatten(2, (self.H, -1)).transpose(1, 2) for part in qkv)
        y = attend(self.path, q, k, v, self.later, causal=True)
        x = x + self.proj(y.transpose(1, 2).flatten(2))
        return x + self.out(F.gelu(self.fc(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, path, vocabulary, C, H, length, layers):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, C), nn.Embedding(length, C)
        self.h = nn.ModuleList(Block(path, C, H, length) for _ in range(layers))
        self.lnf, self.head = nn.LayerNorm(C), nn.Linear(C, vocabulary, bias=False)
        self.wte.weight = self.head.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return F.cross_entropy(self.head(self.lnf(x)).flatten(0, 1), targets.flatten())


# ---- the cases: each is a function that does one step and returns the loss ------------------------


MODES = {"compiled": "default", "autotuned": "max-autotune"}


def compiled(options, function):
    """The function, or what torch.compile makes of it in the mode that --compile names."""
    if not options.compile:
        return function
    return torch.compile(function, fullgraph=True, dynamic=False, mode=MODES[options.compile])


def training(options, net, optimizer, loss, clip=0):
    loss = compiled(options, loss)

    def step():
        optimizer.zero_grad(set_to_none=True)
        value = loss()
        value.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        return value.detach()

    return step


def sgd(options, net, lr, loss):
    return training(options, net, torch.optim.SGD(net.parameters(), lr=lr), loss)


def nw(options):
    n = 50
    x = (torch.rand(n) * 5).sort()[0]
    y = 2 * torch.sin(x) + x**0.8 + torch.normal(0.0, 0.5, (n,))
    others = ~torch.eye(n).bool()
    keys, values = (t.repeat(n, 1)[others].reshape(n, n - 1) for t in (x, y))
    net = NWKernelRegression()
    return sgd(options, net, 0.5, lambda: F.mse_loss(net(x, keys, values), y, reduction="none").sum())


def random_lengths(B, longest):
    return torch.randint(1, longest + 1, (B,))


def mha(options, B, Q, K, C, H, dropout, lengths=None, causal=False):
    lengths = lengths and lengths()
    model = (C, H, dropout, Q if causal else 0)
    net = PyTorchsOwn(*model) if options.path == "module" else MultiHeadAttention(options.path, *model)
    q = torch.randn(B, Q, C)
    k = q if K == Q else torch.randn(B, K, C)
    return sgd(options, net, 0.01, lambda: net(q, k, k, lengths).square().mean())


def additive(options):
    net = AdditiveAttention(20, 24, 64, 0.1)
    q, k, v = torch.randn(32, 16, 20), torch.randn(32, 32, 24), torch.randn(32, 32, 24)
    lengths = random_lengths(32, 32)
    return sgd(options, net, 0.01, lambda: net(q, k, v, lengths).square().mean())


def gpt(options, B=12, vocabulary=65, C=128, length=64, layers=4, clip=1.0):
    net = GPT(options.path, vocabulary, C, 4, length, layers)
    tokens, targets = (torch.randint(0, vocabulary, (B, length)) for _ in range(2))
    adamw = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
    return training(options, net, adamw, lambda: net(tokens, targets), clip)


def microgpt(options, C):
    return gpt(options, B=16, vocabulary=27, C=C, length=16, layers=1, clip=0)


def attention_alone(options, length, H=8, D=64, spread=1.0):
    """Forward, and backward from a given cotangent; the "loss" is the first number of the result."""
    q, k, v = (torch.normal(0.0, std, (1, H, length, D)).requires_grad_() for std in (spread, 1.0, 1.0))
    dy = torch.randn(1, H, length, D)
    forward = compiled(options, lambda: attend(options.path, q, k, v))

    def step():
        q.grad = k.grad = v.grad = None
        y = forward()
        y.backward(dy)
        return y.detach()[0, 0, 0, 0]

    return step


class Writer(nn.Module):
    """A block of a model that writes, with a cache of its own: the keys and values of the tokens before."""

    def __init__(self, C, H, length):
        super().__init__()
        self.H, self.ln1, self.ln2 = H, nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.proj = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)
        self.fc, self.out = nn.Linear(C, 4 * C, bias=False), nn.Linear(4 * C, C, bias=False)
        self.keys, self.values = (torch.zeros(1, H, length, C // H) for _ in range(2))

    def forward(self, x, past, cached):
        q, k, v = (t.unflatten(2, (self.H, -1)).transpose(1, 2) for t in self.qkv(self.ln1(x)).chunk(3, 2))
        if cached:
            self.keys[:, :, past], self.values[:, :, past] = k[:, :, 0], v[:, :, 0]
            k, v = self.keys[:, :, :past + 1], self.values[:, :, :past + 1]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=not cached)
        x = x + self.proj(y.transpose(1, 2).flatten(2))
        return x + self.out(F.gelu(self.fc(self.ln2(x))))


def write(options, cached, length=512, C=128, H=4, layers=4, vocabulary=65):
    """Writes a text of `length` tokens, each the most probable one after those before it."""
    wte, wpe, head = nn.Embedding(vocabulary, C), nn.Embedding(length, C), nn.Linear(C, vocabulary, bias=False)
    blocks, lnf = [Writer(C, H, length) for _ in range(layers)], nn.LayerNorm(C)
    tokens, places = torch.zeros(1, length, dtype=torch.int64), torch.arange(length)

    @torch.inference_mode()
    def step():
        for n in range(1, length):
            first = n - 1 if cached else 0
            x = wte(tokens[:, first:n]) + wpe(places[first:n])
            for block in blocks:
                x = block(x, first, cached)
            tokens[0, n] = head(lnf(x[:, -1])).argmax()
        return tokens[0, -1].float()

    return step


CASES = {
    "nw": nw,
    "mha_tiny": lambda o: mha(o, 2, 4, 6, 100, 5, 0.5, lambda: torch.tensor([3, 2])),
    "mha_small": lambda o: mha(o, 64, 10, 10, 100, 5, 0.1, lambda: random_lengths(64, 10)),
    "additive": additive,
    "mha_medium": lambda o: mha(o, 8, 256, 256, 512, 8, 0.0, lambda: random_lengths(8, 256)),
    "mha_large": lambda o: mha(o, 1, 2048, 2048, 768, 12, 0.0),
    "mha_large_causal": lambda o: mha(o, 1, 2048, 2048, 768, 12, 0.0, causal=True),
    "sharp": lambda o: attention_alone(o, 1024, spread=32.0),
    "gpt": gpt,
    "microgpt_16": lambda o: microgpt(o, 16),
    "microgpt_64": lambda o: microgpt(o, 64),
    "microgpt_128": lambda o: microgpt(o, 128),
    "write": lambda o: write(o, True),
    "write_whole": lambda o: write(o, False),
}


def main():
    options = common.read_options(["composed", "sdpa", "module"])
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    if options.case == "startup":
        CASES["mha_tiny"](options)()
        print(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
    elif options.case.startswith("sdpa_"):
        common.run(options, lambda: attention_alone(options, int(options.case[5:])), FOOTPRINT)
    else:
        common.run(options, lambda: CASES[options.case](options), FOOTPRINT)


if __name__ == "__main__":
    main()
