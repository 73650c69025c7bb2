#!/usr/bin/env python3
"""Writes training.txt for tests/suites/library/test_training.c: parameters after each step of training in PyTorch.

Run this with PyTorch 2.15 (reference.py says how to install PyTorch, and how its bits are kept equal on all
machines). The files are written beside this one, with the same bytes every time.

A line is a tensor: name, type, number of dimensions, sizes, elements. Floats are written in
hexadecimal, to the bit.
"""
import math
import pathlib
import warnings

import numpy as np
from reference import torch
from torch import nn

warnings.filterwarnings("ignore")
HERE = pathlib.Path(__file__).parent
TYPES = {torch.float32: "float32", torch.float64: "float64"}
lines = []


def record(name, x):
    elements = [float.hex(e) for e in x.detach().reshape(-1).tolist()]
    lines.append(" ".join([name, TYPES[x.dtype], str(x.dim()), *map(str, x.shape), *elements]))


# ---- initial values -------------------------------------------------------------------------------

# The names are the names of functions below; test_training.c makes the same tensors.
TENSORS = {
    "small": lambda: torch.empty(2, 3),
    "large": lambda: torch.empty(5, 7),
    "kernel": lambda: torch.empty(3, 2, 2, 3),
    "transposed": lambda: torch.empty(6, 4).t(),
    "permuted": lambda: torch.empty(3, 4, 5).permute(2, 0, 1),
    "sliced": lambda: torch.empty(6, 8)[:, 1:5],
    "nothing": lambda: torch.empty(0, 3),
}
INITS = {
    "uniform": lambda w: nn.init.uniform_(w, -1.5, 0.25),
    "normal": lambda w: nn.init.normal_(w, 1, 0.1),
    "xavier_uniform": lambda w: nn.init.xavier_uniform_(w, 2),
    "xavier_normal": lambda w: nn.init.xavier_normal_(w),
    "kaiming_uniform": lambda w: nn.init.kaiming_uniform_(w, 5**0.5),
    "kaiming_normal": lambda w: nn.init.kaiming_normal_(w),
}


def initial_values():
    """The elements of each tensor, row-major, and the next normal number of the generator."""
    for dtype in TYPES:
        torch.set_default_dtype(dtype)
        for kind, make in TENSORS.items():
            for name, init in INITS.items():
                torch.manual_seed(5)
                w = init(make())
                record(f"{TYPES[dtype]}_{name}_{kind}", torch.cat([w.reshape(-1), torch.randn(1)]))


# ---- optimizers ----------------------------------------------------------------------------------

STEPS = 8
HAS_A = [1, 1, 0, 0, 1, 1, 1, 1]  # at which steps a and b have a gradient
HAS_B = [0, 1, 1, 0, 1, 1, 0, 1]

SGD, ADAMW = torch.optim.SGD, torch.optim.AdamW
RUNS = {
    "sgd": (SGD, dict(lr=0.1)),
    "sgd_momentum": (SGD, dict(lr=0.1, momentum=0.9)),
    "sgd_dampening": (SGD, dict(lr=0.1, momentum=0.9, dampening=0.5)),
    "sgd_nesterov": (SGD, dict(lr=0.1, momentum=0.9, nesterov=True)),
    "sgd_decay": (SGD, dict(lr=0.1, weight_decay=0.01)),
    "sgd_all": (SGD, dict(lr=0.2, momentum=0.5, dampening=0.25, weight_decay=0.1)),
    "sgd_nesterov_decay": (SGD, dict(lr=0.1, momentum=0.5, nesterov=True, weight_decay=0.1)),
    "adamw": (ADAMW, dict(lr=0.1, weight_decay=0.01)),
    "adam": (torch.optim.Adam, dict(lr=0.1)),
    "adamw_betas": (ADAMW, dict(lr=0.02, betas=(0.5, 0.75), eps=0.125, weight_decay=0.5)),
}


def path(optimizer, a, b, gradients, schedule=None):
    """A row for each step: the elements of a and b after the step."""
    rows = []
    for step in range(STEPS):
        a.grad = gradients[step, :3].clone() if HAS_A[step] else None
        b.grad = gradients[step, 3:].reshape(2, 2).clone() if HAS_B[step] else None
        optimizer.step()
        if schedule:
            schedule.step()
        rows.append(torch.cat([a.detach(), b.detach().reshape(-1)]))
    return torch.stack(rows)


def optimizers():
    for dtype in TYPES:
        torch.manual_seed(1)
        start = torch.randn(7, dtype=dtype)
        gradients = torch.randn(STEPS, 7, dtype=dtype)
        record(f"{TYPES[dtype]}_start", start)
        record(f"{TYPES[dtype]}_gradients", gradients)
        for name, (kind, options) in RUNS.items():
            a, b = nn.Parameter(start[:3].clone()), nn.Parameter(start[3:].reshape(2, 2).clone())
            record(f"{TYPES[dtype]}_{name}", path(kind([a, b], **options), a, b, gradients))


class RoundedSqrt:
    """Makes Tensor.sqrt round once while AdamW runs. PyTorch calls MKL's square root, which is the next float
    in a fifth of all cases."""

    def __enter__(self):
        self.sqrt = torch.Tensor.sqrt
        torch.Tensor.sqrt = lambda x: torch.from_numpy(np.sqrt(x.detach().numpy()))

    def __exit__(self, *_):
        torch.Tensor.sqrt = self.sqrt


def fifty_steps():
    """A row for steps 1, 10 and 50: the elements of theta after the step. The library must give the same bits."""
    for dtype in TYPES:
        torch.manual_seed(50)
        start = torch.empty(37, dtype=dtype).uniform_(-1, 1)
        gradients = torch.empty(50, 37, dtype=dtype).uniform_(-1, 1)
        for name, (kind, options) in RUNS.items():
            theta, rows = nn.Parameter(start.clone()), {}
            optimizer = kind([theta], **options)
            for step in range(50):
                theta.grad = gradients[step].clone()
                with RoundedSqrt():
                    optimizer.step()
                rows[step + 1] = theta.detach().clone()
            record(f"{TYPES[dtype]}_fifty_{name}", torch.stack([rows[1], rows[10], rows[50]]))


def groups():
    """b has its own learning rate and weight decay; from step 4 on all learning rates are halved."""
    for dtype in TYPES:
        torch.manual_seed(1)
        start = torch.randn(7, dtype=dtype)
        gradients = torch.randn(STEPS, 7, dtype=dtype)
        for name, kind, options in ("sgd", SGD, dict(momentum=0.5)), ("adamw", ADAMW, {}):
            a, b = nn.Parameter(start[:3].clone()), nn.Parameter(start[3:].reshape(2, 2).clone())
            own = dict(params=[b], lr=0.25, weight_decay=0.5)
            optimizer = kind([dict(params=[a]), own], lr=0.1, weight_decay=0.01, **options)
            halved = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 1 if t < 4 else 0.5)
            record(f"{TYPES[dtype]}_{name}_groups", path(optimizer, a, b, gradients, halved))


def clipping():
    """For each bound: the norm, and the gradients of a and b after clipping."""
    for dtype in TYPES:
        torch.manual_seed(2)
        gradients = torch.randn(7, dtype=dtype)
        record(f"{TYPES[dtype]}_clip_gradients", gradients)
        rows = []
        for bound in 0.5, 1, 100, 0, float("inf"):
            a, b = (nn.Parameter(torch.zeros(shape, dtype=dtype)) for shape in ((3,), (2, 2)))
            a.grad, b.grad = gradients[:3].clone(), gradients[3:].reshape(2, 2).clone()
            norm = nn.utils.clip_grad_norm_([a, b], bound)
            rows.append(torch.cat([norm.reshape(1), a.grad, b.grad.reshape(-1)]))
        record(f"{TYPES[dtype]}_clip", torch.stack(rows))


def schedules():
    """The learning rates of 100 steps; the first learning rate is 1."""
    from torch.optim import lr_scheduler

    torch.set_default_dtype(torch.float64)
    kinds = {
        "step_30": lambda o: lr_scheduler.StepLR(o, 30, gamma=0.1),
        "step_7": lambda o: lr_scheduler.StepLR(o, 7, gamma=0.9),
        "cosine_100": lambda o: lr_scheduler.CosineAnnealingLR(o, 100),
        "cosine_40": lambda o: lr_scheduler.CosineAnnealingLR(o, 40, eta_min=0.1),
        "warmup_12": lambda o: lr_scheduler.LambdaLR(o, lambda step: min(1, (step + 1) / 12)),
    }
    for name, make in kinds.items():
        optimizer = SGD([nn.Parameter(torch.zeros(1))], lr=1)
        schedule, rates = make(optimizer), []
        for _ in range(100):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        record(f"schedule_{name}", torch.tensor(rates))


# ---- a training program ---------------------------------------------------------------------------


class MultiHeadAttention(nn.Module):
    def __init__(self, size, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name in "W_q", "W_k", "W_v", "W_o":
            setattr(self, name, nn.Linear(size, size))

    def forward(self, x, lens=None, bias=None):
        B, N, size = x.shape
        split = lambda y: y.reshape(B, N, self.num_heads, -1).transpose(1, 2)
        q, k, v = split(self.W_q(x)), split(self.W_k(x)), split(self.W_v(x))
        if bias is None:
            scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
            ignored = torch.arange(N) >= lens.reshape(B, 1, 1, 1)
            y = torch.softmax(scores.masked_fill(ignored, -math.inf), -1) @ v
        else:
            y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.W_o(y.transpose(1, 2).reshape(B, N, size))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = MultiHeadAttention(8, 2)
        self.hidden = nn.Linear(8, 16)
        self.output = nn.Linear(16, 1)

    def forward(self, x, lens):
        return self.output(torch.tanh(self.hidden(x + self.attention(x, lens))))


def training_program():
    """AdamW with weight decay of the weights only, warm-up times cosine, clipping, and an attention that is
    frozen from step 6 to 9. A row for each step: the loss, the norm of the gradients."""
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(8)
    model = Model()
    x, target, lens = torch.randn(4, 5, 8), torch.randn(4, 5, 1), torch.tensor([5, 3, 1, 4])
    named = list(model.named_parameters())
    decay = [p for name, p in named if name.endswith("weight")]
    others = [p for name, p in named if name.endswith("bias")]
    optimizer = ADAMW([dict(params=decay, weight_decay=0.1), dict(params=others, weight_decay=0)], lr=0.05)
    factor = lambda step: min(1, (step + 1) / 5) * (1 + math.cos(math.pi * step / 20)) / 2
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    rows = []
    for step in range(20):
        for parameter in model.attention.parameters():
            parameter.requires_grad_(not 6 <= step < 10)
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(x, lens), target)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        schedule.step()
        rows.append(torch.stack([loss.detach(), norm]))
    record("training_program", torch.stack(rows))


# ---- a bias of the scores -----------------------------------------------------------------------

HEADS, LENGTH, BUCKETS = 2, 8, 8


def t5_bucket(distance):
    """Raffel et al. 2020: half of the buckets for keys behind the query, half for keys before it; far distances
    share buckets, up to a distance of 16."""
    half = BUCKETS // 2
    exact, far = half // 2, abs(distance)
    if far >= exact:
        far = min(half - 1, exact + int(math.log(far / exact) / math.log(16 / exact) * (half - exact)))
    return far + (half if distance > 0 else 0)


class Biased(nn.Module):
    """Three self-attentions, and what each adds to its scores: ALiBi (a constant), T5's table of buckets, and a
    learned matrix for each head."""

    def __init__(self):
        super().__init__()
        self.attentions = nn.ModuleList(MultiHeadAttention(8, HEADS) for _ in range(3))
        self.table = nn.Parameter(torch.randn(BUCKETS, HEADS))
        self.learned = nn.Parameter(torch.randn(HEADS, LENGTH, LENGTH))

    def forward(self, x):
        distance = [[j - i for j in range(LENGTH)] for i in range(LENGTH)]
        slope = torch.tensor([2.0 ** (-8 * (h + 1) / HEADS) for h in range(HEADS)])[:, None, None]
        alibi = slope * torch.tensor(distance)
        alibi = alibi.masked_fill(torch.tensor(distance) > 0, -math.inf)
        t5 = self.table[torch.tensor([[t5_bucket(d) for d in row] for row in distance])].permute(2, 0, 1)
        return sum(a(x, bias=bias) for a, bias in zip(self.attentions, (alibi, t5, self.learned)))


def biases():
    """Five steps of SGD: the gradients of the table, the learned matrices and the first W_q."""
    for dtype in TYPES:
        torch.set_default_dtype(dtype)
        torch.manual_seed(3)
        model = Biased()
        x, target = torch.randn(2, LENGTH, 8), torch.randn(2, LENGTH, 8)
        sgd = torch.optim.SGD(model.parameters(), lr=0.5)
        for step in range(5):
            sgd.zero_grad()
            nn.functional.mse_loss(model(x), target).backward()
            grads = {"table": model.table, "learned": model.learned, "W_q": model.attentions[0].W_q.weight}
            for name, parameter in grads.items():
                record(f"{TYPES[dtype]}_bias_{name}_{step}", parameter.grad)
            sgd.step()


initial_values()
optimizers()
fifty_steps()
groups()
clipping()
schedules()
training_program()
biases()
(HERE / "training.txt").write_text("\n".join(lines) + "\n")
