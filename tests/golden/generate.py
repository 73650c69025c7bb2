#!/usr/bin/env python3
"""Writes functions/NAME.safetensors: the values and gradients that PyTorch computes for every op of
../suites/library/ops.def and for most functions of tensor.h. The inputs are PyTorch's own samples, and ours in many memory
layouts. A row of ops.def has the op as an expression of PyTorch and its inputs, so a new op needs nothing here.

Run this with PyTorch 2.15 (reference.py says how to install PyTorch, and how its bits are kept equal on all
machines). Arguments such as ag_add choose the functions to write. The bytes are the same every time.
../test_golden.c reads the files.

A file is a list of cases of one function. The tensors of case 7 are

    7.in0 7.in1 ...   the inputs, in their order in memory; an input that is missing is NULL
    7.out0 7.out1     the results
    7.grad0 ...       the gradient of each input that requires one. The cotangent of the first result is the
                      first elements of the file's random numbers "dy", in the result's shape and type

and the metadata's "7" has the other facts, in fields that end with a semicolon:

    float32 transposed;            the type of the case (the default type of C's calls), the kind of the case
    numbers 2 0 1;                 the arguments that are not tensors, in the order of C's call; a shape or a
                                   list of dimensions is written as its length and then its sizes
    grad_fn AddBackward0;          PyTorch's name of the node, if the result requires a gradient
    in0 2  3 4  1 3  0;            in0 is a view of its bytes: ndim, sizes, strides, offset

and "cases" is the number of cases. "float64" lists the results for which PyTorch's float32 has an error of
more than a fifth of the suite's tolerance: the file has the float64 results, rounded to float32.

The kinds of cases: "op_db", one of PyTorch's own sample inputs
(torch.testing._internal.common_methods_invocations, with its sizes S, M, L set to 3, 4, 6, if C's function
has such a call); "transposed", "sliced", "expanded", the same call on views; "own", calls that PyTorch's
samples leave out: sizes of zero, scalars, corners, integers.
"""
import json
import math
import pathlib
import random
import re
import struct
import sys

from reference import torch
import torch.nn.functional as F
import torch.testing._internal.common_methods_invocations as invocations
from torch.testing._internal.opinfo import core

from corners import CORNERS
import table

NAN, INF = math.nan, math.inf
FLOATS = (torch.float32, torch.float64)
TYPES = [*FLOATS, torch.int64, torch.bool]  # in the order of DType
TYPE_NAME = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.bool: "BOOL"}
SAMPLES = 6  # the most samples of op_db, for each type
ELEMENTS = 64  # the most elements of an input of op_db
RESULT = 1024  # the most elements of a result that has a gradient


def write_safetensors(path, tensors, metadata):
    """Writes 8 bytes, the length of the header; then the header, JSON; then the bytes of all tensors."""
    header, body = {"__metadata__": metadata}, b""
    for name, x in sorted(tensors.items(), key=lambda item: -item[1].element_size()):  # aligned
        data = x.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": TYPE_NAME[x.dtype], "shape": list(x.shape),
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


# ---- drawing inputs ----------------------------------------------------------------------------------

INPUT = re.compile(r"([fib])([\d,]*)(?:~(.*),(.*))?")
RANGE = {"f": (-2, 2), "i": (-5, 6), "b": (0, 2)}


def draw(text, dtype):
    """Makes an input of a case. f3,4, i3,4 and b3,4 are random floats, int64 and bools of shape (3, 4);
    f3,4~0,9 are floats from 0 to below 9; [1,nan] and 2.5 are these numbers; - is NULL in C."""
    if text == "-":
        return None
    if text[0] not in "fib" or text.startswith("inf"):
        x = torch.tensor(eval(text, {"nan": NAN, "inf": INF, "true": True, "false": False}))
        return x.to(dtype) if x.is_floating_point() else x
    kind, sizes, *bounds = INPUT.fullmatch(text).groups()
    sizes = [int(n) for n in sizes.split(",") if n]
    low, high = map(float, bounds) if bounds[0] else RANGE[kind]
    if kind == "f":
        return low + (high - low) * torch.rand(sizes, dtype=dtype)
    x = torch.randint(int(low), int(high), sizes)
    return x.bool() if kind == "b" else x


def parse(case):
    """"1 0: f3,4 b4" -> [1, 0], ["f3,4", "b4"]"""
    numbers, inputs = case.split(":") if ":" in case else ("", case)
    return [eval(n, {"nan": NAN, "inf": INF}) for n in numbers.split()], inputs.split()


# ---- memory layouts ----------------------------------------------------------------------------------


def transposed(x):
    """A copy of x that has stride 1 in the first dimension."""
    return x.permute(*reversed(range(x.dim()))).contiguous().permute(*reversed(range(x.dim())))


def bytes_of(x):
    """All elements of x's storage."""
    return torch.tensor([], dtype=x.dtype).set_(x.untyped_storage())


def copied(x):
    """A view of a copy of x's storage."""
    return torch.as_strided(bytes_of(x).clone(), x.shape, x.stride(), x.storage_offset())


def sliced(x):
    """x as a view of a larger tensor: every second column, from the second row on."""
    if x.dim() == 0:
        return torch.stack([x, x])[1]
    sizes = [n + (d == 0) for d, n in enumerate(x.shape[:-1])] + [2 * x.shape[-1] + 1]
    larger = torch.full(sizes, 7).to(x.dtype)
    view = larger[..., 1::2] if x.dim() == 1 else larger[1:, ..., 1::2]
    return view.copy_(x)


def expanded(x):
    """The first row of x in place of every row, with stride 0."""
    return x[:1].clone().expand(x.shape) if x.dim() and len(x) else x


LAYOUTS = (transposed, sliced, expanded)


# ---- the functions -----------------------------------------------------------------------------------


class Function:
    """An op or another function, and its calls.

    call(x, a): the same call in PyTorch; x are the inputs and a the numbers of C's call.
    cases: own calls, "numbers: inputs; numbers: inputs"; the first call is made in every layout, too.
    db, variant: the function's name in op_db. adapt(sample): (inputs, numbers) of C's call, None if C has no
    such call. sizes: op_db's S, M and L. grad: the floats among this many first inputs get a gradient, but not
    input constant(a).
    grad_fn: maps PyTorch's name of the last node to C's name; None: the names are not compared.
    seeded: numbers[0] is the seed. drawn: floats are drawn in this type, for all types of cases.
    """

    def __init__(self, name, call, cases, db=None, adapt=None, variant="", sizes=(3, 4, 6), grad=9,
                 constant=lambda a: None, grad_fn={}, layouts=LAYOUTS, types=FLOATS, seeded=False, drawn=None):
        corners = CORNERS.get(name.removeprefix("ag_"))
        self.name, self.call = name, call
        self.cases = [parse(case) for case in (cases + ("; " + corners if corners else "")).split(";")]
        self.db, self.adapt, self.variant, self.sizes = db, adapt, variant, sizes
        self.grad, self.grad_fn, self.layouts, self.types, self.seeded = grad, grad_fn, layouts, types, seeded
        self.constant, self.drawn = constant, drawn
        FUNCTIONS.append(self)


FUNCTIONS = []


def shape(a):
    return [int(n) for n in a[1 : 1 + int(a[0])]]


def listed(sizes):
    return [len(sizes), *sizes]


def tensors_only(s):
    x = [s.input, *s.args]
    return None if s.kwargs or not all(isinstance(t, torch.Tensor) for t in x) else (x, [])


def with_dim(s):
    """C's call of a sample that has one dimension among its arguments."""
    dim = s.args[0] if s.args else s.kwargs.get("dim")
    return ([s.input], [dim]) if isinstance(dim, int) and "dtype" not in s.kwargs else None


def with_list(s):
    """C's call of a sample that has a shape or a list of dimensions."""
    return [s.input], listed(s.args[0])


def with_numbers(s):
    return [s.input], list(s.args)


def quartered(s):
    """The sample, divided by 4. PyTorch's numbers go up to 9, and products of up to 81 that cancel have
    errors above 1e-6 in float32."""
    return [x / 4 for x in (s.input, *s.args)], []


def clamped(s):
    """C's call of a sample of clamp that has two bounds, both numbers."""
    bounds = list(s.args)
    return ([s.input], bounds) if len(bounds) == 2 and all(isinstance(b, (int, float)) for b in bounds) else None


def number(x, a):
    """a[0] as a number of x's type."""
    return a[0] if x[0].is_floating_point() else int(a[0])


# ---- the ops: what their expressions in ../suites/library/ops.def call

REDUCTION = ["none", "sum", "mean"]


def slice_of(x, dim, start, end):
    return x[(slice(None),) * (int(dim) % x.dim()) + (slice(int(start), int(end)),)]


def keep_before(lens, n, q, k):
    """(n, q, k): true for the keys before the length."""
    return torch.arange(k) < (lens if lens.dim() == 2 else lens[:, None].expand(n, q))[:, :, None]


def softmax_where(scores, keep):
    """Softmax over the scores that are kept; a row that keeps no score is 0, and so is its gradient."""
    some = keep.any(-1, keepdim=True)
    y = torch.softmax(scores.masked_fill(~keep, -INF).masked_fill(~some, 0), -1)
    return torch.where(keep & some, y, torch.zeros((), dtype=y.dtype))


def masked_softmax(scores, lens=None):
    if lens is None:
        return torch.softmax(scores, -1)
    return softmax_where(scores, keep_before(lens, *scores.shape))


def attention_weights(scores, scale, causal, heads, lens=None, keep=None, window=None, bias=None):
    """scores: (b, h, q, k), or (b h, q, k). Window b mod windows is added to the scores of batch b."""
    b = scores.shape[0] if scores.dim() == 4 else scores.shape[0] // int(heads)
    x = scores.reshape(b, int(heads), *scores.shape[-2:]) * scale
    if window is not None:
        x = (x.reshape(-1, len(window), *x.shape[1:]) + window[:, None]).reshape(x.shape)
    if bias is not None:
        x = x + bias
    allowed = torch.ones(x.shape, dtype=torch.bool)
    if lens is not None:
        allowed = allowed & keep_before(lens, b, *x.shape[2:])[:, None]
    if keep is not None:
        allowed = allowed & keep
    return softmax_where(x, allowed.tril() if causal else allowed).reshape(scores.shape)


def additive_scores(q, k, w, lens=None):
    scores = F.linear(torch.tanh(q.unsqueeze(2) + k.unsqueeze(1)), w).squeeze(-1)
    if lens is None:
        return scores
    return torch.where(keep_before(lens, *scores.shape), scores, torch.zeros((), dtype=scores.dtype))


def parts(x, bits):
    """The inputs lens, keep, window and bias; None for an input that is not in x."""
    rest = list(x)
    return [rest.pop(0) if int(bits) & bit else None for bit in (1, 2, 4, 8)]


def window_at(first, bits):
    """Which input is the window, if the mask begins at `first`; None if there is none."""
    return first + (int(bits) & 1) + (int(bits) >> 1 & 1) if int(bits) & 4 else None


def rope(x, positions, speed, halves):
    """As Hugging Face's models write it: x cos + rotated sin, with the angles repeated for both of a pair.
    speed: the speeds of the pairs, or the base from which they are made."""
    half = x.shape[-1] // 2
    if not isinstance(speed, torch.Tensor):
        speed = speed ** (-torch.arange(0, 2 * half, 2, dtype=torch.float64) / max(2 * half, 1))
    angle = positions.double()[..., None] * speed.detach().double()
    if positions.dim() == 2:
        angle = angle.reshape(len(x), *[1] * (x.dim() - 3), *angle.shape[1:])
    if halves:
        angle, rotated = torch.cat([angle, angle], -1), torch.cat([-x[..., half:], x[..., :half]], -1)
    else:
        angle, rotated = angle.repeat_interleave(2, -1), torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
    return x * angle.cos().to(x.dtype) + rotated * angle.sin().to(x.dtype)


def attention(q, k, v, dropout, causal, *mask, scale=None):
    heads = q.shape[1] if q.dim() == 4 else 1
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    if k.shape[:-2] != q.shape[:-2]:  # grouped, as enable_gqa has it
        k, v = (t.repeat_interleave(heads // t.shape[1], 1) for t in (k, v))
    weights = attention_weights(q @ k.transpose(-1, -2), scale, causal, heads, *mask)
    return F.dropout(weights, dropout, dropout > 0) @ v


def normalized(x):
    """The sizes of w, else of b; without w and b, the last size of x."""
    given = [t.shape for t in x[1:] if t is not None]
    return given[0] if given else x[0].shape[-1:]


# ---- the ops: PyTorch's own samples for them


def narrowed(s):
    dim, start, length = map(int, s.args)
    return ([s.input], [dim, start, start + length]) if start >= 0 else None


def flattened(s):
    return None if s.kwargs else ([s.input], [*s.args, *(0, -1)[len(s.args):]])


def split_of(s):
    size, dim = [*s.args, 0][:2]
    return ([s.input], [size, dim, 0, len(s.input.split(size, dim))]) if isinstance(size, int) else None


def repeated(s):
    repeats, dim = s.kwargs["repeats"], s.kwargs.get("dim")
    return ([s.input], [repeats, dim]) if isinstance(repeats, int) and dim is not None else None


def at_indices(s):
    dim, index = s.args
    return [s.input, index.long()], [dim]


def gathered(s):
    """In PyTorch an index without elements may have any number of dimensions, in C it may not."""
    return at_indices(s) if s.args[1].dim() == s.input.dim() else None


def everything(s):
    return None if s.kwargs or s.args else ([s.input], [])


def over_dims(s):
    dims = s.kwargs.get("dim")
    dims = [dims] if isinstance(dims, int) else dims
    return None if dims is None else ([s.input], [int(s.kwargs["keepdim"]), *listed(dims)])


def unbiased(s):
    dim = s.kwargs.get("dim")
    if dim is None or not s.kwargs.get("unbiased", True):
        return None
    return [s.input], [dim if isinstance(dim, int) else dim[0], int(s.kwargs.get("keepdim", 0))]


def without_dropout(s):
    if s.kwargs["dropout_p"] or s.kwargs.get("attn_mask") is not None or s.input.dim() != s.args[0].dim():
        return None
    return [x[:2] / 4 for x in (s.input, *s.args)], [0, int(s.kwargs["is_causal"]), 0]


def reduction(s):
    return REDUCTION.index(s.kwargs.get("reduction", "mean"))


def classes(s):
    if s.kwargs.get("weight") is not None or s.args[0].dtype != torch.int64:
        return None
    return [s.input, *s.args], [s.kwargs.get("ignore_index", -100), reduction(s)]


def normed(s):
    """C's call of a sample, but not of rows of 2: terms that are 1e5 times as large cancel in their gradient."""
    if len(s.args) != 3 or s.kwargs.get("eps", 1) < 0 or s.input.shape[-1] == 2:
        return None
    return [s.input, *s.args[1:]], [s.kwargs.get("eps", 1e-5)]


MORE = {}


def more(names, db="", **settings):
    """Settings of Function for these ops. The ops have their own names in op_db, if db does not say another one."""
    for name in names.split():
        MORE[name] = {"db": db.format(name) if db else name, **settings}


more("neg abs square exp sin cos tanh sigmoid log1p",
     adapt=lambda s: ([s.input[:4]], []) if s.input.dim() else ([s.input], []))
for name, approximate in [("relu", None), ("gelu", "none"), ("silu", None), ("gelu_tanh", "tanh")]:
    more(name, db="nn.functional." + name.removesuffix("_tanh"), adapt=lambda s, approximate=approximate:
         None if (s.kwargs.get("approximate") == "tanh") != (approximate == "tanh") else
         ([s.input[:4, :4] if s.input.dim() > 1 else s.input], []))
more("sqrt log add sub mul maximum minimum pow eq ne lt le gt ge logical_and logical_or logical_not isnan "
     "contiguous masked_select", adapt=tensors_only)
more("div", variant="no_rounding_mode", adapt=tensors_only)
more("clamp", adapt=clamped)
more("where", adapt=lambda s: ([s.args[0], s.input, s.args[1]], []))
more("masked_fill",
     adapt=lambda s: None if isinstance(s.args[1], torch.Tensor) else ([s.input, s.args[0]], [s.args[1]]))
more("reshape view permute expand repeat", adapt=with_list)
more("flip", sizes=(3, 4, 3), adapt=lambda s: ([s.input], listed(s.kwargs["dims"])))
more("flatten", adapt=flattened)
more("split", adapt=split_of)
more("transpose select", adapt=with_numbers)
more("unsqueeze squeeze cumsum softmax log_softmax", adapt=with_dim)
more("slice", db="narrow", adapt=narrowed)
more("cat", adapt=lambda s: (s.input, [s.kwargs.get("dim", 0)]))
more("stack", adapt=lambda s: (s.input, s.args))
more("repeat_interleave", adapt=repeated)
more("tril triu", adapt=lambda s: ([s.input], list(s.args) or [0]))
more("index_select", adapt=at_indices)
more("gather", sizes=(4, 5, 6), adapt=gathered)
more("embedding", db="nn.functional.{}", adapt=tensors_only)
more("sum mean", adapt=everything)
more("sum_dims", db="sum", adapt=over_dims)
more("mean_dims", db="mean", adapt=over_dims)
for name in "max min".split():
    more(name + "_dim", db=name, variant="reduction_with_dim",
         adapt=lambda s: ([s.input], [s.args[0], int(len(s.args) > 1)]))
more("max", variant="reduction_no_dim", adapt=everything)
more("var_dim", db="var", adapt=unbiased)
more("std_dim", db="std", adapt=unbiased)
more("logsumexp", adapt=lambda s: ([s.input], s.args[0]) if len(s.args[0]) == 1 and not s.args[1] else None)
more("logsumexp_dim", db="logsumexp",
     adapt=lambda s: ([s.input], [s.args[0][0], s.args[1]]) if len(s.args[0]) == 1 else None)
more("argmax argmin", adapt=lambda s: None if s.kwargs.get("keepdim") else with_dim(s))
more("topk", adapt=lambda s: ([s.input], [*s.args, -1][:2] + [0]))
# PyTorch's last nodes for some shapes are others.
more("matmul", adapt=quartered, grad_fn={"CloneBackward0": None, "TransposeBackward0": None})
more("bmm", adapt=quartered)
more("linear", db="nn.functional.{}", adapt=lambda s: quartered(s) if s.args[0].dim() == 2 else None)
SHOWN = {name: "SoftmaxBackward0" for name in ("WhereBackward0", "ReshapeAliasBackward0", "ViewBackward0")}
MORE["pad_sequence"] = {"grad_fn": {"CopySlices": "StackBackward0"}}
MORE["masked_softmax"] = {"grad_fn": SHOWN}
MORE["attention_weights"] = {"constant": lambda a: window_at(1, a[3]), "grad_fn": SHOWN}
MORE["additive_scores"] = {"grad_fn": {"WhereBackward0": "SqueezeBackward1"}}
SHOWN = {name: None for name in ("BmmBackward0", "UnsafeViewBackward0")}
more("attention", db="nn.functional.scaled_dot_product_attention", adapt=without_dropout,
     constant=lambda a: window_at(3, a[2]), grad_fn=SHOWN)
MORE["rope_speeds"] = {"constant": lambda a: 2}
MORE["attention_scaled"] = {"constant": lambda a: window_at(3, a[2]), "grad_fn": SHOWN}
more("mse_loss", db="nn.functional.{}", adapt=lambda s: ([s.input, *s.args], [reduction(s)]))
more("cross_entropy", db="nn.functional.{}", adapt=classes)
more("dropout", db="nn.functional.{}",
     adapt=lambda s: ([s.input], [s.kwargs["p"]]) if s.kwargs.get("training") else None)
more("layer_norm", db="nn.functional.{}", adapt=normed)

for op in table.OPS:
    Function("ag_" + op.name, eval("lambda x, a: " + op.torch), op.cases, **MORE.get(op.name, {}))

# ---- tensor.h: making

SHAPES = ["2 3 4", "0", "2 0 2", "3 2 1 3"]
for name, f in [("zeros", torch.zeros), ("ones", torch.ones)]:
    Function("tensor_" + name, lambda x, a, f=f: f(shape(a)), ": ;".join(SHAPES) + ":", layouts=())
Function("tensor_full", lambda x, a: torch.full(shape(a[1:]), float(a[0])),
         "0.1 2 3 4: ; -7 0: ; inf 2 0 2: ; nan 1 2:", layouts=())
Function("tensor_arange", lambda x, a: torch.arange(*a, dtype=torch.get_default_dtype()),
         "0 1 0.1: ; 5 5 1: ; 1 -2 -0.5: ; -3 40 1: ; 7 7 -1e300: ; 0 0.3 0.1: ; 1 2.5 0.5: ; 5 -1 -1.5: ; -3 3 2: ; "
         "-1 1.3 0.1: ; 0.1 1.3 0.1: ; 0 0.001 0.0001:", db="arange", layouts=(),
         adapt=lambda s: ([], [s.input, *s.args]) if len(s.args) == 2 else None)
Function("tensor_eye", lambda x, a: torch.eye(int(a[0])), "0: ; 1: ; 2: ; 5:", layouts=())
for name, dtype in [("doubles", torch.float64), ("floats", torch.float32)]:
    Function("tensor_from_" + name, lambda x, a: x[0].to(torch.get_default_dtype()),
             "f2,3; f; f0,2; [1e30,-0.0,1e-40,nan,inf,0.1]", layouts=(), grad=0, drawn=dtype)
Function("tensor_from_int64s", lambda x, a: x[0].clone(), "i2,3; i; i0,2; [2**62,-2**63]", layouts=())
Function("tensor_from_bools", lambda x, a: x[0].clone(), "b2,3; b; b0,2", layouts=())

# ---- tensor.h: drawing

Function("tensor_manual_seed", lambda x, a: torch.rand(3), "0: ; 42: ; 2**32-1: ; 2**40+7:", layouts=(),
         seeded=True)
for name, f in [("rand", torch.rand), ("randn", torch.randn)]:
    Function("tensor_" + name, lambda x, a, f=f: f(shape(a[1:])),
             "0 2 3 4: ; 42 0: ; 1 2 0 2: ; 2**40+7 2 4 9:", layouts=(), seeded=True)
Function("tensor_normal", lambda x, a: torch.normal(a[1], a[2], shape(a[3:])),
         "0 2 0.5 2 2 3: ; 7 -1 0.5 1 20: ; 7 1 0 1 2: ; 7 1 1 1 0:", layouts=(), seeded=True)
Function("tensor_uniform", lambda x, a: torch.empty(shape(a[3:])).uniform_(a[1], a[2]),
         "0 -100 100 1 4: ; 1 0 1 2 3 3: ; 2 1 1 0: ; 7 1 2 1 0:", layouts=(), seeded=True)
for name in ["uniform_", "normal_"]:
    Function("tensor_" + name, lambda x, a, name=name: bytes_of(getattr(x[0], name)(a[1], a[2])),
             "0 -3 0.5: f5,4; 1 0 1: f2,3; 2 -1 2: f0,3; 3 2 2.5: f; 4 0 1: f20", layouts=LAYOUTS[:2],
             grad=0, seeded=True)
Function("tensor_bernoulli", lambda x, a: torch.empty(shape(a[2:])).bernoulli_(a[1]).bool(),
         "0 0.5 2 3 4: ; 1 0.1 1 20: ; 2 1 0: ; 7 0 1 5:", layouts=(), types=FLOATS[:1], seeded=True)
Function("tensor_randint", lambda x, a: torch.randint(int(a[1]), int(a[2]), shape(a[3:])),
         "0 0 10 2 3 4: ; 1 -5 5 1 6: ; 2 0 2**40 1 6: ; 3 7 8 0:", layouts=(), types=FLOATS[:1], seeded=True)
Function("tensor_randperm", lambda x, a: torch.randperm(int(a[1])), "0 10: ; 42 1: ; 1 0: ; 517109245 30:",
         layouts=(), types=FLOATS[:1], seeded=True)

# ---- tensor.h: copying, sorting, reading


def ascending(s):
    dim, descending = (*s.args, *s.kwargs.values(), -1, False)[:2]
    if descending or dim not in (-1, s.input.dim() - 1):
        return None
    return [s.input[:40] if s.input.dim() == 1 else s.input], []


ANY = "f3,4; f; f0,2; i3,4; b3,4"
Function("tensor_clone", lambda x, a: x[0].clone(), ANY, db="clone", adapt=tensors_only, grad=0)
ODD_FLOATS = ("[nan,inf,-inf,2**63.,-2**63.,0.,-0.,1e300,1e-320,0.5,-0.5,2.7,-2.7,1e-46,-1e-46,1e-40,1+2**-30,"
              "16777217.,3.4028235677973366e38,9007199254740993.,4294967296.5,-1e19,1.5e19,-2.**63+1024]")
ODD_INTEGERS = ("[0,1,-1,2**53+1,2**53+3,-2**53-1,2**63-1,-2**63,16777217,16777219,2**62+1]")
Function("tensor_to", lambda x, a: x[0].to(TYPES[int(a[0])]),
         "; ".join(f"{i}: {x}" for i in range(4) for x in
         ("f3,4 i2,3 b4 f f0,2 " + ODD_FLOATS + " " + ODD_INTEGERS).split()), grad=0)
Function("tensor_sort", lambda x, a: tuple(torch.sort(x[0], dim=-1, stable=True)), ANY + "; f2,0; i2,9~0,3; "
         "[[3.,nan,-inf,3,-0.0],[0,-0.0,nan,1,inf]]; [2**53+1,2**53,2**63-1,-2**63,2**53+1,0,2**53+2]; "
         + str([i * 7919 % 10 for i in range(40)]).replace(" ", "") + "; [True,False,True,False,False]",
         db="sort", adapt=ascending, grad=0)
Function("tensor_numel", lambda x, a: torch.tensor(x[0].numel()), ANY, grad=0)
Function("tensor_item", lambda x, a: x[0].double().reshape(()), "f1,1; f; i; b1", grad=0)
Function("tensor_get", lambda x, a: x[0][tuple(map(int, a))].double(),
         "1 -2: f3,4; 0 3: f3,4; -1 0: i3,4; 2 2: b3,4", grad=0)
Function("tensor_to_doubles", lambda x, a: x[0].double(), ANY, grad=0)
Function("tensor_allclose", lambda x, a: torch.tensor(torch.allclose(*x, *a)),
         "0.5 0.5: f3,4~0,2 f3,4~0,2; 0 0.2: [1.,2] [1.125,2.25]; 0.1 0: [1.,2] [1.125,2.2]; "
         "0.1 0: [1.,2] [1.0625,2.2]; 1 1: [nan,1] [nan,1]; 0 0: [inf,-inf] [inf,-inf]; 1 1: [inf] [-inf]; "
         "1 1: [1.] [inf]; 0 0: f0,2 f0,2; 0 0: [1,2] [1,2]; 0 1: [1,2] [2,4]; 0 0: [True] [True]; "
         "0 0.5: [True] [False]; 0 0.5: [1.] [1.5]; 0 0.5: [1.5] [1.]; 0 0.49999: [1.] [1.5]; 0.5 0: [1.] [2.]; "
         "0.5 0: [2.] [1.]; 0.5 0: [3.] [2.]; 0.5 0: [-1.] [-2.]; 0.25 0.5: [3.] [2.]; 0.25 0.49: [3.] [2.]; "
         "0 0: [0.] [-0.]; 1e9 1e9: [inf] [-inf]; 1 1: [inf] [1.]; 0 inf: [1.] [inf]; 1 1: [nan] [1.]; "
         "1 1: [1.] [nan]; 0 1e308: [1e308] [-1e308]; 2 1e308: [1e308] [-1e308]; inf 0: [1.] [5.]; "
         "0 inf: [1.] [5.]; inf 0: [0.] [0.]", db="allclose",
         adapt=lambda s: ([s.input, *s.args], list(s.kwargs.values())), grad=0)

# ---- tensor.h: writing in place. The result is the whole storage of the first input.


def put_at(x, value, index):
    kind = {torch.int64: int, torch.bool: bool}.get(x.dtype, float)
    x[tuple(map(int, index))] = kind(value)
    return x


VIEWS = LAYOUTS[:2]
Function("tensor_copy_from", lambda x, a: bytes_of(x[0].copy_(x[1])),
         "f3,4 f3,4; f3,4 f4; f0,2 f1,2; i3,2 i2; b3,2 b; f f; f2,3 f2,1; f2,3 f", layouts=VIEWS, grad=0)
Function("tensor_fill", lambda x, a: bytes_of(x[0].fill_(a[0])),
         "0.1: f3,4; -2: f; 1: f0,2; 7: i3,4; 1: b2,2; -2.7: i2; 0.5: b2; 0: b2; nan: f2", layouts=VIEWS, db="fill",
         adapt=lambda s: ([s.input], [float(s.kwargs["value"])]), grad=0)
Function("tensor_set", lambda x, a: bytes_of(put_at(x[0], a[0], a[1:])),
         "0.1 1 -2: f3,4; -2.7 0 3: i3,4; 0.5 -1 0: b3,4; 7 0 0: f1,1", layouts=VIEWS, grad=0)
Function("tensor_add_", lambda x, a: bytes_of(x[0].add_(x[1], alpha=a[0])),
         "-0.3: f3,4 f3,4; 2: f3,4 f4; 1: f f; 1: f0,2 f1,2", layouts=VIEWS, grad=0)
Function("tensor_mul_", lambda x, a: bytes_of(x[0].mul_(a[0])),
         "-0.3: f3,4; 2: f; 1: f0,2; 0.1: [0.,1,2,3,4,5]; -inf: [0.,1]", layouts=VIEWS, grad=0)


# ---- writing -----------------------------------------------------------------------------------------


def op_db_samples(f, dtype):
    """The calls with which PyTorch tests its own function, if C has such a call; small, and all different."""
    if not f.db:
        return []
    for module in (invocations, core):
        module.S, module.M, module.L = f.sizes
    infos = [o for o in invocations.op_db if o.name == f.db and o.variant_test_name == f.variant]
    assert len(infos) == 1, f.db
    calls, seen = [], set()
    for sample in infos[0].sample_inputs("cpu", dtype, requires_grad=False):
        adapted = f.adapt(sample)
        if adapted is None or any(x.numel() > ELEMENTS for x in adapted[0]):
            continue
        key = str((adapted[1], [tuple(x.shape) for x in adapted[0]]))
        if key not in seen:
            seen.add(key)
            calls.append(("op_db", adapted[1], adapted[0]))
    step = max(1, len(calls) / SAMPLES)
    return [calls[int(i * step)] for i in range(min(SAMPLES, len(calls)))]


def own_calls(f, dtype):
    """The function's own cases; a case without floats is made for the first type only."""
    for i, (numbers, texts) in enumerate(f.cases):
        x = [draw(text, f.drawn or dtype) for text in texts]
        if dtype == f.types[0] or not x or any(t is not None and t.is_floating_point() for t in x):
            yield "own", numbers, x
        if i == 0:
            for layout in f.layouts:
                views = [t if t is None else layout(t) for t in x]
                yield layout.__name__, numbers, views


def text_of(number):
    return str(int(number)) if float(number).is_integer() and abs(number) < 2**53 else repr(float(number))


def results(f, dtype, inputs, numbers, dy=None):
    """The results, and the gradients of the inputs that are floats, with dy as the cotangent."""
    torch.set_default_dtype(dtype)
    torch.manual_seed(numbers[0] if f.seeded else 0)
    floats = [i < f.grad and i != f.constant(numbers) and t is not None and t.is_floating_point()
              for i, t in enumerate(inputs)]
    x = [t if t is None else copied(t).requires_grad_(float_) for t, float_ in zip(inputs, floats)]
    out = f.call(x, numbers)
    out = out if isinstance(out, tuple) else (out,)
    found = {f"out{i}": y for i, y in enumerate(out)}
    found["grad_fn"] = type(out[0].grad_fn).__name__ if out[0].grad_fn else None
    if dy is not None and out[0].requires_grad:
        wanted = [i for i, float_ in enumerate(floats) if float_]
        grads = torch.autograd.grad(out[0], [x[i] for i in wanted], dy.to(dtype))
        found |= {f"grad{i}": g for i, g in zip(wanted, grads)}
    return found


def cotangent(shape):
    """The cotangent of a result: the first elements of "dy", which are the same for all functions."""
    seeded = torch.Generator().manual_seed(1)
    return torch.randn(RESULT, dtype=torch.float64, generator=seeded)[: math.prod(shape)].reshape(shape)


def off(x, exact):
    """Has an element of x an error of more than a fifth of the suite's tolerance, or is it NaN for a number?"""
    exact = exact.to(torch.float64)
    far = x.isfinite() & ((x - exact).abs() > (1e-6 + 2e-6 * exact.abs()) / 5)
    return bool((far | (x.isnan() & ~exact.isnan())).any())


def case_of(f, dtype, what, numbers, inputs):
    """The tensors of a case, the fields of its metadata, and the names of results taken from float64."""
    y = results(f, dtype, inputs, numbers)["out0"]
    dy = cotangent(y.shape).to(dtype)
    made, tensors, fields, rounded = results(f, dtype, inputs, numbers, dy), {}, [], []
    grad_fn = made.pop("grad_fn")
    if dtype == torch.float32 and f.grad and not f.seeded:
        wide = [t.double() if t is not None and t.is_floating_point() else t for t in inputs]
        wide = results(f, torch.float64, wide, numbers, dy)
        for name in made:
            if made[name].is_floating_point() and off(made[name], wide[name]):
                made[name] = wide[name].float()
                rounded.append(name)
    fields.append(str(dtype)[6:] + " " + what)
    fields.append(" ".join(["numbers", *map(text_of, numbers)]))
    if grad_fn and f.grad_fn.get(grad_fn, True):
        fields.append("grad_fn " + f.grad_fn.get(grad_fn, grad_fn))
    for i, x in enumerate(inputs):
        if x is None:
            continue
        whole = bytes_of(x)
        if x.is_contiguous() and whole.numel() == x.numel():
            tensors[f"in{i}"] = x
            continue
        tensors[f"in{i}"] = whole
        fields.append(" ".join(map(str, [f"in{i}", x.dim(), *x.shape, *x.stride(), x.storage_offset()])))
    tensors |= made
    return tensors, fields, rounded


def write(f, folder):
    tensors, metadata = {}, {"function": f.name, "torch": torch.__version__}
    count, rounded, results_of = 0, [], []
    for dtype in f.types:
        torch.set_default_dtype(torch.float32)
        torch.manual_seed(len(f.name))
        random.seed(0)
        for what, numbers, inputs in [*op_db_samples(f, dtype), *own_calls(f, dtype)]:
            inputs = [x if x is None else x.detach() for x in inputs]
            try:
                made, fields, wide = case_of(f, dtype, what, numbers, inputs)
            except RuntimeError:  # view cannot make a view of these strides
                assert what in ("transposed", "sliced", "expanded"), (f.name, what)
                continue
            metadata[str(count)] = "; ".join(fields) + ";"
            tensors |= {f"{count}.{name}": x for name, x in made.items()}
            rounded += [f"{count}.{name}" for name in wide]
            results_of.append(made["out0"].numel() if any("grad" in name for name in made) else 0)
            count += 1
    if max(results_of):
        tensors["dy"] = cotangent([max(results_of)])
    metadata["cases"] = str(count)
    if rounded:
        metadata["float64"] = " ".join(rounded)
        print(f.name, "float32 taken from float64:", metadata["float64"])
    write_safetensors(folder / f"{f.name}.safetensors", tensors, metadata)


if __name__ == "__main__":
    take_one = random.sample
    # The samples of cross_entropy draw from a set, which Python 3.11 refuses.
    random.sample = lambda population, n: take_one(sorted(population), n)
    folder = pathlib.Path(__file__).parent / "functions"
    folder.mkdir(exist_ok=True)
    for f in FUNCTIONS:
        if not sys.argv[1:] or f.name in sys.argv[1:]:
            write(f, folder)
