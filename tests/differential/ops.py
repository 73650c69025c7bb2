"""The ops: each as a function of PyTorch, and a function that draws its inputs. The functions come from the rows of
../suites/library/ops.def, and an op without a function that draws gets inputs like those of its row, so a new op needs
nothing here."""
import logging
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "golden"))
logging.disable(logging.WARNING)  # PyTorch warns that there is no GPU
import numpy as np
import generate
import table
from generate import TYPES, torch, F

F32, F64, I64, BOOL = TYPES
FUNCTIONS = {f.name[3:]: f.call for f in generate.FUNCTIONS if f.name.startswith("ag_")}


class Refused(Exception):
    """This step or program cannot be compared, so another one is drawn."""


# ---- the ops in PyTorch ------------------------------------------------------------------------------


def parts(mask, bits, batch):
    """As parts() of generate.py, but a key whose window is -inf is ignored by keep, and its window is 0."""
    lens, keep, window, bias = generate.parts(mask, bits)
    if window is not None and (window == -math.inf).any():
        finite = (window != -math.inf).repeat(batch // len(window), 1, 1)[:, None]
        keep = finite if keep is None else finite & keep
        window = window.masked_fill(window == -math.inf, 0)
    return lens, keep, window, bias


def attention(x, a, scale=None):
    return generate.attention(*x[:3], *a[:2], *parts(x[3:], a[2], len(x[0])), scale=scale)


def sdpa(x, a, scale=None):
    """Attention by PyTorch's own function, for finite inputs only: the function adds -inf to the score of an
    ignored key, and inf - inf is NaN."""
    q, k, v = [t if t.dim() == 4 else t[:, None] for t in x[:3]]
    batch, heads, queries, keys = *q.shape[:3], k.shape[2]
    lens, keep, window, bias = parts(x[3:], a[2], batch)
    allowed = torch.ones(batch, heads, queries, keys, dtype=BOOL)
    if lens is not None:
        allowed = allowed & generate.keep_before(lens, batch, queries, keys)[:, None]
    if keep is not None:
        allowed = allowed & keep
    if a[1]:
        allowed = allowed.tril()
    mask = torch.zeros(allowed.shape, dtype=q.dtype).masked_fill(~allowed, -math.inf)
    if window is not None:
        mask = mask + window.repeat(batch // len(window), 1, 1)[:, None]
    if bias is not None:
        mask = mask + bias
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask if a[1] or a[2] else None, scale=scale,
                                       enable_gqa=k.shape[1] != heads)
    return y if x[0].dim() == 4 else y[:, 0]


def attention_weights(x, a):
    batch = len(x[0]) if x[0].dim() == 4 else len(x[0]) // a[2]
    return generate.attention_weights(x[0], *a[:3], *parts(x[1:], a[3], batch))


# From its threshold on, PyTorch's softplus returns x: 20 is too early for float64.
FUNCTIONS["softplus"] = lambda x, a: F.softplus(x[0], threshold=40)
# Of equal elements C takes the first; PyTorch's topk takes any.
FUNCTIONS["topk"] = lambda x, a: \
    x[0].sort(dim=int(a[1]), descending=True, stable=True)[int(a[2])].narrow(int(a[1]), 0, int(a[0]))
FUNCTIONS["attention"], FUNCTIONS["attention_weights"] = attention, attention_weights
FUNCTIONS["attention_scaled"] = lambda x, a: attention(x, a, a[3])
FUNCTIONS["sdpa"], FUNCTIONS["sdpa_scaled"] = sdpa, lambda x, a: sdpa(x, a, a[3])
SDPA = {"attention": "sdpa", "attention_scaled": "sdpa_scaled"}
IN_C = {there: here for here, there in SDPA.items()}  # the names of these ops in C

# The condition by which an op chooses a formula or an element: rounding must not change it.
CHOICE = {
    "relu": lambda x, a: x[0] > 0,
    "leaky_relu": lambda x, a: x[0] > 0,
    "abs": lambda x, a: x[0].sign(),
    "clamp_min": lambda x, a: (x[0] - a[0]).sign(),
    "clamp_max": lambda x, a: (x[0] - a[0]).sign(),
    "clamp": lambda x, a: (x[0] - a[0]).sign() + 3 * (x[0] - a[1]).sign(),
    "maximum": lambda x, a: (x[0] - x[1]).sign(),
    "minimum": lambda x, a: (x[0] - x[1]).sign(),
    "max": lambda x, a: x[0] == x[0].max(),
    "max_dim": lambda x, a: x[0].max(int(a[0]))[1],
    "min_dim": lambda x, a: x[0].min(int(a[0]))[1],
    "topk": lambda x, a: FUNCTIONS["topk"](x, [*a[:2], 1]),
    "std_dim": lambda x, a: x[0].std(int(a[0])) == 0,
}

# Ops that copy or choose numbers get no noise, so copies of one number stay equal. Ops that round once get noise
# on the result; all other ops get noise on the inputs, too.
COPIES = set("""detach reshape view contiguous permute transpose unsqueeze squeeze expand slice select flatten split
    cat stack repeat repeat_interleave masked_select index_select gather embedding tril triu where masked_fill
    flip neg relu abs clamp_min clamp_max clamp maximum minimum max max_dim min_dim argmax argmin argmax_dim
    argmax_all topk to isnan eq ne lt le gt ge eq_scalar ne_scalar lt_scalar le_scalar gt_scalar ge_scalar
    logical_not logical_and logical_or""".split())
VIEWS = set("detach reshape view contiguous permute transpose unsqueeze squeeze expand slice select flatten split".split())
ROUNDS = set("add sub mul div square sqrt scale leaky_relu add_scalar dropout".split())


# ---- the inputs of the ops: each returns [inputs], number, number ... of C's call --------------------

DRAW = {}


def broadcasts(a, b):
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b)))


def draws(names):
    def add(draw):
        DRAW.update({name: draw for name in names.split()})
        return draw
    return add


def eighth(p, low=-16, high=16):
    return p.rng.randint(low, high) / 8


def whole_or_eighth(p, x):
    return p.rng.randint(-3, 3) if p.kind(x) == "i" else eighth(p)


TAKES = {**{name: row.types for name, row in table.ELEMENTWISE.items()}, "logical_not": "fib", "detach": "fib",
         "isnan": "fib", "contiguous": "fib", "sum": "fib", "argmax_all": "fi", "max": "fib"}
FORM = {name: (row.inputs, row.scalar) for name, row in table.ELEMENTWISE.items()}
ROWS = {form: " ".join(name for name in FORM if FORM[name] == form) for form in set(FORM.values())}


# A later function replaces an earlier one.
@draws(ROWS[1, False] + " logical_not isnan detach contiguous sum mean")
def unary(p, name):
    return [p.pick(TAKES.get(name, "f"))],


@draws("sqrt log")
def positive(p, name):
    return [p.pick(draw="positive" if p.rng.random() < 0.5 else None)],


@draws("max argmax_all")
def of_some(p, name):
    return [p.pick(TAKES[name], where=lambda shape: math.prod(shape) > 0)],


@draws(ROWS[2, False])
def binary(p, name):
    a = p.pick(TAKES[name])
    pair = [a, p.broadcast(p.dtype_of(a), p.sizes(a))]
    p.rng.shuffle(pair)
    return pair,


@draws("div")
def quotient(p, name):
    a = p.pick()
    b = p.leaf(p.dtype_of(a), p.sizes(a), draw="positive") if p.rng.random() < 0.5 else \
        p.broadcast(p.dtype_of(a), p.sizes(a))
    return [a, b],


@draws("pow")
def power(p, name):
    a = p.pick(draw="positive" if p.rng.random() < 0.8 else None)
    return [a, p.broadcast(p.dtype_of(a), p.sizes(a))],


@draws(ROWS[1, True] + " eq_scalar ne_scalar lt_scalar le_scalar gt_scalar ge_scalar")
def with_number(p, name):
    x = p.pick(TAKES.get(name, "fi"))
    return [x], whole_or_eighth(p, x)


@draws("pow_scalar")
def power_of_number(p, name):
    return [p.pick(draw="positive" if p.rng.random() < 0.5 else None)], p.rng.choice([2, 3, 0.5, -1, 0, 1, 2.5, -2, 4])


@draws("clamp")
def with_bounds(p, name):
    x = p.pick("fi")
    return [x], whole_or_eighth(p, x), whole_or_eighth(p, x)


@draws("to")
def converted(p, name):
    x = p.pick("fib")
    to = [I64, BOOL, p.dtype_of(x), p.dtype] + ([F32, F64] * 2 if p.mixed else [])
    if p.kind(x) == "f" and p.main.values[x].abs().nan_to_num(1e30, 1e30).gt(1e9).any():
        raise Refused  # no integer
    return [x], TYPES.index(p.rng.choice(to))


@draws("where")
def chosen(p, name):
    a = p.pick("fib")
    b = p.broadcast(p.dtype_of(a), p.sizes(a))
    shape = np.broadcast_shapes(p.sizes(a), p.sizes(b))
    return [p.broadcast(BOOL, shape), *p.rng.sample([a, b], 2)],


@draws("masked_fill")
def filled(p, name):
    x = p.pick("fib")
    number = {"f": p.rng.choice([eighth(p), -1e4, -math.inf if p.wild else 0]), "i": p.rng.randint(-3, 3), "b": 1}
    return [x, p.broadcast(BOOL, p.sizes(x))], number[p.kind(x)]


@draws("masked_select")
def selected_by_mask(p, name):
    x = p.pick("fib")
    return [x, p.broadcast(BOOL, p.sizes(x))],


@draws("reshape view")
def reshaped(p, name):
    x = p.pick("fib")
    left, sizes = math.prod(p.sizes(x)), []
    if left == 0:
        sizes = p.rng.sample([0, *p.shape(0, 2)], 1) + p.shape(0, 2)
        sizes = sizes if 0 in sizes else [0, *sizes]
    else:
        while len(sizes) < 4 and (left > 1 or p.rng.random() < 0.3):
            n = left if len(sizes) == 3 else p.rng.choice([n for n in range(1, left + 1) if left % n == 0])
            sizes, left = [*sizes, n], left // n
        p.rng.shuffle(sizes)
        if sizes and p.rng.random() < 0.3:
            sizes[p.rng.randrange(len(sizes))] = -1
    if name == "view":
        try:
            p.main.values[x].view(sizes)
        except RuntimeError:
            raise Refused from None
        if not p.lies_alike(x):
            raise Refused
    return [x], *generate.listed(sizes)


@draws("flatten")
def flattened(p, name):
    x = p.pick("fib")
    start, end = sorted(p.rng.randrange(max(p.dims(x), 1)) for _ in range(2))
    return [x], start, end - (p.dims(x) if p.rng.random() < 0.3 and p.dims(x) else 0)


@draws("permute")
def permuted(p, name):
    x = p.pick("fib")
    n = p.dims(x)
    return [x], n, *(d - n * (p.rng.random() < 0.2) for d in p.rng.sample(range(n), n))


@draws("transpose")
def transposed(p, name):
    x = p.pick("fib", 1)
    return [x], p.dim(x), p.dim(x)


@draws("unsqueeze")
def unsqueezed(p, name):
    x = p.pick("fib", 0, 4)
    return [x], p.dim(x, 1)


@draws("squeeze")
def squeezed(p, name):
    x = p.pick("fib", 1, where=lambda shape: 1 in shape) if p.rng.random() < 0.7 else p.pick("fib", 1)
    ones = [d for d, n in enumerate(p.sizes(x)) if n == 1]
    return [x], p.rng.choice(ones) if ones else p.dim(x)


@draws("expand")
def expanded(p, name):
    x = p.pick("fib", 0, 3)
    sizes = [p.rng.randint(0, 4) if n == 1 else p.rng.choice([n, -1]) for n in p.sizes(x)]
    return [x], *generate.listed([p.rng.randint(1, 3) for _ in range(p.rng.randint(0, 2))] + sizes)


@draws("slice")
def sliced(p, name):
    x = p.pick("fib", 1)
    d = p.dim(x)
    n = p.sizes(x)[d]
    return [x], d, p.rng.randint(-n - 1, n + 1), p.rng.randint(-n - 1, n + 1)


@draws("select")
def selected(p, name):
    x = p.pick("fib", 1, where=lambda shape: max(shape) > 0)
    d = p.rng.choice([d for d, n in enumerate(p.sizes(x)) if n > 0])
    n = p.sizes(x)[d]
    return [x], d, p.rng.randrange(-n, n)


@draws("split")
def split(p, name):
    x = p.pick("fib", 1, where=lambda shape: max(shape) > 0)
    d = p.rng.choice([d for d, n in enumerate(p.sizes(x)) if n > 0])
    n = p.sizes(x)[d]
    size = p.rng.randint(-(-n // 8), n + 1)
    parts = -(-n // size)
    return [x], size, d, p.rng.randrange(parts), parts


@draws("cat")
def joined(p, name):
    x = p.pick("fib", 1)
    d = p.dim(x)
    listed = [x]
    for _ in range(p.rng.randint(0, 2)):
        sizes = p.sizes(x)
        sizes[d] = p.rng.randint(0, 4)
        listed.append(x if p.rng.random() < 0.2 else
                      p.leaf(p.dtype_of(x), [0]) if p.rng.random() < 0.1 else p.like(p.dtype_of(x), sizes))
    p.rng.shuffle(listed)
    return listed, d


@draws("stack")
def stacked(p, name):
    x = p.pick("fib", 0, 3)
    return [x, *(p.like(p.dtype_of(x), p.sizes(x)) for _ in range(p.rng.randint(0, 2)))], p.dim(x, 1)


@draws("repeat")
def tiled(p, name):
    x = p.pick("fib", 0, 3)
    return [x], *generate.listed([p.rng.randint(0, 3) if p.rng.random() < 0.3 else p.rng.randint(1, 3) for _ in
                                  range(p.dims(x) + p.rng.randint(0, 1))])


@draws("repeat_interleave")
def interleaved(p, name):
    x = p.pick("fib", 1)
    return [x], p.rng.randint(0, 3), p.dim(x)


@draws("tril triu")
def triangle(p, name):
    return [p.pick("fib", 2)], p.rng.randint(-3, 3)


def index_below(p, n, shape):
    if n == 0 and math.prod(shape):
        raise Refused
    return p.leaf(I64, shape, low=0, high=max(n, 1))


@draws("index_select")
def by_index(p, name):
    x = p.pick("fib", 0)
    d = p.dim(x)
    n = p.sizes(x)[d] if p.dims(x) else 1
    # A scalar takes one index.
    shape = [] if p.rng.random() < 0.1 else [p.rng.randint(0, 6) if p.dims(x) else 1]
    return [x, index_below(p, n, shape)], d


@draws("gather")
def gathered(p, name):
    x = p.pick("fib", 0)
    d = p.dim(x)
    if not p.dims(x):
        return [x, index_below(p, 1, [])], d
    shape = [p.rng.randint(0, n) if p.rng.random() < 0.5 else n for n in p.sizes(x)]
    shape[d] = p.rng.randint(0, 6)
    return [x, index_below(p, p.sizes(x)[d], shape)], d


@draws("embedding")
def embedded(p, name):
    w = p.pick("f", 2, 2)
    return [w, index_below(p, p.sizes(w)[0], p.shape(0, 2))],


@draws("sum_dims mean_dims")
def over_dims(p, name):
    x = p.pick("fib" if name == "sum_dims" else "f")
    dims = p.rng.sample(range(p.dims(x)), p.rng.randint(0, p.dims(x)))
    return [x], p.rng.randint(0, 1), *generate.listed([d - p.dims(x) * p.rng.randint(0, 1) for d in dims])


@draws("var_dim std_dim logsumexp_dim")
def over_dim(p, name):
    x = p.pick()
    return [x], p.dim(x), p.rng.randint(0, 1)


@draws("max_dim min_dim argmax_dim")
def extreme(p, name):
    x = p.pick("fi" if name == "argmax_dim" else "fib", where=lambda shape: math.prod(shape) > 0)
    return [x], p.dim(x), p.rng.randint(0, 1)


@draws("topk")
def topk(p, name):
    x = p.pick("fi", 1)
    d = p.dim(x)
    return [x], p.rng.randint(0, p.sizes(x)[d]), d, p.rng.randint(0, 1)


@draws("flip")
def flipped(p, name):
    x = p.pick("fib")
    dims = p.rng.sample(range(p.dims(x)), p.rng.randint(0, p.dims(x)))
    return [x], *generate.listed([d - p.dims(x) * p.rng.randint(0, 1) for d in dims])


@draws("argmax argmin")
def position(p, name):
    x = p.pick("fi", where=lambda shape: math.prod(shape) > 0)
    return [x], p.dim(x)


@draws("softmax log_softmax logsumexp cumsum")
def along(p, name):
    x = p.pick("fib" if name == "cumsum" else "f")
    return [x], p.dim(x)


@draws("matmul")
def product(p, name):
    a = p.pick("fi", 1)
    sizes = p.sizes(a)
    batch = [n if p.rng.random() < 0.7 else 1 for n in sizes[:-2]][p.rng.randint(0, 2):]
    b = sizes[-1:] if p.rng.random() < 0.2 else [*batch, sizes[-1], p.rng.randint(0 if p.rng.random() < 0.1 else 1, 7)]
    if p.rng.random() < 0.3 and len(sizes) > 1 and len(b) > 1:
        b[-1] = sizes[-2]
    return [a, p.like(p.dtype_of(a), b)],


@draws("bmm")
def products(p, name):
    a = p.pick("fi", 3, 3)
    n, _, k = p.sizes(a)
    return [a, p.like(p.dtype_of(a), [n, k, p.rng.randint(0 if p.rng.random() < 0.1 else 1, 7)])],


@draws("linear")
def layer(p, name):
    x = p.pick("fi", 1)
    out = p.rng.randint(1, 7)
    w = p.like(p.dtype_of(x), [out, p.sizes(x)[-1]])
    return [x, w, *([p.like(p.dtype_of(x), [out])] if p.rng.random() < 0.6 else [])],


@draws("layer_norm")
def norm(p, name):
    x = p.pick("f", 1)
    sizes = p.sizes(x)[-p.rng.randint(1, p.dims(x)):]
    w, b = [p.like(p.dtype_of(x), sizes, new=0.8) if p.rng.random() < 0.7 else None for _ in range(2)]
    # With one element, x - mean is only a rounding error, and 1 / sqrt(eps) makes the error large.
    eps = p.rng.choice([1e-5, 0.125]) if math.prod(sizes) > 1 else 0.125
    return [x, w, b][: 3 if b is not None else 2 if w is not None else 1], eps, 0


def lengths(p, batch, queries, keys):
    return p.leaf(I64, [batch] if p.rng.random() < 0.5 else [batch, queries], low=0, high=keys + 2)


def mask(p, dtype, batch, heads, queries, keys, odds):
    """The parts of a mask, and their bits."""
    inputs, bits = [], 0
    if p.rng.random() < odds:
        inputs, bits = [lengths(p, batch, queries, keys)], 1
    if p.rng.random() < odds:
        sizes = [n if p.rng.random() < 0.6 else 1 for n in (batch, heads, queries, keys)]
        inputs, bits = [*inputs, p.leaf(BOOL, sizes[p.rng.randint(0, 3):])], bits | 2
    if p.rng.random() < odds and 0 not in (batch, heads, queries, keys):
        windows = p.rng.choice([n for n in range(1, batch + 1) if batch % n == 0])
        inputs, bits = [*inputs, p.leaf(dtype, [windows, queries, keys], grad=False)], bits | 4
    if p.rng.random() < odds:
        sizes = [n if p.rng.random() < 0.6 else 1 for n in (batch, heads, queries, keys)]
        bias = p.like(dtype, sizes[p.rng.randint(0, 3):], new=0.7)
        if not p.finite([bias]):
            raise Refused  # PyTorch's softmax of a row of -inf is NaN
        inputs, bits = [*inputs, bias], bits | 8
    return inputs, bits


@draws("masked_softmax")
def softmax_of_lengths(p, name):
    x = p.pick("f", 3, 3)
    return [x, *([lengths(p, *p.sizes(x))] if p.rng.random() < 0.8 else [])],


@draws("attention_weights")
def weights(p, name):
    x = p.pick("f", 3, 4)
    batch, heads = p.sizes(x)[:2]
    if p.dims(x) == 3:
        heads = p.rng.choice([n for n in range(1, max(batch, 1) + 1) if batch % n == 0])
        batch //= heads
    if heads == 0:
        raise Refused
    inputs, bits = mask(p, p.dtype_of(x), batch, heads, *p.sizes(x)[-2:], 0.4)
    return [x, *inputs], p.rng.choice([0.5, 1, -0.75, 0.3125]), p.rng.randint(0, 1), heads, bits


@draws("attention attention_scaled")
def attended(p, name):
    dims = p.rng.choice([3, 4])
    q = p.pick("f", dims, dims, where=lambda shape: 0 not in shape or p.rng.random() < 0.1)
    *outer, queries, depth = p.sizes(q)
    if depth == 0 and name == "attention":
        raise Refused  # the scale would be 1 / 0
    keys, width = p.rng.choice([queries, p.rng.randint(1, 9)]), p.rng.choice([depth, p.rng.randint(1, 7)])
    shared = outer[:]
    if dims == 4 and outer[1] > 1 and p.rng.random() < 0.4:
        shared[1] = p.rng.choice([n for n in range(1, outer[1]) if outer[1] % n == 0])
    k = p.like(p.dtype_of(q), [*shared, keys, depth])
    v = p.like(p.dtype_of(q), [*shared, keys, width])
    inputs, bits = mask(p, p.dtype_of(q), outer[0], outer[1] if dims == 4 else 1, queries, keys, 0.3)
    if bits & 8 and 0 in p.sizes(q) + p.sizes(v):
        raise Refused  # PyTorch's own function gives the bias no gradient
    dropout = 0.375 if p.rng.random() < 0.15 else 0
    scale = [p.rng.choice([0.25, 1, -0.5])] if name == "attention_scaled" else []
    return [q, k, v, *inputs], dropout, p.rng.randint(0, 1), bits, *scale


@draws("rope")
def turned(p, name):
    x = p.pick("f", 2, 4, where=lambda shape: shape[-1] % 2 == 0)
    shape = p.sizes(x)
    places = [shape[0], shape[-2]] if len(shape) > 2 and p.rng.random() < 0.5 else [shape[-2]]
    return [x, p.leaf(I64, places, low=-3, high=50)], p.rng.choice([10, 10000]), p.rng.randint(0, 1)


@draws("additive_scores")
def additive(p, name):
    q = p.pick("f", 3, 3)
    batch, queries, hidden = p.sizes(q)
    keys = p.rng.randint(0 if p.rng.random() < 0.1 else 1, 7)
    k, w = p.like(p.dtype_of(q), [batch, keys, hidden]), p.like(p.dtype_of(q), [1, hidden])
    return [q, k, w, *([lengths(p, batch, queries, keys)] if p.rng.random() < 0.5 else [])],


@draws("dropout")
def dropped(p, name):
    x = p.pick()
    if not p.lies_alike(x):
        raise Refused
    return [x], p.rng.choice([0.125, 0.5, 0.75])


@draws("mse_loss")
def squares(p, name):
    y = p.pick()
    return [y, p.like(p.dtype_of(y), p.sizes(y))], p.rng.randint(0, 2)


@draws("cross_entropy cross_entropy_smoothed")
def classified(p, name):
    x = p.pick("f", 1)
    sizes = p.sizes(x)
    classes = sizes.pop(0 if len(sizes) == 1 else 1)
    target = index_below(p, classes, sizes)
    ignore = p.rng.choice([-100, 0, 1, 2])
    smoothing = [p.rng.choice([0, 0.125, 0.5, 1])] if name == "cross_entropy_smoothed" else []
    return [x, target], ignore, p.rng.randint(0, 2), *smoothing


# ---- ops that have no function above


def like_a_case(op):
    """A function that draws inputs of the shapes of a case of the op's row, but with other sizes."""
    cases = [generate.parse(case) for case in op.cases.split(";")]
    cases = [case for case in cases if all(generate.INPUT.fullmatch(text) for text in case[1])]

    def draw(p, name):
        numbers, texts = p.rng.choice(cases)
        texts = [generate.INPUT.fullmatch(text).groups() for text in texts]
        shapes = [[int(n) for n in sizes.split(",") if n] for _, sizes, *_ in texts]
        other = {0: 0, 1: 1}  # the size in place of each size of the case

        def agrees(shape):
            sizes = dict(zip(shapes[0], shape))
            return all(sizes[n] == m and (n > 1 or n == m) for n, m in zip(shapes[0], shape))

        first = p.pick(TAKES.get(name, texts[0][0]), len(shapes[0]), len(shapes[0]), where=agrees)
        other |= dict(zip(shapes[0], p.sizes(first)))
        inputs = [first]
        for i, (kind, _, low, high) in enumerate(texts[1:], 1):
            shape = [other.setdefault(n, p.rng.randint(1, 7)) for n in shapes[i]]
            if kind == "f" and not low:
                inputs.append(p.like(p.dtype_of(first), shape))
            elif kind == "f":
                inputs.append(p.leaf(p.dtype_of(first), shape, draw="positive"))
            elif kind == "i":
                low, high = int(low or -3), int(high or 4)
                inputs.append(p.leaf(I64, shape, low=low, high=max(other.get(high, high), low + 1)))
            else:
                inputs.append(p.leaf(BOOL, shape))
        try:
            FUNCTIONS[name]([p.main.values[i] for i in inputs], numbers)
        except (RuntimeError, IndexError):
            raise Refused from None
        return [inputs, *numbers]

    return draw


DRAW |= {op.name: like_a_case(op) for op in table.OPS if op.name not in DRAW}
OPS = sorted(DRAW)
assert set(OPS) == {name for name in FUNCTIONS if name not in IN_C}, set(OPS) ^ set(FUNCTIONS)
