#!/usr/bin/env python3
"""Writes seeds.safetensors and attention.safetensors for tests/suites/library/test_seeds.c. PyTorch runs the code of the
five documents, and their attention modules with every mask.

    python3 tests/golden/generate_seeds.py FOLDER-WITH-THE-DOCUMENTS

Run this with PyTorch 2.15 (reference.py says how to install PyTorch, and how its bits are kept equal on all
machines). The files are written beside this one, with the same bytes every time. They have only results: this
program and the test set the same seed, make the same modules, and then draw inputs, masks and cotangents in the
same order.

A tensor of seeds.safetensors has a name such as 002.float64.output: document, type, tensor. A large tensor is
recorded as a sample of its elements (see sample). A tensor of attention.safetensors is one case: all results of
the case, joined. The metadata describes the case under the same name.
"""
import ast
import contextlib
import io
import itertools
import json
import math
import pathlib
import re
import struct
import sys
import types
import warnings

from reference import torch
from torch import nn

warnings.filterwarnings("ignore")  # LazyLinear warns that it is a new feature
HERE = pathlib.Path(__file__).parent
SEEDS = pathlib.Path(sys.argv[1])  # the documents, 000_*.txt to 004_*.txt, are not in this repository
NAMES = {torch.float32: "float32", torch.float64: "float64"}


def document(number):
    (path,) = SEEDS.glob(f"{number}_*.txt")
    return path.read_text()


def write(name, tensors, metadata):
    """Writes a safetensors file: the header's length, the header in JSON, the elements."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for key, x in tensors.items():
        letter = {torch.float32: "f", torch.float64: "d"}[x.dtype]
        start, elements = len(data), x.reshape(-1).tolist()
        data += struct.pack(f"<{len(elements)}{letter}", *elements)
        kind = {"f": "F32", "d": "F64"}[letter]
        header[key] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [start, len(data)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (HERE / name).write_bytes(struct.pack("<Q", len(text)) + text + data)


# ---- the documents' code ------------------------------------------------------------------------


def fenced(text, head="```python"):
    """A list of the blocks of code between head and ```."""
    return [block.split("```")[0] for block in text.split(head + "\n")[1:]]


OUTPUT = re.compile(r"tensor\(|torch\.Size|Parameter containing|epoch \d|\d|MultiHeadAttention\($")


def cells(text):
    """The cells of a notebook, which begin with "In [n]:": n -> (code, output). Paragraphs are code until
    one is not Python or looks like output."""
    found = {}
    parts = re.split(r"^In \[(\d+)\]:\n", text, flags=re.M)[1:]
    for number, body in zip(parts[::2], parts[1::2]):
        paragraphs, code = re.split(r"\n\n+", body), []
        while paragraphs and not OUTPUT.match(paragraphs[0]):
            try:
                ast.parse("\n\n".join(code + paragraphs[:1]))
            except SyntaxError:
                break
            code.append(paragraphs.pop(0))
        found[int(number)] = "\n\n".join(code), "\n\n".join(paragraphs)
    return found


def execute(code, scope, leaves=()):
    """Runs the code as a notebook runs a cell, and returns the output, which includes the value of the last
    expression. A variable with a name in leaves requires a gradient from its assignment on."""
    body = ast.parse(code).body
    ends_so = isinstance(body[-1], ast.Expr)
    last = ast.Expression(body.pop().value) if ends_so else ast.parse("None", mode="eval")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for statement in body:
            exec(compile(ast.Module([statement], []), "document", "exec"), scope)
            for name in leaves:
                if isinstance(scope.get(name), torch.Tensor):
                    scope[name].requires_grad_()
        value = eval(compile(last, "document", "eval"), scope)
        if value is not None:
            print(value)
    return printed.getvalue()


def watch(module):
    """Makes the module keep its last output and the last weights that its dropout got."""

    def see_output(self, inputs, output):
        module.last_output = output

    def see_weights(self, inputs):
        module.last_weights = inputs[0]

    module.register_forward_hook(see_output)
    for child in module.modules():
        if isinstance(child, nn.Dropout):
            child.register_forward_pre_hook(see_weights)
    return module


def uniform(*shape):
    return torch.empty(shape).uniform_(-1, 1)


# ---- the recorded tensors of a document --------------------------------------------------------

documents = {}


def sample(x):
    """All elements of a tensor with up to 128 elements. Of a larger tensor, 64 elements or a few more, in
    row-major order at a fixed odd step."""
    x = x.detach().reshape(-1)
    return x if x.numel() <= 128 else x[:: x.numel() // 64 | 1]


def record(group, **tensors):
    for name, x in tensors.items():
        documents[f"{group}.{NAMES[x.dtype]}.{name}"] = sample(x).clone()


def record_backward(group, module, output, renamed={}, **leaves):
    """Draws a cotangent and runs backward. Records the gradients of the leaves and of the parameters, which
    renamed may give the names of the library's module."""
    output.backward(uniform(*output.shape))
    for path, p in module.named_parameters():
        child, name = path.split(".")
        record(group, **{f"d{renamed.get(child, child)}.{name}": p.grad})
    record(group, **{f"d{name}": x.grad for name, x in leaves.items()})


def in_both_types(function):
    for dtype in NAMES:
        torch.set_default_dtype(dtype)
        function()
    torch.set_default_dtype(torch.float32)


# ---- 004, a whole notebook ---------------------------------------------------------------------

NOTEBOOK = cells(document("004"))
NOTEBOOK_SEED = 517109245  # the notebook sets no seed; a search of all 2^32 seeds found this one


def notebook_definitions():
    """The functions and classes of cells 22, 25, 28, 30 and 31; the other cells do not run."""
    scope = {"torch": torch, "nn": nn, "math": math}
    for number in 22, 25, 28, 30, 31:
        execute(NOTEBOOK[number][0], scope)
    return scope


def compare(number, printed):
    """Fails unless the document has this output, or its beginning if the document leaves out the end. The
    document was printed by PyTorch 1.12: the version in cell 1 differs, and so may the last bits of the losses,
    which are sums in float32, and the last bit of the trained w, which changes the fifth digit of small weights."""
    if number == 1:
        return
    printed, expected = printed.rstrip(), NOTEBOOK[number][1].rstrip()
    if number == 16:
        pairs = zip(printed.splitlines(), expected.splitlines(), strict=True)
        assert all(abs(float(a.split()[-1]) - float(b.split()[-1])) < 5e-6 for a, b in pairs)
        return
    if number in (18, 21):
        numbers = [re.findall(r"\d\.\d+e[+-]\d+", text) for text in (printed, expected)]
        assert all(math.isclose(float(a), float(b), rel_tol=1e-4) for a, b in zip(*numbers))
        return
    whole = expected.startswith(printed)
    cut = printed.startswith(expected.split("\n\n#")[0].rstrip())
    assert (whole or cut) and bool(printed) == bool(expected), (number, printed, expected)


def seed_004():
    """Runs all cells after the notebook's seed. `wanted` names the variables to record after each cell. In
    float32 the output is compared with the document's output."""
    wanted = {
        2: "x_train y_train x_test y_truth", 7: "y_hat", 8: "y_hat attention_weights", 49: "a",
        13: "keys", 14: "values", 16: "losses", 17: "net.w", 18: "net.attention_weights",
        19: "y_hat", 21: "net.attention_weights", 23: "masked_attention_weights",
        24: "masked_attention_weights", 26: "queries", 27: "output attention.attention_weights",
        29: "output attention.attention_weights attention.W_q.weight attention.w_v.weight",
        33: "output", 34: "multi_head_attention.attention.attention_weights",
        36: "output_after_attention", 37: "multi_head_attention.attention.attention_weights",
    }
    torch.manual_seed(NOTEBOOK_SEED)
    scope, step = {"losses": []}, "    optimizer.step()\n"
    for number, (code, _) in NOTEBOOK.items():
        code = code.replace("dtype=torch.float32", "dtype=torch.get_default_dtype()")
        printed = execute(code.replace(step, step + "    losses.append(l.sum().item())\n"), scope)
        if torch.get_default_dtype() == torch.float32:
            compare(number, printed)
        for expression in wanted.get(number, "").split():
            name = expression.split(".", 1)[-1] if "." in expression else expression
            record(f"004.{number}", **{name: torch.as_tensor(eval(expression, scope))})


# ---- 000, multi-head attention -----------------------------------------------------------------


def seed_000():
    """The unchanged blocks of 000. They import DotProductAttention, which is the class of 004."""
    code = "\n".join(fenced(document("000"))[:-2])
    code = re.sub(r"^from (d2l|C10).*\n", "", code, flags=re.M)
    make, use = fenced(document("000"))[-2:]
    for seed in 0, 1:
        torch.manual_seed(seed)
        scope = {"DotProductAttention": notebook_definitions()["DotProductAttention"]}
        execute(code + "\n" + make, scope)
        attention = watch(scope["attention"])
        assert execute(use, scope, leaves=("X", "Y")) == "torch.Size([2, 4, 100])\n"
        group = f"000.{seed}"
        record(group, output=attention.last_output, weights=attention.last_weights)
        record_backward(group, attention, attention.last_output, X=scope["X"], Y=scope["Y"])


# ---- 001, self-attention with a boolean mask ----------------------------------------------------


def seed_001():
    """The unchanged cell of 001, whose result is NaN for the batch that may attend to nothing; and once more
    with the library's rule for this batch: weights of 0 in place of NaN. (The numbers printed in the document
    cannot be compared: other cells may have drawn from the generator before.)"""
    cell = cells(document("001"))[11][0].rsplit("\nout", 1)[0]
    softmax = "torch.softmax(attention_weight, dim = -1)"
    assert softmax in cell
    make = "att_net = MultiHeadSelfAtten(128, 8)"
    for name, code in ("", cell), ("zeros", cell.replace(softmax, softmax + ".nan_to_num(0)")):
        for seed in 0, 11:
            torch.manual_seed(seed)
            scope = {"watch": watch}
            execute(code.replace(make, make + "\nwatch(att_net)"), scope, leaves=("X",))
            out, net, group = scope["out"], scope["att_net"], f"001{name}.{seed}"
            assert out.shape == (3, 2, 128) and net.last_weights.shape == (3, 8, 2, 2)
            assert torch.isnan(out[1]).all() == (name == "")
            record(group, output=out, weights=net.last_weights)
            renamed = {"q": "W_q", "k": "W_k", "v": "W_v", "out_proj": "W_o"} if name else {}
            record_backward(group, net, out, renamed, X=scope["X"])


# ---- 002, a narrower input ----------------------------------------------------------------------


class MultiHeadSelfAttention(nn.Module):
    """The lines of 002 as a class. A number marks a line of the document; "matmil", "attt" and a missing self
    are corrected. The document computes k and v "exactly as q"."""

    def __init__(self, dim_in, d_model, num_heads):
        super().__init__()
        self.dim_in, self.d_model, self.num_heads = dim_in, d_model, num_heads
        self.linear_q = nn.Linear(dim_in, d_model)  # 4
        self.linear_k = nn.Linear(dim_in, d_model)
        self.linear_v = nn.Linear(dim_in, d_model)
        self.scale = 1 / math.sqrt(d_model // num_heads)  # 5
        self.fc = nn.Linear(d_model, d_model)  # 8

    def forward(self, x):
        batch, n, dim_in = x.shape  # 2
        assert dim_in == self.dim_in  # 2
        nh = self.num_heads  # 3
        dk = self.d_model // nh  # 3
        q = self.linear_q(x).reshape(batch, n, nh, dk).transpose(1, 2)  # 4
        k = self.linear_k(x).reshape(batch, n, nh, dk).transpose(1, 2)
        v = self.linear_v(x).reshape(batch, n, nh, dk).transpose(1, 2)
        dist = torch.matmul(q, k.transpose(2, 3)) * self.scale  # 5
        self.weights = dist = torch.softmax(dist, dim=-1)  # 6
        att = torch.matmul(dist, v)  # 7
        att = att.transpose(1, 2).reshape(batch, n, self.d_model)  # 7
        return self.fc(att)  # 8


def seed_002():
    for seed in 0, 2, 2022:
        torch.manual_seed(seed)
        net = MultiHeadSelfAttention(dim_in=2, d_model=6, num_heads=3)
        x = torch.rand(1, 4, 2).requires_grad_()
        output, group = net(x), f"002.{seed}"
        record(group, output=output, weights=net.weights)
        renamed = {"linear_q": "W_q", "linear_k": "W_k", "linear_v": "W_v", "fc": "W_o"}
        record_backward(group, net, output, renamed, x=x)


# ---- 003, multi-head attention in three dialects -----------------------------------------------


class DotProductAttention(nn.Module):
    """d2l.DotProductAttention, which 003 uses but does not contain: the class of 004's cell 25, and a
    window_mask, (windows, queries, keys), that is added to the scores of its window before the softmax."""

    def __init__(self, dropout, num_heads=1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.num_heads = num_heads
        self.masked_softmax = notebook_definitions()["masked_softmax"]

    def forward(self, queries, keys, values, valid_lens=None, window_mask=None, training=None):
        if training is not None:  # as TensorFlow does
            self.train(training)
        d = queries.shape[-1]
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(d)
        if window_mask is not None:
            windows, (n, q, k) = window_mask.shape[0], scores.shape
            by_window = (n // (windows * self.num_heads), windows, self.num_heads, q, k)
            scores = (scores.reshape(by_window) + window_mask[None, :, None]).reshape(n, q, k)
        self.attention_weights = self.masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)


def check_shape(x, shape):
    assert x.shape == shape


def add_to_class(cls):
    return lambda function: setattr(cls, function.__name__, function)


class Module(nn.Module):
    def forward(self, *inputs, **named):
        return self.call(*inputs, **named)  # a TensorFlow module's forward


D2L = types.SimpleNamespace(
    Module=Module, DotProductAttention=DotProductAttention, add_to_class=add_to_class,
    tensor=torch.tensor, ones=torch.ones, check_shape=check_shape)

# Functions of TensorFlow and a layer of MXNet, made of PyTorch's functions. Layers of all three libraries may
# take the size of their inputs from the first input. TensorFlow and MXNet draw other initial weights; here
# PyTorch draws all weights.
TF = types.SimpleNamespace(
    keras=types.SimpleNamespace(layers=types.SimpleNamespace(
        Dense=lambda units, use_bias: nn.LazyLinear(units, bias=use_bias))),
    repeat=lambda x, repeats, axis: torch.repeat_interleave(x, repeats, dim=axis),
    reshape=lambda x, shape: torch.reshape(x, shape),
    transpose=lambda x, perm: torch.permute(x, perm),
    ones=torch.ones)
GLUON = types.SimpleNamespace(
    Dense=lambda units, use_bias, flatten: nn.LazyLinear(units, bias=use_bias))


def dialect(name):
    """The blocks of one tab of 003 without imports, and the variables that they use. MXNet's transpose and
    repeat become permute and repeat_interleave; initialize is left out, since LazyLinear draws its weights at
    the first call."""
    blocks = [b.split("\n", 1) for b in fenced(document("003"), "```{.python .input}")]
    code = [body for tabs, body in blocks
            if tabs.startswith("%%tab") and name in tabs and "import" not in body]
    if name == "mxnet":
        swaps = {".transpose(0": ".permute(0", "attention.initialize()": "",
                 ".repeat(self.num_heads, axis=0)": ".repeat_interleave(self.num_heads, dim=0)"}
        for old, new in swaps.items():
            assert any(old in block for block in code)
            code = [block.replace(old, new) for block in code]
    return code, {"d2l": D2L, "tf": TF, "nn": GLUON if name == "mxnet" else nn, "torch": torch,
                  "watch": watch}


def made_by(name):
    """The module class of a dialect."""
    code, scope = dialect(name)
    for block in code[:2]:
        execute(block, scope)
    return scope["MultiHeadAttention"]


def example(name, seed):
    """The document's own example without its last line. Dropout is off in MXNet outside autograd.record(), and
    in TensorFlow with training=False; in PyTorch it is on."""
    code, scope = dialect(name)
    torch.manual_seed(seed)
    for block in code[:3]:
        execute(block, scope)
    attention = watch(scope["attention"])
    if name == "mxnet":
        attention.eval()
    execute(code[3], scope, leaves=("X", "Y"))
    group = f"003{name}.{seed}"
    record(group, output=attention.last_output, weights=attention.last_weights)
    record_backward(group, attention, attention.last_output, X=scope["X"], Y=scope["Y"])


def swin_mask(windows, size):
    """The mask of Swin after its shift: -100 for pairs of tokens that were not in one window before the shift.
    Here these are the pairs between the two halves of the last window; in the other windows the mask is 0."""
    half = torch.arange(size) >= size // 2
    mask = torch.zeros(windows, size, size)
    mask[-1][half[:, None] != half[None, :]] = -100
    return mask


def windows():
    """Attention with a window_mask, which the example of the document does not use: four windows of two images,
    biases and lengths; queries, keys and values have different widths."""
    for name in "mxnet", "pytorch", "tensorflow":
        torch.manual_seed(3)
        sizes = (5, 7, 3) if name == "tensorflow" else ()
        attention = watch(made_by(name)(*sizes, 12, 3, 0.25, True))
        queries, keys, values = (uniform(8, 4, n).requires_grad_() for n in (7, 5, 3))
        lens = torch.tensor([4, 3, 4, 2, 1, 4, 4, 3])
        output = attention(queries, keys, values, lens, swin_mask(4, 4))
        group = f"003{name}.window"
        record(group, output=output, weights=attention.last_weights)
        record_backward(group, attention, output, queries=queries, keys=keys, values=values)


def seed_003():
    example("pytorch", 0)
    example("pytorch", 3)
    example("mxnet", 1)
    example("tensorflow", 2)
    windows()


# ---- every attention module with every mask ------------------------------------------------------
# The classes of the documents: additive attention of 004, multi-head attention of 004 (sizes given) and of 003
# (lazy). Only their masked_softmax is replaced, by the function below.


class Mask:
    keep = window = None  # keep: bool (B, 1 or H, Q, K)  window: (windows, Q, K)
    causal, heads = False, 1


mask = Mask()  # of this case: the documents' classes pass only the lengths to masked_softmax


def masked_softmax(scores, valid_lens):
    """The masked_softmax of 004, with its -1e6, for every mask of the library. A row without a key gets weights
    of 0, as in the library; the documents give it weights of 1 / K or NaN."""
    n, q, k = scores.shape
    if mask.window is not None:
        windows = mask.window.shape[0]
        by_window = scores.reshape(-1, windows, mask.heads, q, k)
        scores = (by_window + mask.window[None, :, None]).reshape(n, q, k)
    ignored = scores == -math.inf
    if valid_lens is not None:
        ignored |= torch.arange(k) >= valid_lens.reshape(n, -1, 1)
    if mask.keep is not None:
        ignored |= ~mask.keep.expand(n // mask.heads, mask.heads, q, k).reshape(n, q, k)
    if mask.causal:
        ignored |= torch.ones(q, k, dtype=torch.bool).triu(1)
    weights = torch.softmax(scores.masked_fill(ignored, -1e6), dim=-1)
    return weights.masked_fill(ignored.all(-1, keepdim=True), 0)


SCOPE = notebook_definitions()
SCOPE["masked_softmax"] = masked_softmax


def make(c):
    if c["module"] == "dot_product":
        return SCOPE["DotProductAttention"](c["dropout"])
    if c["module"] == "additive":
        return SCOPE["AdditiveAttention"](c["hiddens"], c["dropout"])
    rest = c["hiddens"], c["heads"], c["dropout"], c["bias"]
    if not c["lazy"]:
        return SCOPE["MultiHeadAttention"](c["Dk"], c["Dq"], c["Dv"], *rest)
    module = made_by("pytorch")(*rest)
    module.attention.masked_softmax = masked_softmax
    return module


LETTERS = "none, l lengths (B), q lengths (B, Q), k keep (B, H, Q, K), b keep (B, 1, 1, K), " \
          "p keep (Q, K), w window, i window of -inf and 0, c causal"
MASKS = "none l q k b p w i c lc qk lb lw pi qkwc".split()


def draw_mask(c):
    """Sets the fields of mask and returns the lengths, which are from 0 to K + 1."""
    B, Q, K, H = c["B"], c["Q"], c["K"], c["heads"]
    keep = {"k": (B, H, Q, K), "b": (B, 1, 1, K), "p": (Q, K)}
    lens, mask.keep, mask.window, mask.causal, mask.heads = None, None, None, False, H
    for letter in c["mask"] if c["mask"] != "none" else "":
        if letter in "lq":
            lens = torch.randint(0, K + 2, (B,) if letter == "l" else (B, Q))
        elif letter in keep:
            mask.keep = torch.empty(keep[letter], dtype=torch.bool).bernoulli_(0.6)
        elif letter == "w":
            mask.window = torch.empty(2, Q, K).uniform_(-3, 3)
        elif letter == "i":
            mask.window = torch.zeros(2, Q, K)
            mask.window[torch.empty(2, Q, K, dtype=torch.bool).bernoulli_(0.4)] = -math.inf
        else:
            mask.causal = True
    return lens


def draw_inputs(c):
    """The leaves, and the inputs of the module: three leaves; two leaves, the keys being the values, too; one
    leaf for all three inputs; or transposed views of three leaves."""
    q, k, v = (c["B"], c["Q"], c["Dq"]), (c["B"], c["K"], c["Dk"]), (c["B"], c["K"], c["Dv"])
    shapes = {"qkv": (q, k, v), "qkk": (q, k), "xxx": (q,), "transposed": (q, k, v)}[c["inputs"]]
    if c["inputs"] == "transposed":
        leaves = [uniform(b, d, n).requires_grad_() for b, n, d in shapes]
        return leaves, [x.transpose(1, 2) for x in leaves]
    leaves = [uniform(*shape).requires_grad_() for shape in shapes]
    return leaves, {"qkv": leaves, "qkk": leaves + leaves[1:], "xxx": leaves * 3}[c["inputs"]]


def run(c):
    """[output, weights, gradients of the leaves, gradients of the parameters in the order of state_dict], and
    whether a query had nothing to attend to."""
    torch.manual_seed(c["seed"])
    module = make(c).train(bool(c["training"]))
    leaves, inputs = draw_inputs(c)
    lens = draw_mask(c)
    output = module(*inputs, lens)
    output.backward(uniform(*output.shape))
    weights = getattr(module, "attention", module).attention_weights
    gradients = [x.grad for x in leaves] + [p.grad for p in module.parameters()]
    return [output, weights] + gradients, bool((weights.sum(-1) == 0).any())


SIZES = dict(B=2, Q=3, K=4, Dq=4, Dk=4, Dv=3)
VARIANTS = {  # four of each module; every mask is used with each variant
    "dot_product": [
        dict(inputs="qkv"), dict(inputs="qkk", Q=2, K=5, Dv=4), dict(inputs="xxx", Q=3, K=3, Dv=4),
        dict(inputs="transposed", B=4, Q=2, K=3)],
    "additive": [
        dict(hiddens=3, inputs="qkv", Dq=2), dict(hiddens=4, inputs="qkk", Dv=4, Q=1),
        dict(hiddens=1, inputs="xxx", Q=3, K=3, Dv=4),
        dict(hiddens=2, inputs="transposed", B=4, Q=2)],
    "multi_head": [
        dict(hiddens=6, heads=3, bias=1, inputs="xxx", Q=3, K=3, Dq=2, Dk=2, Dv=2),  # 002's sizes
        dict(hiddens=4, heads=2, lazy=1, inputs="qkk", Dq=3, Dk=5, Dv=5),
        dict(hiddens=4, heads=2, bias=1, inputs="qkv", Q=2, Dq=5, Dk=3, Dv=2),
        dict(hiddens=3, heads=1, lazy=1, bias=1, inputs="transposed", B=4, Q=2, K=3)],
}
ORDER = "module seed training dropout hiddens heads bias lazy B Q K Dq Dk Dv inputs mask".split()


def every_module():
    tensors, metadata, empty_rows = {}, {"order": " ".join(ORDER), "mask": LETTERS}, {}
    kinds = itertools.product(VARIANTS, enumerate(MASKS), range(4))
    for number, (module, (m, letters), v) in enumerate(kinds):
        c = dict(SIZES, hiddens=0, heads=1, bias=0, lazy=0, module=module, mask=letters)
        c.update(VARIANTS[module][v], seed=100 * v + m, training=(m + v) % 2)
        c["dropout"] = 0.5 if c["training"] else 0.1
        metadata[f"{number}"] = " ".join(str(c[key]) for key in ORDER)
        for dtype in NAMES:
            torch.set_default_dtype(dtype)
            results, empty = run(c)
            joined = torch.cat([x.detach().reshape(-1) for x in results])
            tensors[f"{number}.{NAMES[dtype]}"] = joined
            empty_rows[module] = empty_rows.get(module, 0) + empty
    assert all(count > 20 for count in empty_rows.values()), empty_rows
    write("attention.safetensors", tensors, metadata)


for function in seed_000, seed_001, seed_002, seed_003, seed_004:
    in_both_types(function)
write("seeds.safetensors", documents, {})
every_module()
