#!/usr/bin/python3
"""Writes ops.txt: what PyTorch computes for every op, value and gradient, in float64.

Run it as `/usr/bin/python3 tests/golden/generate_ops.py` with Debian's python3-torch (1.13); it
writes next to itself, and the same bytes every time.

A case is a few lines:

    op NAME TOLERANCE NUMBERS...       the attributes, as call_op in ../common.c takes them
    in TYPE GRAD NDIM SIZES... VALUES  TYPE f, i or b; GRAD 1 if it requires a gradient
    out TYPE NDIM SIZES... VALUES
    grad_fn NAME                       of the result, if it has one
    grad INPUT VALUES...               for each input that requires one
    end

The gradient is that of sum(c out) with c[i] = (7 i mod 11 - 5) / 4, counted row-major. TOLERANCE
is relative to 1 + |value|; 0 asks for the very number. The seed is 0 before each case.
"""
import math
import os
import pathlib

os.environ["ATEN_CPU_CAPABILITY"] = "default"
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
lines = []
NAN, INF = math.nan, math.inf
R = lambda *sizes: ("draw", sizes)  # drawn from the op's range
C = lambda *sizes: ("constant", sizes)  # the same, and no gradient is asked for


def shape(a):
    return [int(d) for d in a[1 : 1 + int(a[0])]]


def masked_softmax(x, lens=None):
    """Rows of softmax over the first lens keys, zeros behind: a row of length 0 is zeros."""
    if lens is None:
        return torch.softmax(x, -1)
    n, q, k = x.shape
    lens = lens if lens.dim() == 2 else lens[:, None].expand(n, q)
    rows = []
    for i in range(n):
        for j in range(q):
            v = min(int(lens[i, j]), k)
            rows.append(torch.cat([torch.softmax(x[i, j, :v], -1), torch.zeros(k - v)]))
    return torch.stack(rows).reshape(n, q, k)


def attention_weights(x, *rest):
    """softmax(scale x + window) without what the mask ignores; a row of nothing else is zeros.

    The numbers: scale, causal, heads, and which parts of the mask follow (1 valid_lens, 2 keep,
    4 window)."""
    *rest, (scale, causal, heads, parts) = rest
    lens, keep, window = (rest.pop(0) if int(parts) & bit else None for bit in (1, 2, 4))
    s = scale * (x if x.dim() == 4 else x.reshape(-1, int(heads), *x.shape[1:]))
    ignored = torch.zeros(s.shape, dtype=torch.bool)
    if window is not None:
        split = (-1, len(window), *s.shape[1:])
        s = (s.reshape(split) + window[:, None]).reshape(s.shape)
        ignored = ignored | (torch.zeros(s.shape).reshape(split) + window[:, None] == -INF).reshape(s.shape)
    if lens is not None:
        ignored = ignored | (torch.arange(s.shape[-1]) >= lens.reshape(len(s), 1, -1, 1))
    if keep is not None:
        ignored = ignored | ~keep
    if causal:
        ignored = ignored | torch.ones(s.shape, dtype=torch.bool).triu(1)
    y = torch.softmax(s.masked_fill(ignored, -INF), -1)
    return y.masked_fill(ignored, 0).reshape(x.shape)


def attention(q, k, v, *rest):
    """The numbers: dropout, causal, and which parts of the mask follow, as above."""
    *rest, (dropout, causal, parts) = rest
    four = q.dim() == 4
    q, k, v = (x if x.dim() == 4 else x[:, None] for x in (q, k, v))
    weights = attention_weights(q @ k.mT, *rest, [q.shape[-1] ** -0.5, causal, 1, parts])
    y = F.dropout(weights, dropout) @ v
    return y if four else y[:, 0]


REDUCTION = ["none", "sum", "mean"]
OPS = {
    "masked_fill": lambda x, m, a: x.masked_fill(m, a[0] if x.is_floating_point() else int(a[0])),
    "where": lambda c, x, y, a: torch.where(c, x, y),
    "detach": lambda x, a: x.detach(),
    "reshape": lambda x, a: x.reshape(shape(a)),
    "view": lambda x, a: x.view(shape(a)),
    "contiguous": lambda x, a: x.transpose(0, 1).contiguous(),
    "permute": lambda x, a: x.permute(shape(a)),
    "transpose": lambda x, a: x.transpose(int(a[0]), int(a[1])),
    "unsqueeze": lambda x, a: x.unsqueeze(int(a[0])),
    "squeeze": lambda x, a: x.squeeze(int(a[0])),
    "expand": lambda x, a: x.expand(shape(a)),
    "slice": lambda x, a: x[(slice(None),) * int(a[0]) + (slice(int(a[1]), int(a[2])),)],
    "select": lambda x, a: x.select(int(a[0]), int(a[1])),
    "cat": lambda *l: torch.cat(l[:-1], int(l[-1][0])),
    "stack": lambda *l: torch.stack(l[:-1], int(l[-1][0])),
    "repeat": lambda x, a: x.repeat(shape(a)),
    "repeat_interleave": lambda x, a: x.repeat_interleave(int(a[0]), int(a[1])),
    "masked_select": lambda x, m, a: x.masked_select(m),
    "index_select": lambda x, i, a: torch.index_select(x, int(a[0]), i),
    "gather": lambda x, i, a: torch.gather(x, int(a[0]), i),
    "embedding": lambda w, i, a: F.embedding(i, w),
    "tril": lambda x, a: x.tril(int(a[0])),
    "triu": lambda x, a: x.triu(int(a[0])),
    "sum": lambda x, a: x.sum(),
    "mean": lambda x, a: x.mean(),
    "sum_dims": lambda x, a: x.sum(shape(a[1:]), keepdim=bool(a[0])),
    "mean_dims": lambda x, a: x.mean(shape(a[1:]), keepdim=bool(a[0])),
    "var_dim": lambda x, a: x.var(int(a[0]), keepdim=bool(a[1])),
    "max_dim": lambda x, a: x.max(int(a[0]), keepdim=bool(a[1]))[0],
    "logsumexp": lambda x, a: x.logsumexp(int(a[0])),
    "argmax": lambda x, a: x.argmax(int(a[0])),
    "matmul": lambda x, y, a: torch.matmul(x, y),
    "bmm": lambda x, y, a: torch.bmm(x, y),
    "linear": lambda *l: F.linear(*l[:-1]),
    "softmax": lambda x, a: torch.softmax(x, int(a[0])),
    "log_softmax": lambda x, a: torch.log_softmax(x, int(a[0])),
    "masked_softmax": lambda *l: masked_softmax(*l[:-1]),
    "attention_weights": attention_weights,
    "attention": attention,
    "dropout": lambda x, a: F.dropout(x, a[0], True),
    "mse_loss": lambda x, y, a: F.mse_loss(x, y, reduction=REDUCTION[int(a[0])]),
    "layer_norm": lambda x, w, *r: F.layer_norm(x, w.shape, w, r[0] if r[:-1] else None, r[-1][0]),
    "cross_entropy": lambda x, t, a: F.cross_entropy(x, t, ignore_index=a[0], reduction=REDUCTION[a[1]]),
    "scale": lambda x, a: x * a[0],
    "add_scalar": lambda x, a: x + a[0],
    "pow_scalar": lambda x, a: x.pow(a[0]),
    "gelu": lambda x, a: F.gelu(x),
    "silu": lambda x, a: F.silu(x),
    "relu": lambda x, a: torch.relu(x),
}
POSITIVE = {op: (0.5, 2) for op in ["pow", "sqrt", "log", "pow_scalar"]} | {"div": (1, 3)}
EXACT = 0
GRAD_FN = {op: "SoftmaxBackward0" for op in ("masked_softmax", "attention_weights")}  # their last step
GRAD_FN["attention"] = "ScaledDotProductAttentionBackward0"


def call(op, inputs, a):
    if op in OPS:
        return OPS[op](*inputs, a)
    return getattr(torch, op)(*inputs)


def tensor(op, spec):
    if isinstance(spec, tuple):
        low, high = POSITIVE.get(op, (-2, 2))
        x = low + (high - low) * torch.rand(spec[1])
        return (x * 100).round() / 100
    if isinstance(spec, torch.Tensor):
        return spec
    return torch.tensor(spec)


def number(v):
    v = float(v)
    whole = math.isfinite(v) and v == int(v) and abs(v) < 1e15 and (v or math.copysign(1, v) > 0)
    return str(int(v)) if whole else repr(v)


def values(x):
    return " ".join(number(v) for v in x.detach().flatten().tolist())


def head(x):
    kind = "b" if x.dtype == torch.bool else "f" if x.is_floating_point() else "i"
    return kind, " ".join(str(n) for n in (x.dim(), *x.shape))


def line(*words):
    lines.append(" ".join(str(w) for w in words if w != ""))


def case(op, numbers, *specs, tolerance=1e-12):
    torch.manual_seed(len(op) + len(specs) + len(str(numbers)))
    inputs = [tensor(op, s) for s in specs]
    constant = [isinstance(spec, tuple) and spec[0] == "constant" for spec in specs]
    inputs = [x.requires_grad_(x.is_floating_point() and not c) for x, c in zip(inputs, constant)]
    torch.manual_seed(0)
    y = call(op, inputs, numbers)
    line("op", op, tolerance, *[number(n) for n in numbers])
    for x in inputs:
        kind, sizes = head(x)
        line("in", kind, int(x.requires_grad), sizes, values(x))
    kind, sizes = head(y)
    line("out", kind, sizes, values(y))
    if y.requires_grad:
        line("grad_fn", GRAD_FN.get(op, type(y.grad_fn).__name__))
        c = (torch.arange(y.numel()) * 7 % 11 - 5).to(y.dtype) / 4
        wanted = [i for i, x in enumerate(inputs) if x.requires_grad]
        grads = torch.autograd.grad((y * c.reshape(y.shape)).sum(), [inputs[i] for i in wanted])
        for i, g in zip(wanted, grads):
            line("grad", i, values(g))
    line("end")


# Every op, an ordinary case.
for op in "add sub mul div pow maximum minimum".split():
    case(op, [], R(2, 3), R(3))
    case(op, [], R(2, 1), R(1, 4))
for op in "neg abs square sqrt exp log sin cos tanh sigmoid relu gelu silu".split():
    case(op, [], R(2, 4))
case("scale", [-1.75], R(2, 3))
case("add_scalar", [0.25], R(2, 3))
case("pow_scalar", [2.5], R(2, 3))
case("pow_scalar", [-1], R(2, 3))
for op in "eq ne lt le gt ge".split():
    case(op, [], [[1.0, 2, 3], [4, NAN, -0.0]], [[1.0, 3, 2], [4, NAN, 0]])
    case(op, [], [[NAN], [INF]], [1.0, NAN, INF, -INF])
    case(op, [], [[1, 2, 3], [-4, 2**53, 6]], [1, 2, 6])
    case(op, [], [True, False, True, False], [True, True, False, False])
for op in "logical_and logical_or".split():
    case(op, [], [[True], [False]], [True, False])
case("logical_not", [], [[True, False], [False, True]])
case("where", [], [[True, False, True]], R(2, 3), R(2, 1))
case("where", [], [True, False], [NAN, 1], [2, INF], tolerance=EXACT)
case("where", [], [True, False], [5, 6], [7, 8])
case("where", [], [True, False], [True, False], [False, True])
case("masked_fill", [-1e6], R(2, 3), [True, False, True])
case("masked_fill", [3], [NAN, 2, INF], [True, False, True], tolerance=EXACT)
case("masked_fill", [3], [[1, 2, 3]], [[True], [False]])
case("detach", [], R(2, 3))
case("reshape", [2, 3, -1], R(2, 6))
case("reshape", [0], [7])
case("view", [3, 2, 1, 6], R(3, 4))
case("contiguous", [], R(2, 3))
case("permute", [3, 2, 0, 1], R(2, 3, 4))
case("permute", [3, -1, 0, -2], R(2, 1, 3))
case("transpose", [1, -1], R(2, 3, 2))
case("unsqueeze", [-2], R(2, 3))
case("squeeze", [1], R(2, 1, 3))
case("squeeze", [0], R(2, 3))
case("expand", [3, 2, -1, 3], R(2, 1))
case("expand", [2, 0, 3], R(1, 3))
case("slice", [1, 1, 3], R(2, 4))
case("slice", [0, -2, 100], R(3, 2))
case("slice", [0, -100, -1], R(3, 2))
case("slice", [0, 2, 1], R(3, 2))
case("slice", [0, 5, 9], R(3, 2))
case("select", [1, -1], R(2, 3))
case("select", [0, 1], R(2, 3))
case("cat", [0], R(2, 2), R(1, 2), R(3, 2))
case("cat", [-1], R(2, 2), R(2, 0), R(2, 1), R(2, 3))
case("cat", [0], [1, 2], [3])
case("cat", [1], torch.zeros(0), R(2, 1), torch.zeros(0), R(2, 2))
case("cat", [0], torch.zeros(0), torch.zeros(0))
case("stack", [1], R(2, 2), R(2, 2), R(2, 2))
case("stack", [-1], R(3), R(3))
case("repeat", [2, 2, 3], R(2, 2))
case("repeat", [3, 2, 1, 2], R(2))
case("repeat_interleave", [2, 1], R(2, 3))
case("repeat_interleave", [5, 0], [3, 2])
case("masked_select", [], R(2, 3), [[True, False, True], [False, True, True]])
case("masked_select", [], R(2, 1), [True, False, True])
case("masked_select", [], [NAN, 2, 3], [False, True, False], tolerance=EXACT)
case("index_select", [0], R(3, 2), [2, 0, 2, 2])
case("index_select", [-1], R(2, 2, 3), [1, 0])
case("index_select", [1], R(2, 3), 2)
case("index_select", [0], 3.0, [0])
case("index_select", [-1], 3.0, 0)
case("index_select", [1], R(2, 3), torch.zeros(0, dtype=torch.int64))
case("index_select", [0], [[5, 2**53], [7, 8]], [1, 1, 0])
case("index_select", [0], [True, False], [1, 0, 1])
case("index_select", [0], [NAN, 1, INF], [2, 2, 0], tolerance=EXACT)
case("gather", [0], R(3, 2), [[2, 0], [2, 1], [0, 0], [2, 1]])
case("gather", [1], R(3, 3), [[0, 0, 2, 2], [1, 1, 1, 1]])
case("gather", [-2], R(2, 3, 2), [[[0, 2], [1, 1], [0, 0], [2, 2]]])
case("gather", [0], 3.0, [0, 0])
case("gather", [0], 3.0, 0)
case("gather", [-1], R(3), 1)
case("gather", [0], R(2, 3), torch.zeros(4, 0, dtype=torch.int64))
case("gather", [1], [[5, 6], [7, 8]], [[1], [0]])
case("embedding", [], R(4, 2), [3, 0, 3])
case("embedding", [], R(3, 2), [[0, 1, 2], [2, 2, 0]])
case("embedding", [], R(3, 2), 1)
case("embedding", [], R(3, 2), torch.zeros(2, 0, dtype=torch.int64))
case("tril", [0], R(3, 4))
case("tril", [-1], R(2, 3, 2))
case("tril", [1], [[NAN, NAN, NAN], [1.0, 2, NAN]], tolerance=EXACT)
case("tril", [-9], R(2, 2), tolerance=EXACT)
case("triu", [0], R(4, 3))
case("triu", [-1], R(2, 2, 3))
case("triu", [9], R(2, 2), tolerance=EXACT)
case("triu", [1], [[1, 2], [3, 4]])
# Integers and bools.
I, J = [[3, -1, 2], [0, 5, -7]], [1, -2, 3]
B, B_ROW = [[True, False, True], [False, False, True]], [True, False, False]
for op in "add sub mul maximum minimum".split():
    case(op, [], I, J, tolerance=EXACT)
    case(op, [], I, 2, tolerance=EXACT)
    case(op, [], torch.zeros(0, 3, dtype=torch.int64), J)
for op in "add mul maximum minimum".split():
    case(op, [], B, B_ROW)
for op in "neg abs square relu".split():
    case(op, [], I, tolerance=EXACT)
case("scale", [-3], I, tolerance=EXACT)
case("add_scalar", [4], I, tolerance=EXACT)
for x in [I, B, torch.zeros(0, 3, dtype=torch.int64), torch.zeros(2, 0, dtype=torch.bool)]:
    case("sum", [], x, tolerance=EXACT)
    case("sum_dims", [0, 1, 0], x, tolerance=EXACT)
    case("sum_dims", [1, 1, -1], x, tolerance=EXACT)
case("sum", [], 7)
case("sum_dims", [0, 0], True)
for x in [I, B, [[2, 5, 5], [3, 3, 1]]]:
    case("max_dim", [0, 1], x, tolerance=EXACT)
    case("max_dim", [1, 0], x, tolerance=EXACT)
case("argmax", [1], [[2, 5, 5], [-3, -3, -4]], tolerance=EXACT)
case("argmax", [0], 3)
for x, y in [(J, J), (I, J), ([[2, -1]], I), (J, [[[1], [2], [3]]]), ([[I]], [[[4], [5], [-6]]])]:
    case("matmul", [], x, y, tolerance=EXACT)
case("matmul", [], torch.zeros(2, 0, dtype=torch.int64), torch.zeros(0, 2, dtype=torch.int64))
case("bmm", [], [I, I], [[[1, 2], [3, 4], [5, 6]], [[-1, 0], [0, 1], [1, 1]]], tolerance=EXACT)
case("linear", [], I, [[1, 0, 2], [0, -3, 1]], [10, 20], tolerance=EXACT)
case("linear", [], I, I, tolerance=EXACT)
case("masked_select", [], I, B, tolerance=EXACT)
case("masked_select", [], B, B_ROW)
for op in "tril triu".split():
    case(op, [0], I, tolerance=EXACT)
    case(op, [-1], B)
for x in [I, B]:
    case("cat", [1], x, x, tolerance=EXACT)
    case("repeat", [2, 2, 1], x, tolerance=EXACT)
    case("repeat_interleave", [2, 1], x, tolerance=EXACT)
    case("slice", [1, 1, 3], x, tolerance=EXACT)
    case("permute", [2, 1, 0], x, tolerance=EXACT)
case("sum", [], R(2, 3))
case("mean", [], R(2, 3))
case("sum_dims", [0, 2, 0, 2], R(2, 3, 2))
case("sum_dims", [1, 1, -1], R(2, 3))
case("mean_dims", [0, 2, 0, -1], R(2, 3, 2))
case("mean_dims", [1, 1, 0], R(2, 3))
case("var_dim", [1, 0], R(2, 4))
case("var_dim", [0, 1], R(3, 2))
case("max_dim", [1, 0], R(2, 4))
case("max_dim", [0, 1], R(3, 2))
case("logsumexp", [1], R(2, 4))
case("logsumexp", [0], R(3, 2))
case("argmax", [1], R(2, 4))
case("argmax", [0], R(3, 2))
case("matmul", [], R(2, 3), R(3, 4))
case("matmul", [], R(3), R(3))
case("matmul", [], R(2, 3), R(3))
case("matmul", [], R(3), R(3, 2))
case("matmul", [], R(3), R(2, 3, 2))
case("matmul", [], R(2, 2, 3), R(3))
case("matmul", [], R(2, 2, 3), R(3, 2))
case("matmul", [], R(2, 1, 2, 3), R(2, 3, 1))
case("bmm", [], R(2, 2, 3), R(2, 3, 2))
case("linear", [], R(2, 3), R(2, 3), R(2))
case("linear", [], R(2, 2, 3), R(1, 3), R(1))
case("linear", [], R(3), R(2, 3))
case("linear", [], R(3), R(2, 3), R(2))
case("linear", [], R(2, 2, 3), R(2, 3))
case("softmax", [-1], R(2, 4))
case("softmax", [0], R(3, 2))
case("log_softmax", [-1], R(2, 4))
case("log_softmax", [1], R(2, 3, 2))
case("masked_softmax", [], R(2, 2, 4), [2, 3])
case("masked_softmax", [], R(2, 2, 4), [[1, 3], [2, 4]])
case("masked_softmax", [], R(2, 2, 3))
case("dropout", [0.5], R(4, 5))
case("dropout", [0.1], R(30))
for reduction in range(3):
    case("mse_loss", [reduction], R(2, 3), R(2, 3))
    case("mse_loss", [reduction], 1.5, 2.0)
    case("mse_loss", [reduction], torch.zeros(0, 2), torch.zeros(0, 2))
    case("mse_loss", [reduction], [NAN, INF, 1], [1.0, 2, -INF])
for reduction in range(3):
    case("cross_entropy", [-100, reduction], R(3, 4), [1, 3, 0])
    case("cross_entropy", [2, reduction], R(4, 3), [2, 1, 2, 0])
    case("cross_entropy", [-100, reduction], R(3), 1)
    case("cross_entropy", [-1, reduction], R(2, 3, 2), [[0, -1], [2, 1]])
    case("cross_entropy", [0, reduction], R(2, 3, 2, 2), [[[0, 1], [2, 2]], [[1, 0], [0, 1]]])
    case("cross_entropy", [0, reduction], R(1, 2, 2, 1, 2), [[[[0, 1]], [[1, 1]]]])
    case("cross_entropy", [5, reduction], R(2, 3), [5, 5])
    case("cross_entropy", [5, reduction], torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64))
    case("cross_entropy", [5, reduction], torch.zeros(2, 0), [5, 5])
case("layer_norm", [1e-5], R(3, 4), R(4), R(4))
case("layer_norm", [0.5], R(2, 2, 3), R(2, 3), R(2, 3))
case("layer_norm", [1e-5], R(2, 3, 2), R(2))
case("layer_norm", [1e-5], R(4), R(4), R(4))
case("layer_norm", [1e-5], R(3, 1), R(1), R(1))

# Corners of the elementwise ops.
NUMBERS = [0.0, -0.0, 1, -1, INF, -INF, NAN, 1e-310]
for op in "abs relu square neg sqrt exp log tanh sigmoid gelu silu sin cos".split():
    case(op, [], NUMBERS)
for op in "exp tanh sigmoid silu gelu".split():
    case(op, [], [709.0, 710, -745, -746, 40, -40, 1e300, -1e300])
for op in "maximum minimum".split():
    case(op, [], [1.0, 2, 3, -2], [1.0, 3, 2, -2], tolerance=EXACT)
    ends = [INF, -INF, 0, 0, INF, -INF, 1, -1], [0, 0, INF, -INF, INF, -INF, INF, -INF]
    case(op, [], *ends, tolerance=EXACT)
    case(op, [], [NAN, 1, NAN, INF], [1, NAN, NAN, NAN], tolerance=EXACT)
case("pow", [], [0.0, 0, 0, 2, -2, -2, 0, NAN, 1], [0.0, 2, 1, 0, 3, 0.5, -1, 0, NAN])
case("pow_scalar", [0], [0.0, 2, -3, NAN, INF])
case("pow_scalar", [2], [0.0, 2, -3, NAN, INF])
case("pow_scalar", [0.5], [0.0, 2, -3, INF])
case("pow_scalar", [3], [0.0, -2, -INF])
case("div", [], [1.0, 0, -1, INF, 3], [0.0, 0, 0, INF, NAN])
case("mul", [], [0.0, INF, NAN], [INF, 0, 0])
case("scale", [0], [1.0, INF, NAN])

# Corners of rows.
ROWS = [
    [[NAN, 1, 2], [1, 2, NAN]],
    [[-INF, 1, 2], [0, -INF, -INF]],
    [[INF, 1, 2], [INF, -INF, INF]],
    [[-INF, -INF, -INF], [1000.0, 1001, 1002]],
    [[-1000.0, 0, 1000], [1e308, -1e308, 0]],
]
for rows in ROWS:
    for op in ["softmax", "log_softmax", "logsumexp"]:
        case(op, [1], rows)
    case("argmax", [1], rows)
    case("max_dim", [1, 0], rows, tolerance=EXACT)
    case("masked_softmax", [], [rows], [3])
for rows in ROWS:
    case("cross_entropy", [-100, 0], rows, [1, 0])
    case("cross_entropy", [-100, 2], rows, [2, 2])
for rows in ROWS[:-1]:  # PyTorch's variance of the last ones overflows to NaN, ours to infinity
    case("layer_norm", [1e-5], rows, [1.0, -2, 3], [0.0, 1, -1])
case("layer_norm", [0], [[3.0, 3, 3], [1, 2, 3]], R(3))
case("layer_norm", [-1], [[3.0, 3, 3]], R(3))
case("layer_norm", [1e-5], torch.zeros(0, 3), R(3), R(3))
case("layer_norm", [1e-5], torch.zeros(2, 0), torch.zeros(0), torch.zeros(0))
case("softmax", [0], 3.0)
case("log_softmax", [-1], 3.0)
case("logsumexp", [0], 3.0)
case("argmax", [0], 3.0)
case("max_dim", [0, 0], 3.0)
for op in ["softmax", "log_softmax"]:
    case(op, [1], torch.zeros(2, 0))
case("logsumexp", [1], torch.zeros(2, 0))
case("max_dim", [1, 0], [[2.0, 5, 5, 5], [3, 3, 1, 3]], tolerance=EXACT)
case("max_dim", [0, 1], [[2.0, NAN], [2, NAN], [1, 5]], tolerance=EXACT)
case("max_dim", [1, 0], torch.zeros(0, 3))
case("argmax", [0], [[1.0, NAN, -INF], [1, NAN, -INF], [0, 5, -INF]])
case("var_dim", [0, 0], [[1.0, 2], [1, INF]])
case("var_dim", [0, 0], [[5.0, -5]])
case("var_dim", [1, 0], torch.zeros(2, 0))
case("mean", [], torch.zeros(0))
case("mean", [], torch.zeros(2, 0))
case("mean_dims", [0, 1, 1], torch.zeros(2, 0))
case("sum", [], torch.zeros(0))
case("sum_dims", [1, 1, 0], torch.zeros(0, 2))

# Masked scores: NaN and infinity behind the mask, lengths of 0 and beyond the keys.
case("masked_softmax", [], [[[1.0, 2, NAN, INF]], [[1, 2, 3, NAN]]], [2, 3])
case("masked_softmax", [], R(2, 2, 3), [0, 7])
case("masked_softmax", [], R(2, 2, 3), [[0, 3], [1, 2**62]])
case("masked_softmax", [], [[[NAN, NAN]]], [0], tolerance=EXACT)
case("masked_softmax", [], [[[NAN, 1, 2]]], [1])

# Every part of a mask, and all together: (B, H, Q, K) is (2, 2, 3, 4) but for the windows.
KEEP = [[True, False, True, True], [False, False, True, False], [False] * 4]
PER_QUERY = [[1, 2, 4], [0, 9, 3]]
case("attention_weights", [0.5, 0, 1, 0], R(2, 3, 4))
case("attention_weights", [0.5, 1, 2, 0], R(4, 3, 4))
case("attention_weights", [2, 1, 1, 0], R(2, 2, 4, 3))
case("attention_weights", [1, 0, 2, 1], R(4, 3, 4), [1, 3])
case("attention_weights", [1, 0, 2, 1], R(4, 3, 4), PER_QUERY)
case("attention_weights", [0.5, 0, 2, 2], R(4, 3, 4), KEEP)
case("attention_weights", [0.5, 0, 1, 2], R(2, 2, 3, 4), [[[KEEP[0]]], [[KEEP[2]]]])
case("attention_weights", [-1, 0, 2, 2], R(4, 3, 4), [[[True]], [[False]]])
case("attention_weights", [0.5, 0, 2, 4], R(8, 3, 4), C(2, 3, 4))
case("attention_weights", [0.5, 0, 1, 4], R(2, 2, 3, 4), C(1, 3, 4))
case("attention_weights", [0.5, 1, 2, 7], R(8, 3, 4), PER_QUERY * 2, KEEP, C(2, 3, 4))
case("attention_weights", [0.5, 1, 1, 7], R(2, 2, 3, 4), [3, 2], KEEP, C(2, 3, 4))
case("attention_weights", [1, 0, 1, 2], [[[NAN, 1, 2, INF], [INF, -INF, NAN, 3]]],
     [[False, True, True, False], [False, True, False, True]])
case("attention_weights", [1, 0, 1, 2], [[[NAN, 1, 2, INF]]], [[True, False, True, True]])
case("attention_weights", [1, 1, 1, 0], [[[1, NAN, INF], [2.0, 1, NAN], [-INF, -INF, -INF]]])
QKV = R(2, 2, 3, 2), R(2, 2, 4, 2), R(2, 2, 4, 3)
case("attention", [0, 0, 0], *QKV)
case("attention", [0, 1, 0], R(2, 4, 3), R(2, 3, 3), R(2, 3, 1))
case("attention", [0, 0, 1], *QKV, PER_QUERY)
case("attention", [0.5, 0, 2], *QKV, KEEP)
case("attention", [0, 0, 4], R(4, 3, 2), R(4, 4, 2), R(4, 4, 2), C(2, 3, 4))
case("attention", [0.4, 1, 7], *QKV, [3, 2], [[True, False, True, True]], C(2, 3, 4))
case("attention", [1, 0, 0], *QKV)
case("attention", [0, 0, 0], torch.zeros(2, 3, 2), torch.zeros(2, 0, 2), torch.zeros(2, 0, 2))

# Nothing inside.
case("matmul", [], torch.zeros(2, 0), torch.zeros(0, 3), tolerance=EXACT)
case("bmm", [], torch.zeros(2, 2, 0), torch.zeros(2, 0, 1), tolerance=EXACT)
case("linear", [], torch.zeros(2, 0), torch.zeros(3, 0), R(3), tolerance=EXACT)
case("bmm", [], torch.zeros(0, 2, 3), torch.zeros(0, 3, 2))
case("linear", [], torch.zeros(0, 3), R(2, 3), R(2), tolerance=EXACT)
case("add", [], torch.zeros(0, 3), R(1, 3), tolerance=EXACT)
case("cat", [0], torch.zeros(0, 2), R(1, 2))
case("matmul", [], [[INF, 0]], [[0.0], [1]])
case("dropout", [0], R(2, 3), tolerance=EXACT)
case("dropout", [1], [1.0, -2, 3], tolerance=EXACT)

path = pathlib.Path(__file__).parent / "ops.txt"
path.write_text("\n".join(lines) + "\n")
