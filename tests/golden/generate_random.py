#!/usr/bin/env python3
"""Writes random_<seed>.bin for tests/suites/library/test_random.c: numbers that PyTorch's CPU generator draws.

Run this with PyTorch 2.15 (reference.py says how to install PyTorch, and how its bits are kept equal on all
machines). The files are written beside this one, with the same bytes every time. PyTorch's
digits depend on the instruction set in two places, and these files have the digits of AVX2: float32 normals of
16 elements and more differ by up to 2.4e-6, and u (high - low) + low is rounded once.

A file is a list of records, all little-endian:

    name    16 bytes, padded with zeros
    type     8 bytes, padded with zeros: f4, f8, i8 or b1, NumPy's short names
    count    int64, the number of elements
    elements

Each record begins with a new manual_seed. Each call draws a fixed number of elements, and calls are made
until 1000 elements are drawn: PyTorch draws normals in two ways, and the number of elements of the call
decides which.
"""
import pathlib
import struct

from reference import torch

SEEDS = [0, 42, 517109245]
DRAWS = 1000
TYPES = {torch.float32: "f4", torch.float64: "f8", torch.int64: "i8", torch.bool: "b1"}
F32, F64 = torch.float32, torch.float64


def dropout(n, p):
    """The mask that dropout drew: true for the elements that it kept."""
    return torch.nn.functional.dropout(torch.ones(n), p) != 0


# shapes and strides: dropout draws in the order of memory
VIEWS = [((2, 3, 4), (1, 2, 6)), ((3, 4), (1, 8)), ((4, 3, 5), (0, 1, 3)), ((2, 1, 3, 2), (3, 7, 1, 6)),
         ((2, 4, 2), (2, 2, 1))]


def dropout_views(n):
    """The masks of these views, row-major and one after the other: 124 elements in all."""
    views = [torch.ones(100).as_strided(*view) for view in VIEWS]
    masks = torch.cat([torch.nn.functional.dropout(x, 0.5).reshape(-1) != 0 for x in views])
    assert masks.numel() == n
    return masks


def multinomial(rows, categories, replacement=False):
    """A drawing of n indices from weights (rows, categories), some of them 0; by columns in memory for n = 20."""
    def draw(n):
        k = (torch.arange(rows * categories) * 7 % 11).to(torch.get_default_dtype())
        weights = (k / (k + 3)).view(categories, rows).t()
        weights = weights if n == 20 else weights.contiguous()
        return torch.multinomial(weights, n // rows, replacement).flatten()
    return draw


# name: default type, elements per call, draw
RECORDS = {
    "rand": (F32, DRAWS, torch.rand),
    "randn 15": (F32, 15, torch.randn),
    "randn 16": (F32, 16, torch.randn),
    "randn 37": (F32, 37, torch.randn),
    "normal 15": (F32, 15, lambda n: torch.normal(3.5, 0.25, (n,))),
    "normal 37": (F32, 37, lambda n: torch.normal(3.5, 0.25, (n,))),
    "randint": (F32, DRAWS, lambda n: torch.randint(-7, 1000, (n,))),
    "randint 2^28-1": (F32, DRAWS, lambda n: torch.randint(-7, 2**28 - 8, (n,))),
    "randint 2^28": (F32, DRAWS, lambda n: torch.randint(-7, 2**28 - 7, (n,))),
    "randint 2^32": (F32, DRAWS, lambda n: torch.randint(0, 2**32, (n,))),
    "randint wide": (F32, DRAWS, lambda n: torch.randint(-(2**63), 2**63 - 1, (n,))),
    "randperm": (F32, DRAWS, torch.randperm),
    "dropout .1": (F32, DRAWS, lambda n: dropout(n, 0.1)),
    "dropout .5": (F32, 10, lambda n: dropout(n, 0.5)),
    "dropout views": (F32, 124, dropout_views),
    "multinomial 1": (F32, 2, multinomial(2, 30)),
    "multinomial": (F32, 20, multinomial(4, 9)),
    "multinomial f64": (F64, 50, multinomial(1, 70)),
    "multinomial +": (F32, 40, multinomial(2, 5000, True)),
    "multinomial+ f8": (F64, 40, multinomial(2, 9, True)),
    "uniform": (F32, DRAWS, lambda n: torch.empty(n).uniform_(-0.7, 0.4)),
    "rand f64": (F64, DRAWS, torch.rand),
    "uniform f64": (F64, DRAWS, lambda n: torch.empty(n).uniform_(-0.7, 0.4)),
    "randn 15 f64": (F64, 15, torch.randn),
    "randn 37 f64": (F64, 37, torch.randn),
    "normal 16 f64": (F64, 16, lambda n: torch.normal(3.5, 0.25, (n,))),
}


def draw(seed, dtype, per_call, one_call):
    torch.set_default_dtype(dtype)
    torch.manual_seed(seed)
    return torch.cat([one_call(per_call) for _ in range(-(-DRAWS // per_call))])


def mixed_draws(seed):
    """Draws of every kind after one seed, so that each kind begins with the state that the last one left."""
    torch.manual_seed(seed)
    parts = []
    for dtype in (F32, F64, F32):
        torch.set_default_dtype(dtype)
        parts += [
            torch.rand(3),
            torch.randn(5),
            torch.randn(16),
            torch.randint(0, 10, (3,)),
            torch.randn(2),
            dropout(4, 0.3),
            torch.randperm(7),
            torch.normal(1.0, 2.0, (20,)),
            torch.randn(1),
            torch.rand(0),
            torch.empty(2).uniform_(2, 5),
        ]
    return torch.cat([part.to(F64) for part in parts])


def write(file, name, x):
    file.write(struct.pack("<16s8sq", name.encode(), TYPES[x.dtype].encode(), x.numel()))
    file.write(x.numpy().astype("<" + TYPES[x.dtype] if x.dtype != torch.bool else "?").tobytes())


def main():
    for seed in SEEDS:
        path = pathlib.Path(__file__).parent / f"random_{seed}.bin"
        with open(path, "wb") as file:
            for name, record in RECORDS.items():
                write(file, name, draw(seed, *record))
            write(file, "mixed", mixed_draws(seed))


main()
