#!/usr/bin/env python3
"""The library and PyTorch run the same random programs of ops, and must agree; ../check-pytorch calls this.

    check.py RUNNER [--programs N] [--seed N] [--only I] [--jobs N]

RUNNER is runner.c; its first comment describes a program as text. programs.py draws programs, and ops.py draws
the inputs of each op.

The error that a tensor may have. PyTorch runs a program four times: in the program's own types; in float64 ("exact");
and twice in float64 with noise, a few roundings of the inputs and the result of each op. In one of these runs the noise
is drawn for each element, in the other for each tensor. The noise shows the effect of roundings: a tensor may have an
error of a few times this effect, in float32 also of PyTorch's own roundings. The allowed error is at most LIMIT times
the largest element (or times 1, if all are smaller), 1e-9 in float64, and in most tensors it is much smaller. A program
that needs a larger error is drawn again. So is a program in which a rounding changes a choice, for example the index of
a maximum, or the sign of an input of relu. (Copies of one number stay equal, so they are allowed.) Integers, bools,
infinities and NaN must be equal.

If the library must differ from PyTorch, either EXPLAINED below has the reason, or the program is drawn again:

- Results of ops are row-major, except views. Results of PyTorch's elementwise ops keep the order of the dimensions
  in the memory of their inputs, so dropout of such a result draws in another order, and view refuses other shapes.
- A query with nothing to attend to has a result of 0 and gradients of 0, and an ignored key has no effect, for any
  score. PyTorch's softmax of a row of -inf is NaN; ../golden/generate.py puts zeros in its place.
"""
import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np

from programs import Leaf, NAMES, Program, Step, array, generate, kinds

BATCH = 100  # programs in one call of the runner


def read_safetensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    types = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "BOOL": np.bool_}
    tensors = {}
    for name, x in header.items():
        if name != "__metadata__":
            start, end = x["data_offsets"]
            elements = np.frombuffer(data[8 + size + start:8 + size + end], types[x["dtype"]])
            tensors[name] = elements.reshape(x["shape"])
    return tensors, header.get("__metadata__", {})


def steps(p, *names):
    return [node for node in p.nodes if isinstance(node, Step) and node.name in names]


# Reasons why the library differs from PyTorch, only with infinities and NaN: a sentence, and a function that says
# whether the reason is possible in a program. In the first tensor that differs, all elements that differ must be NaN
# in the library or in PyTorch.
EXPLAINED = [
    ("dropout selects, in its backward too; PyTorch multiplies NaN or an infinity that is dropped by 0: NaN",
     lambda p: steps(p, "dropout")),
    ("attention may leave out keys and values of weight 0, ignored or dropped; PyTorch multiplies an infinite or NaN "
     "value, or gradient, by that 0: NaN. And a query whose result is NaN gets a gradient of NaN",
     lambda p: [s for s in steps(p, "attention", "attention_scaled", "sdpa", "sdpa_scaled") if any(s.numbers[:3])]),
    ("cross_entropy's gradient is 0 for an ignored target, whatever the logits are; PyTorch's is 0 times NaN",
     lambda p: steps(p, "cross_entropy", "cross_entropy_smoothed")),
    ("layer_norm's gradient has infinite terms of both signs, whose sum is NaN or not by their order",
     lambda p: steps(p, "layer_norm")),
]


def mismatch(p, ours, arrays):
    """None if ours agrees with the runs' arrays of the same tensor. Else a sentence, and whether all elements
    that differ are NaN in the library or in PyTorch."""
    main, exact = arrays[0], arrays[-3] if len(arrays) > 1 else arrays[0]
    if ours is None:
        return "the library has none", False
    if ours.dtype != main.dtype or ours.shape != main.shape:
        return f"it is {ours.dtype} {ours.shape}, and {main.dtype} {main.shape} in PyTorch", False
    if main.dtype.kind != "f":
        wrong, allowed = ours != main, 0
    else:
        allowed = p.allowed(arrays)
        with np.errstate(invalid="ignore"):
            wrong = (kinds(ours) != kinds(main)) | (np.isfinite(main) & ~(np.abs(ours - exact) <= allowed))
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (f"element {list(at)} is {ours[at]}, and {main[at]} in PyTorch ({exact[at]} exactly, {allowed:.3g} allowed)",
            main.dtype.kind == "f" and bool((np.isnan(main) | np.isnan(ours))[wrong].all()))


def mismatches(p, tensors, sentences):
    """(node, a sentence, are all differences NaN on one side) for each tensor that differs from PyTorch's."""
    n = str(p.index)
    if n in sentences:
        yield None, f"the library says: {sentences[n]}", False
        return
    for i, node in enumerate(p.nodes):
        if isinstance(node, Step):
            why = mismatch(p, tensors.get(f"{n}.{i}"), [array(run.values[i]) for run in p.runs])
            if why:
                yield i, f"x{i}: {why[0]}", why[1]
    for i, node in enumerate(p.nodes):
        grad = tensors.get(f"{n}.grad.{i}")
        if i in p.grads:
            why = mismatch(p, grad, p.grads[i])
            if why:
                yield i, f"the gradient of x{i}: {why[0]}", why[1]
        elif grad is not None and not p.aliases(i):
            yield i, f"x{i} has a gradient, and none in PyTorch", False


def run_batch(runner, programs):
    tensors = {f"{p.index}.{i}": node.whole for p in programs for i, node in enumerate(p.nodes)
               if isinstance(node, Leaf)}
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / name for name in ("in.safetensors", "out.safetensors")]
        generate.write_safetensors(paths[0], tensors, {str(p.index): p.text() for p in programs})
        done = subprocess.run([runner, *paths], stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"{runner} failed on programs {programs[0].index} to {programs[-1].index}: {done.stderr}")
        return read_safetensors(paths[1])


def explanation(p, wrong):
    """The first reason of EXPLAINED that is possible for the first mismatch, or None."""
    if not p.wild or not wrong[0][2]:
        return None
    return next((sentence for sentence, is_about in EXPLAINED if is_about(p)), None)


def check_batch(job):
    runner, seed, indices = job
    warnings.simplefilter("ignore")
    count, explained, reports = collections.Counter(), collections.Counter(), []
    programs = [Program(seed, i) for i in indices]
    tensors, sentences = run_batch(runner, programs)
    for p in programs:
        count["programs"] += 1
        count["drawn again"] += p.again
        count["gradients"] += len(p.grads)
        count.update("op " + node.name for node in p.nodes if isinstance(node, Step))
        wrong = list(mismatches(p, tensors, sentences))
        if wrong and explanation(p, wrong):
            explained[explanation(p, wrong)] += 1
        elif wrong:
            lines = "\n".join("  " + text for _, text, _ in wrong[:6])
            reports.append(f"program {p.index} of seed {seed} ({NAMES[p.dtype]}):\n{lines}\n{p.describe()}")
    return count, explained, reports


def main():
    parser = argparse.ArgumentParser(prog="tests/checks/pytorch")
    parser.add_argument("runner")
    parser.add_argument("--programs", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this program alone, printed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    a = parser.parse_args()
    wanted = range(a.programs) if a.only is None else [a.only]
    jobs = [(a.runner, a.seed, wanted[i:i + BATCH]) for i in range(0, len(wanted), BATCH)]
    count, explained, failed = collections.Counter(), collections.Counter(), 0
    with multiprocessing.get_context("fork").Pool(min(a.jobs, len(jobs))) as pool:
        for counted, reasons, reports in pool.imap_unordered(check_batch, jobs):
            count += counted
            explained += reasons
            failed += len(reports)
            for report in reports:
                print(report, flush=True)
    if a.only is not None:
        print(Program(a.seed, a.only).describe())
    ops = {name: n for name, n in count.items() if name.startswith("op ")}
    print(f"seed {a.seed}: {count['programs']} programs, {sum(ops.values())} results of {len(ops)} ops, "
          f"{count['gradients']} gradients; {count['drawn again']} programs drawn again")
    for sentence, n in explained.items():
        print(f"explained, {n} programs: {sentence}")
    print(f"{failed} programs differ and are not explained" if failed else "all else is PyTorch's")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
