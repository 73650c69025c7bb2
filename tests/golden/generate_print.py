#!/usr/bin/env python3
"""Writes the golden texts of tests/suites/library/test_print.c: tensors, and the text that PyTorch prints for each.

    python3 tests/golden/generate_print.py > tests/golden/print.txt

Needs PyTorch 2.15 (reference.py says how to install PyTorch). The defaults made the committed file. For fuzzing,
`--seed N --cases N --large` makes other files, and `build/tests/test_print FILE` checks them.

Each case is one header line, one line of elements, and the text:

    dtype default_dtype requires_grad is_parameter grad_fn|- ndim sizes strides offset count bytes
    the count elements of the storage, as hexadecimal bit patterns
    the bytes that print(x) wrote, its newline included

x is the view (sizes, strides, offset) of the storage.
"""
import argparse
import io
import random
import struct

from reference import torch
from torch import nn

FLOATS = [torch.float32, torch.float64]
ODD = [0.0, -0.0, float("nan"), float("inf"), -float("inf")]
# Numbers at which the format changes, and numbers halfway between two decimals.
EDGES = [1e-4, 9.9999e-5, 1.0001e-4, 1e8, 100000001.0, 99999999.5, 1000.0, 1000.5, 1001.0, 1.0,
         0.5, 1.5, 2.5, 0.00005, 0.00015, 0.12345, 9.99995, 0.99995, 99999.99995, 5e-324, 1e-45,
         1.1754944e-38, 2.2250738585072014e-308, 3.4028234663852886e38, 1.7976931348623157e308,
         9.99995e-5, 9.99995e99, 16777217.0, 123456.0, 0.0001220703125, 0.03125]


def float_source(rng, dtype):
    """A function that draws one float from a family chosen at random."""
    smallest, largest = (-45, 38) if dtype == torch.float32 else (-323, 308)
    scale = 10.0 ** rng.uniform(-6, 9)
    low, high = sorted(rng.uniform(smallest, largest) for _ in range(2))
    bits = ("I", "f", 32) if dtype == torch.float32 else ("Q", "d", 64)
    families = [
        lambda: rng.gauss(0, 1),
        lambda: rng.random(),
        lambda: rng.gauss(0, 1) * scale,
        lambda: float(rng.randint(-9, 9)),
        lambda: float(rng.randint(0, 999)),
        lambda: float(rng.randint(-10**8, 10**8)),
        lambda: float(rng.randint(-10**10, 10**10)),
        lambda: float(rng.randint(1, 20)) * rng.choice([1, 100, 1000]),
        lambda: rng.randint(-40, 40) / 32,
        lambda: rng.choice(EDGES) * rng.choice([1, 1, -1]),
        lambda: 10.0 ** rng.uniform(-4.2, 0),
        lambda: 10.0 ** rng.uniform(low, high) * rng.choice([1, -1]),
        lambda: rng.choice([1, -1]) * rng.random() * 10.0 ** smallest * 1000,
        lambda: struct.unpack(bits[1], struct.pack(bits[0], rng.getrandbits(bits[2])))[0],
        lambda: 0.0,
        lambda: rng.choice(ODD),
    ]
    family = rng.choice(families)
    odds = rng.choice([0, 0, 0, 0.1, 0.5])
    kinds = rng.sample(ODD, rng.randint(1, len(ODD)))
    return lambda: rng.choice(kinds) if rng.random() < odds else family()


def int_source(rng):
    bound = rng.choice([9, 99, 10**rng.randint(3, 17), 2**63 - 1])
    low = rng.choice([0, -bound, -bound - 1])
    return lambda: rng.randint(low, bound)


def draw_storage(rng, dtype, count):
    if dtype == torch.bool:
        odds = rng.choice([0, 0.1, 0.5, 1])
        return torch.tensor([rng.random() < odds for _ in range(count)], dtype=dtype)
    source = int_source(rng) if dtype == torch.int64 else float_source(rng, dtype)
    return torch.tensor([source() for _ in range(count)], dtype=dtype)


def draw_shape(rng, most):
    """Sizes of 0 to 8 dimensions with at most `most` elements."""
    kind = rng.random()
    if kind < 0.06: return []
    if kind < 0.2: return [rng.choice([1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 40, rng.randint(0, most)])]
    while True:
        widest = rng.choice([2, 3, 7, 8, 12, 40])
        smallest = 0 if rng.random() < 0.1 else 1
        sizes = [rng.randint(smallest, widest) for _ in range(rng.choice([2, 2, 2, 3, 3, 4, 5, 8]))]
        if torch.Size(sizes).numel() <= most: return sizes


def draw_large_shape(rng):
    """Sizes with more than 1000 elements (sometimes exactly 1000: the summary begins above)."""
    while True:
        sizes = rng.choice([[1000], [1001], [10, 10, 10], [7, 143], [143, 7], [6, 167], [2, 3, 167]])
        if rng.random() < 0.6:
            sizes = [rng.choice([1, 2, 6, 7, 8, 30, 501]) for _ in range(rng.choice([1, 2, 3, 4]))]
        if 1000 <= torch.Size(sizes).numel() <= 10**6: return sizes


def overlapping(rng, dtype, sizes, count):
    """A view of a storage of about `count` elements; some elements of the view are the same number in memory."""
    strides = [rng.choice([0, 1, 1, 2, 3, 5, 7]) for _ in sizes]
    reach = sum((n - 1) * s for n, s in zip(sizes, strides))
    while reach >= count and any(strides):
        widest = max(range(len(sizes)), key=lambda d: (sizes[d] - 1) * strides[d])
        reach -= (sizes[widest] - 1)
        strides[widest] -= 1
    offset = rng.randint(0, 4)
    storage = draw_storage(rng, dtype, max(0, reach) + 1 + offset + rng.randint(0, 3))
    return storage, lambda base: base.as_strided(sizes, strides, offset)


def natural_view(rng, dtype, sizes):
    """A contiguous tensor of these sizes, or a view of such a tensor, as programs make views."""
    storage = draw_storage(rng, dtype, torch.Size(sizes).numel())
    n = len(sizes)
    d, e = (rng.randrange(n), rng.randrange(n)) if n else (0, 0)
    order = rng.sample(range(n), n)
    step = rng.randint(1, 3)
    first = rng.randint(0, 2)
    size = sizes[d] if n else 0
    views = [lambda x: x, lambda x: x]
    if n: views += [lambda x: x.transpose(d, e), lambda x: x.permute(order),
                    lambda x: x[(slice(None),) * d + (slice(first, None, step),)],
                    lambda x: x.unsqueeze(d).expand(*sizes[:d], 3, *sizes[d:]) if n < 8 else x]
    if size: views.append(lambda x: x.select(d, size - 1))
    view = rng.choice(views)
    return storage, lambda base: view(base.view(sizes))


def with_grad_fn(rng, x):
    """x as the result of an op; the names of the ops have every length."""
    if rng.random() < 0.5:
        forward = staticmethod(lambda ctx, x: x.view_as(x))
        name = "Op" + "x" * rng.randint(0, 60)
        return type(name, (torch.autograd.Function,), {"forward": forward}).apply(x)
    return rng.choice([lambda x: x.clone(), lambda x: x * 1, lambda x: torch.relu(x),
                       lambda x: torch.softmax(x, -1), lambda x: x.masked_fill(x > 1, 0.0),
                       lambda x: x.reshape(-1),
                       lambda x: x.unsqueeze(0) if x.dim() < 8 else x.clone()])(x)


def flagged(rng, storage, view):
    """The view of the storage; sometimes a leaf that requires grad, a parameter, or a result."""
    kind = rng.random()
    if not storage.is_floating_point() or kind < 0.5: return view(storage)
    if kind < 0.65: return view(storage).detach().requires_grad_()
    if kind < 0.8: return nn.Parameter(view(storage), requires_grad=rng.random() < 0.8)
    x = view(storage.requires_grad_())
    return x if kind < 0.85 and x.grad_fn else with_grad_fn(rng, x)


def draw_case(rng, large):
    dtype = rng.choice([torch.float32] * 5 + [torch.float64] * 3 + [torch.int64] * 2 + [torch.bool])
    torch.set_default_dtype(rng.choice(FLOATS + [torch.float32]))
    if rng.random() < 0.12:
        sizes = draw_large_shape(rng)
        if large and rng.random() < 0.3: return flagged(rng, *natural_view(rng, dtype, sizes))
        return flagged(rng, *overlapping(rng, dtype, sizes, 100))
    sizes = draw_shape(rng, 300 if large else 60)
    if rng.random() < 0.2 and 0 not in sizes:
        return flagged(rng, *overlapping(rng, dtype, sizes, 40))
    return flagged(rng, *natural_view(rng, dtype, sizes))


def result(x):
    return x.requires_grad_().view_as(x)  # grad_fn=<ViewBackward0>


def edge_cases():
    """Where one more or one less changes the text: the notations, the summary, a line of 80 columns."""
    torch.set_default_dtype(torch.float32)
    for numbers in [1.0, 1000.0], [1.0, 1001.0], [1e8], [100000008.0], [1e-4], [0.0101, 10.1], [0.5, 1000]:
        yield torch.tensor(numbers)
    yield torch.tensor([1e-4], dtype=torch.float64)
    for sizes in [1000], [1001], [7, 143], [10, 6], [6, 7]: yield torch.ones(1).expand(sizes)
    hidden = torch.ones(20, 60)
    hidden[3:17, 3:57] = 0.5
    yield result(hidden)  # what is not shown does not count
    for n in range(1, 9):  # where a suffix begins
        for digits in range(8): yield result(torch.full([n], 10.0 ** digits))


def bits(x):
    """The elements of a one-dimensional tensor as hexadecimal bit patterns."""
    kinds = {torch.float32: ("f", "I"), torch.float64: ("d", "Q"), torch.int64: ("q", "Q")}
    value, word = kinds.get(x.dtype, ("?", "B"))
    return " ".join("%x" % struct.unpack(word, struct.pack(value, v)) for v in x.tolist())


def write_case(x):
    text = io.StringIO()
    print(x, file=text)
    grad_fn = type(x.grad_fn).__name__ if x.grad_fn else "-"
    with torch.no_grad():
        empty = x.numel() == 0
        offset = 0 if empty else x.storage_offset()
        count = 0 if empty else offset + 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
        storage = x.detach().as_strided([count], [1], 0)
    fields = [str(x.dtype)[6:], str(torch.get_default_dtype())[6:], int(x.requires_grad),
              int(isinstance(x, nn.Parameter)), grad_fn, x.dim(), *x.shape, *x.stride(), offset,
              count, len(text.getvalue())]
    print(*fields)
    print(bits(storage))
    print(text.getvalue(), end="")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--cases", type=int, default=400)
    options.add_argument("--large", action="store_true", help="bigger tensors, for fuzzing")
    options = options.parse_args()
    rng = random.Random(options.seed)
    for _ in range(options.cases):
        write_case(draw_case(rng, options.large))
    for x in edge_cases(): write_case(x)


main()
