#!/usr/bin/python3
"""steps.py - the cases of steps.c, trained by PyTorch: a JSON object per line, with the same keys.

The models are written as the books write them (Dive into Deep Learning, nanoGPT): eager, composed of
ops. The path "packed" is PyTorch's own nn.MultiheadAttention, which computes q, k and v in one product.
Memory is the peak of the process less what it had after the imports.

tests/bench/compare runs this beside steps.c, in the environment that PyTorch is fastest in.
"""
import argparse
import json
import math
import resource
import time

import torch
import torch.nn.functional as F
from torch import nn


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


FOOTPRINT = peak_memory()

# ---- models ---------------------------------------------------------------------------------------


class NWKernelRegression(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(1))

    def forward(self, queries, keys, values):
        K = keys.shape[1]
        queries = queries.repeat_interleave(K).reshape(-1, K)
        self.attention_weights = F.softmax(-(((queries - keys) * self.w) ** 2) / 2, dim=1)
        return torch.bmm(self.attention_weights.unsqueeze(1), values.unsqueeze(-1)).reshape(-1)


def masked_softmax(scores, lengths):
    """scores (N, Q, K), lengths (N) or None"""
    if lengths is not None:
        rows = scores.reshape(-1, scores.shape[-1])
        places = torch.arange(rows.shape[1], dtype=torch.float32)
        rows[places[None, :] >= lengths.repeat_interleave(scores.shape[1])[:, None]] = -1e6
        scores = rows.reshape(scores.shape)
    return F.softmax(scores, dim=-1)


class MultiHeadAttention(nn.Module):
    def __init__(self, C, H, dropout, causal_length=0):
        super().__init__()
        self.H = H
        self.dropout = nn.Dropout(dropout)
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(C, C, bias=False) for _ in range(4))
        self.later = None
        if causal_length:
            self.later = torch.ones(causal_length, causal_length).triu(1).bool()

    def split(self, x):
        """(B, N, C) -> (B H, N, D)"""
        x = x.reshape(x.shape[0], x.shape[1], self.H, -1).permute(0, 2, 1, 3)
        return x.reshape(-1, x.shape[2], x.shape[3])

    def weights(self, scores, lengths):
        if self.later is not None:
            return F.softmax(scores.masked_fill(self.later, -math.inf), dim=-1)
        return masked_softmax(scores, lengths)

    def forward(self, q, k, v, lengths):
        B, Q, C = q.shape
        q, k, v = self.split(self.W_q(q)), self.split(self.W_k(k)), self.split(self.W_v(v))
        if lengths is not None:
            lengths = lengths.repeat_interleave(self.H)
        self.attention_weights = self.weights(
            torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1]), lengths)
        y = torch.bmm(self.dropout(self.attention_weights), v)
        y = y.reshape(B, self.H, Q, -1).permute(0, 2, 1, 3).reshape(B, Q, C)
        return self.W_o(y)


class AdditiveAttention(nn.Module):
    def __init__(self, query_size, key_size, C, dropout):
        super().__init__()
        self.W_q = nn.Linear(query_size, C, bias=False)
        self.W_k = nn.Linear(key_size, C, bias=False)
        self.w_v = nn.Linear(C, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, q, k, v, lengths):
        features = torch.tanh(self.W_q(q).unsqueeze(2) + self.W_k(k).unsqueeze(1))
        self.attention_weights = masked_softmax(self.w_v(features).squeeze(-1), lengths)
        return torch.bmm(self.dropout(self.attention_weights), v)


class Block(nn.Module):
    def __init__(self, C, H, length):
        super().__init__()
        self.H = H
        self.ln1, self.ln2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.proj = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)
        self.fc, self.out = nn.Linear(C, 4 * C, bias=False), nn.Linear(4 * C, C, bias=False)
        self.register_buffer("later", torch.ones(length, length).triu(1).bool())

    def attend(self, x):
        B, Q, C = x.shape
        q, k, v = (part.view(B, Q, self.H, -1).transpose(1, 2) for part in self.qkv(x).split(C, dim=2))
        scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(q.shape[-1]))
        weights = F.softmax(scores.masked_fill(self.later, -math.inf), dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(B, Q, C))

    def forward(self, x):
        x = x + self.attend(self.ln1(x))
        return x + self.out(F.gelu(self.fc(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary, C, H, length, layers):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, C), nn.Embedding(length, C)
        self.h = nn.ModuleList(Block(C, H, length) for _ in range(layers))
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


class Packed(nn.Module):
    def __init__(self, C, H, dropout):
        super().__init__()
        self.attention = nn.MultiheadAttention(C, H, dropout=dropout, bias=False, batch_first=True)

    def forward(self, q, k, v, lengths):
        ignored = None if lengths is None else torch.arange(k.shape[1])[None, :] >= lengths[:, None]
        return self.attention(q, k, v, key_padding_mask=ignored, need_weights=False)[0]


# ---- what a case trains: a function that does one step --------------------------------------------


def training(net, optimizer, loss, clip=0):
    def step():
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()

    return step


def sgd(net, lr, loss):
    return training(net, torch.optim.SGD(net.parameters(), lr=lr), loss)


def nw():
    n = 50
    x = (torch.rand(n) * 5).sort()[0]
    y = 2 * torch.sin(x) + x**0.8 + torch.normal(0.0, 0.5, (n,))
    others = ~torch.eye(n).bool()
    keys, values = (t.repeat(n, 1)[others].reshape(n, n - 1) for t in (x, y))
    net = NWKernelRegression()
    return sgd(net, 0.5, lambda: F.mse_loss(net(x, keys, values), y, reduction="none").sum())


def random_lengths(B, longest):
    return torch.randint(1, longest + 1, (B,))


def mha(B, Q, K, C, H, dropout, lengths=None, causal=False, packed=False):
    lengths = lengths and lengths()
    net = Packed(C, H, dropout) if packed else MultiHeadAttention(C, H, dropout, causal and Q)
    q = torch.randn(B, Q, C)
    k = q if K == Q else torch.randn(B, K, C)
    return sgd(net, 0.01, lambda: net(q, k, k, lengths).square().mean())


def additive():
    net = AdditiveAttention(20, 24, 64, 0.1)
    q, k, v = torch.randn(32, 16, 20), torch.randn(32, 32, 24), torch.randn(32, 32, 24)
    lengths = random_lengths(32, 32)
    return sgd(net, 0.01, lambda: net(q, k, v, lengths).square().mean())


def gpt():
    net = GPT(vocabulary=65, C=128, H=4, length=64, layers=4)
    tokens, targets = torch.randint(0, 65, (12, 64)), torch.randint(0, 65, (12, 64))
    adamw = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
    return training(net, adamw, lambda: net(tokens, targets), clip=1.0)


def sdpa(length, H=8, D=64, spread=1.0):
    q, k, v = (torch.normal(0.0, std, (H, length, D)).requires_grad_() for std in (spread, 1.0, 1.0))
    dy = torch.randn(H, length, D)

    def step():
        q.grad = k.grad = v.grad = None
        weights = F.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(D), dim=-1)
        torch.bmm(weights, v).backward(dy)

    return step


def three_and_two():
    return torch.tensor([3, 2])


MEDIUM = (8, 256, 256, 512, 8, 0.0, lambda: random_lengths(8, 256))
LARGE = (1, 2048, 2048, 768, 12, 0.0)
CASES = {
    "nw": {"composed": nw},
    "mha_tiny": {"composed": lambda: mha(2, 4, 6, 100, 5, 0.5, three_and_two)},
    "mha_small": {"composed": lambda: mha(64, 10, 10, 100, 5, 0.1, lambda: random_lengths(64, 10))},
    "additive": {"composed": additive},
    "mha_medium": {"composed": lambda: mha(*MEDIUM), "packed": lambda: mha(*MEDIUM, packed=True)},
    "mha_large": {"composed": lambda: mha(*LARGE), "packed": lambda: mha(*LARGE, packed=True)},
    "mha_large_causal": {"composed": lambda: mha(*LARGE, causal=True)},
    "sharp": {"composed": lambda: sdpa(1024, spread=32.0)},
    "gpt": {"composed": gpt},
}


# ---- time -----------------------------------------------------------------------------------------


def measure(step, seconds, clock):
    """As measure() of common.c: a sample is a group of steps that fills 100 microseconds."""
    start, n = clock(), 0
    while n == 0 or (n < 3 and clock() - start < 10) or (clock() - start < min(1, seconds) and n < 2000):
        step()
        n += 1
    group = max(1, int(100e-6 / ((clock() - start) / n)))
    samples, start = [], clock()
    while not samples or (len(samples) < 5 and clock() - start < 30) or clock() - start < seconds:
        since = clock()
        for _ in range(group):
            step()
        samples.append((clock() - since) / group * 1e6)
    samples.sort()
    n = len(samples)
    return dict(median_us=samples[n // 2], p10_us=samples[n // 10], min_us=samples[0])


def run(options, case, path, make):
    torch.manual_seed(0)
    clock = time.process_time if options.cpu_time else time.perf_counter
    timing = measure(make(), options.seconds, clock)
    timing = {key: round(value, 2) for key, value in timing.items()}
    print(json.dumps(dict(case=case, path=path, threads=options.threads, **timing,
                          memory_mb=round(peak_memory() - FOOTPRINT, 1))), flush=True)


def first_step():
    CASES["mha_tiny"]["composed"]()()
    print(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--path", default="composed")
    parser.add_argument("case", help="nw, mha_tiny, ..., sdpa_2048 (any length); startup: one step, and when")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.case == "startup":
        first_step()
    elif options.case.startswith("sdpa_"):
        run(options, options.case, "composed", lambda: sdpa(int(options.case[5:])))
    else:
        run(options, options.case, options.path, CASES[options.case][options.path])


if __name__ == "__main__":
    main()
