"""A random program, and its results and gradients in PyTorch."""
import collections
import math
import random
import re

import numpy as np

from ops import BOOL, CHOICE, COPIES, DRAW, F32, F64, FUNCTIONS, I64, IN_C, OPS, ROUNDS, Refused, SDPA, TYPES, VIEWS
from ops import broadcasts, generate, torch

NAMES = {F32: "float32", F64: "float64", I64: "int64", BOOL: "bool"}
ROUNDING = {F32: 2.0**-24, F64: 2.0**-53}
NOISE = {F32: 16, F64: 256}  # roundings: a plain sum of hundreds of terms may have such an error
LIMIT = {F32: 1e-3, F64: 1e-9}


class Leaf:
    """A view of bytes."""

    def __init__(self, whole, shape, strides, offset, grad):
        self.whole, self.shape, self.strides, self.offset, self.grad = whole, shape, strides, offset, grad

    def tensor(self, dtype):
        x = torch.as_strided(self.whole.to(dtype).clone(), self.shape, self.strides, self.offset)
        return x.requires_grad_(self.grad)

    def text(self):
        return " ".join(map(str, ["leaf", int(self.grad), len(self.shape), *self.shape, *self.strides, self.offset]))

    def describe(self):
        x = torch.as_strided(self.whole, self.shape, self.strides, self.offset)
        grad = ", requires a gradient" if self.grad else ""
        values = re.sub(r"(\.\d{4})\d+", r"\1", str(x.tolist()))
        return f"{NAMES[x.dtype]} {tuple(self.shape)}, strides {self.strides}{grad}: " + \
            (values if len(values) < 100 else values[:96] + " ...")


class Step:
    def __init__(self, name, inputs, numbers, seed):
        self.name, self.inputs, self.numbers, self.seed = name, inputs, numbers, seed

    def text(self):
        inputs = " ".join("-" if i is None else str(i) for i in self.inputs)
        numbers = " ".join(map(generate.text_of, self.numbers))
        return f"op {IN_C.get(self.name, self.name)} {self.seed} {inputs} : {numbers}"

    def describe(self):
        inputs = ["NULL" if i is None else f"x{i}" for i in self.inputs]
        return f"{self.name}({', '.join([*inputs, *map(generate.text_of, self.numbers)])})"


class Run:
    """A run of a program in PyTorch: in the program's own types, or in float64 with or without noise."""

    def __init__(self, wide, noise, seed, alike=False):
        self.wide, self.noise, self.alike, self.values = wide, noise, alike, []
        self.generator = torch.Generator().manual_seed(seed)

    def noisy(self, x):
        if not self.noise or not x.is_floating_point():
            return x
        sign = torch.randint(0, 2, [] if self.alike else x.shape, generator=self.generator) * 2 - 1
        return x * (1 + self.noise * sign.to(x.dtype))

    def type(self, dtype):
        return F64 if self.wide and dtype == F32 else dtype

    def leaf(self, leaf):
        self.values.append(leaf.tensor(self.type(leaf.whole.dtype)))

    def inputs(self, step):
        return [None if i is None else self.values[i] for i in step.inputs]

    def value(self, step):
        x, a = self.inputs(step), step.numbers
        if step.name not in COPIES and step.name not in ROUNDS:
            x = [t if t is None else self.noisy(t) for t in x]
        if step.name == "to":
            a = [TYPES.index(self.type(TYPES[a[0]]))]
        torch.default_generator.manual_seed(step.seed)  # torch.manual_seed is slow, because it looks for a GPU
        y = FUNCTIONS[step.name](x, a)
        return y if step.name in COPIES else self.noisy(y)

    def gradients(self, backs, nodes):
        """The gradients of the nodes: a sum over the outputs, each with its cotangent."""
        sums = [None] * len(nodes)
        for output, c in backs:
            y = self.values[output]
            cotangent = torch.ones_like(y) if c is None else self.noisy(self.values[c])
            grads = torch.autograd.grad(y, [self.values[i] for i in nodes], cotangent, retain_graph=True,
                                        allow_unused=True)
            sums = [a if b is None else b if a is None else a + b for a, b in zip(sums, grads)]
        return sums


def array(x):
    return x.detach().numpy()


def kinds(x):
    """0 for a number, 1 for NaN, 2 and 3 for the infinities."""
    return np.where(np.isfinite(x), 0, np.where(np.isnan(x), 1, np.where(x > 0, 2, 3)))


def largest(x):
    return float(np.abs(x, where=np.isfinite(x), out=np.zeros(x.shape)).max(initial=0))


def far(x, y):
    """The largest difference of two elements that are both finite."""
    if x.size == 0 or x is y:
        return 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.nanmax(np.where(np.isfinite(x) & np.isfinite(y), np.abs(x - y), 0.0), initial=0))


class Program:
    def __init__(self, seed, index):
        self.index = index
        self.rng = random.Random(f"{seed} {index}")
        self.again = 0
        while True:
            try:
                self.draw()
                return
            except Refused:
                self.again += 1

    # -- making

    def draw(self):
        rng = self.rng
        self.nodes, self.uses, self.last = [], collections.Counter(), {}
        self.changed = collections.defaultdict(list)  # after the node, which other nodes, and to what
        self.dtype = rng.choice([F32, F64])
        self.mixed = rng.random() < 0.1  # both float types
        self.wild = rng.random() < 0.1  # infinities and NaN
        changes = rng.random() < 0.3  # of requires_grad, in the middle of the program
        self.tolerant = F32 if self.mixed else self.dtype  # the type whose rounding counts
        noise = NOISE[self.tolerant] * ROUNDING[self.tolerant]
        seed = rng.randrange(2**31)
        wide = self.tolerant == F32
        self.main = Run(False, 0, seed)
        self.exact = Run(True, 0, seed) if wide else self.main
        self.noisy = [Run(wide, noise, seed + 1), Run(wide, noise, seed + 2, alike=True)]
        self.runs = [self.main, *([self.exact] if wide else []), *self.noisy]
        for _ in range(rng.randint(1, 3)):
            self.leaf(self.dtype, self.shape())
        for _ in range(rng.randint(5, 20)):
            self.draw_step()
            if changes and rng.random() < 0.3:
                self.change()
        self.finish()

    def change(self):
        """A leaf, or a result that requires no gradient, begins to require one, or ceases to. Not one that shares
        memory: in PyTorch a view of a constant says that it requires a gradient when the constant begins to."""
        i = self.rng.randrange(len(self.nodes))
        x = self.main.values[i]
        alone = all([y.untyped_storage().data_ptr() for y in run.values].count(
            run.values[i].untyped_storage().data_ptr()) == 1 for run in self.runs)
        if x.is_floating_point() and x.is_leaf and alone and not self.aliases(i):
            required = not x.requires_grad
            for run in self.runs:
                run.values[i].requires_grad_(required)
            self.changed[len(self.nodes) - 1].append((i, required))

    def draw_step(self):
        """Draws an op and its inputs, and draws again if the result cannot be compared."""
        for _ in range(100):
            before = len(self.nodes)
            name = self.rng.choice(OPS)
            try:
                inputs, *numbers = DRAW[name](self, name)
                if name in SDPA and not numbers[0] and self.finite(inputs) and self.rng.random() < 0.5:
                    name = SDPA[name]
                return self.step(name, inputs, numbers)
            except Refused:
                self.forget(before)
        raise Refused

    def finite(self, nodes):
        return all(self.main.values[i].isfinite().all() for i in nodes if i is not None)

    def forget(self, n):
        del self.nodes[n:]
        for run in self.runs:
            del run.values[n:]

    def step(self, name, inputs, numbers):
        step = Step(name, inputs, numbers, self.rng.randrange(1000))
        values = [run.value(step) for run in self.runs]
        if name in CHOICE and values[0].is_floating_point():
            self.same_choice([CHOICE[name](x, numbers) for x in self.possible_inputs(step)])
        elif not values[0].is_floating_point():
            self.same_choice([FUNCTIONS[name](x, numbers) for x in self.possible_inputs(step)])
        if values[0].numel() > 3000:
            raise Refused
        self.comparable(values, name)
        for run, y in zip(self.runs, values):
            run.values.append(y)
        self.nodes.append(step)
        for i in inputs:
            self.uses[i] += 1
            self.last[i] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def possible_inputs(self, step):
        """The inputs in all runs, and inputs moved by the allowed error; a tensor without roundings is not moved."""
        inputs = [run.inputs(step) for run in self.runs]
        for sign in (1, -1, 0):  # 0: elements within the error of 0 become 0
            moved = []
            for i, of in enumerate(zip(*inputs)):
                arrays = [array(x) for x in of] if of[0] is not None and of[0].is_floating_point() else []
                exact = not arrays or all(far(arrays[0], x) == 0 for x in arrays[1:])
                allowed = 0 if exact else self.allowed(arrays)
                moved.append(of[0] if exact else of[0] + sign * (-1)**i * allowed if sign else
                             of[0].masked_fill(of[0].abs() <= allowed, 0))
            inputs.append(moved)
        return inputs

    def same_choice(self, choices):
        if not all(torch.equal(choices[0], c) for c in choices):
            raise Refused

    def comparable(self, values, what):
        if not values[0].is_floating_point():
            return self.same_choice(values)
        arrays = [array(y) for y in values]
        pattern = kinds(arrays[0])
        if not all(np.array_equal(pattern, kinds(y)) for y in arrays[1:]):
            raise Refused
        if pattern.any() and not self.wild:
            raise Refused
        size = largest(arrays[0])
        if size > 1e6 or self.allowed(arrays) > LIMIT[self.tolerant] * max(size, 1):
            raise Refused

    def allowed(self, arrays):
        """The error that an element may have, from the arrays of the tensor in all runs."""
        main, exact, noisy = arrays[0], arrays[-3], arrays[-2:]
        noise = NOISE[self.tolerant] * ROUNDING[self.tolerant]
        return 8 * (far(main, exact) + max(far(exact, y) for y in noisy)) + noise * (largest(exact) + 1)

    def finish(self):
        """Draws cotangents for all results that no step reads, and computes the gradients."""
        rng = self.rng
        ends = [i for i, x in enumerate(self.main.values) if not self.uses[i] and x.requires_grad
                and isinstance(self.nodes[i], Step)]
        if not ends:
            raise Refused
        self.mode = rng.choice(["contraction", "contraction", "twice", "each"])
        cotangents = [self.leaf(self.main.values[y].dtype, self.main.values[y].shape, grad=False, draw="normal")
                      for y in ends]
        self.backs = list(zip(ends, cotangents))
        if self.mode != "each":
            self.backs = [(self.contraction(), None)]
        results = [i for i, node in enumerate(self.nodes) if isinstance(node, Step)]
        self.retained, self.let_go, self.hold = [], set(), False
        if self.mode == "contraction" and rng.random() < 0.5:
            self.retained = [i for i in results if not self.main.values[i].is_leaf and not self.aliases(i)
                             and rng.random() < 0.5]
        if rng.random() < 0.3:
            self.hold = True
        elif rng.random() < 0.3:
            self.let_go = {i for i in results if self.uses[i] and not self.aliases(i) and rng.random() < 0.5}
        changed = {i for changes in self.changed.values() for i, _ in changes}
        wanted = [i for i, x in enumerate(self.main.values) if x.is_leaf and x.requires_grad
                  and (isinstance(self.nodes[i], Leaf) or i in changed)] + self.retained
        if not wanted:
            raise Refused
        grads = [run.gradients(self.backs, wanted) for run in self.runs]
        self.grads = {}
        for k, i in enumerate(wanted):
            of = [g[k] for g in grads]
            if of[0] is not None:
                self.comparable(of, "gradient")
                self.grads[i] = [array(g) * (2 if self.mode == "twice" else 1) for g in of]

    def contraction(self):
        """Adds the steps for sum(y c), summed over all results y with their cotangents c."""
        terms = [self.step("sum", [self.step("mul", [y, c], [])], []) for y, c in self.backs]
        terms = [t if self.main.values[t].dtype == self.dtype
                 else self.step("to", [t], [TYPES.index(self.dtype)]) for t in terms]
        while len(terms) > 1:
            terms.append(self.step("add", [terms.pop(0), terms.pop(0)], []))
        return terms[0]

    def aliases(self, i):
        """May the node be the same tensor as another node? flatten, for example, may return its input. contiguous
        does so more often in the library than in PyTorch, because more results are row-major."""
        copied = {k for k, node in enumerate(self.nodes) if isinstance(node, Step) and node.name == "contiguous"}
        copied |= {self.nodes[k].inputs[0] for k in copied}
        return i in copied or any(x is self.main.values[i] for k, x in enumerate(self.main.values) if k != i)

    def text(self):
        lines = ["hold"] if self.hold else []
        for i, node in enumerate(self.nodes):
            lines.append(node.text())
            lines += [f"retain {i}"] if i in self.retained else []
            lines += [f"require {k} {int(required)}" for k, required in self.changed.get(i, [])]
            if isinstance(node, Step):
                lines += [f"let_go {k}" for k in sorted(set(node.inputs) & self.let_go) if self.last[k] == i]
        for y, c in self.backs:
            lines += [f"from {y} {c}" if c is not None else f"backward {y}"] * (2 if self.mode == "twice" else 1)
        return "\n".join(lines)

    def describe(self):
        return "\n".join(f"    x{i} = {node.describe()}" for i, node in enumerate(self.nodes)) + "\n    " + \
            "; ".join(line for line in self.text().split("\n") if line.split()[0] not in ("op", "leaf"))

    # -- drawing the inputs of ops

    def shape(self, low=0, high=4):
        rng = self.rng
        for _ in range(100):
            sizes = [rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7]) if rng.random() < 0.6 else rng.randint(1, 7)
                     for _ in range(rng.randint(low, high))]
            if sizes and rng.random() < 0.05:
                sizes[rng.randrange(len(sizes))] = rng.randint(8, 80)
            if math.prod(sizes) <= 500:
                return sizes
        return [1] * low

    def leaf(self, dtype, shape, grad=None, draw=None, low=-3, high=4):
        """Adds a leaf, a view with random strides."""
        rng = self.rng
        shape = [int(n) for n in shape]
        order = list(range(len(shape)))
        if rng.random() < 0.5:
            rng.shuffle(order)
        expanded = rng.random() < 0.15
        strides, step = [0] * len(shape), 1
        for d in order:
            if expanded and rng.random() < 0.5:
                continue
            step *= rng.choice([1, 1, 1, 1, 2, 3]) if rng.random() < 0.4 else 1
            strides[d] = step
            step *= max(shape[d], 1)
        offset = rng.choice([0, 0, 1, 5])
        needed = offset + sum((n - 1) * s for n, s in zip(shape, strides)) + 1 if math.prod(shape) else offset
        whole = self.elements(dtype, needed + rng.choice([0, 2]), draw, low, high)
        grad = dtype.is_floating_point and (rng.random() < 0.8 if grad is None else grad)
        leaf = Leaf(whole, shape, strides, offset, grad)
        for run in self.runs:
            run.leaf(leaf)
        self.nodes.append(leaf)
        return len(self.nodes) - 1

    def elements(self, dtype, n, draw, low, high):
        rng = self.rng
        if dtype == BOOL:
            odds = rng.choice([0.2, 0.5, 0.8])
            return torch.tensor([rng.random() < odds for _ in range(n)], dtype=BOOL)
        if dtype == I64:
            return torch.tensor([rng.randrange(low, high) for _ in range(n)], dtype=I64)
        draw = draw or rng.choice(["normal", "normal", "normal", "grid", "positive"])
        number = {"normal": lambda: rng.gauss(0, 1), "grid": lambda: rng.randint(-4, 4) / 2,
                  "positive": lambda: rng.uniform(0.2, 3)}[draw]
        x = torch.tensor([number() for _ in range(n)], dtype=F64)
        if self.wild and draw == "grid" and n:
            x[rng.randrange(n)] = rng.choice([math.inf, -math.inf, math.nan, -0.0, 1e30])
        return x.to(F32).to(dtype) if self.mixed else x.to(dtype)

    def dtype_of(self, i):
        return self.main.values[i].dtype

    def sizes(self, i):
        return list(self.main.values[i].shape)

    def dims(self, i):
        return self.main.values[i].dim()

    def kind(self, i):
        dtype = self.dtype_of(i)
        return "i" if dtype == I64 else "b" if dtype == BOOL else "f"

    def pick(self, types="f", low=0, high=4, where=lambda shape: True, draw=None):
        """A tensor of one of the types, with low to high dimensions; late tensors are more probable."""
        rng = self.rng
        fit = [i for i in range(len(self.nodes)) if self.kind(i) in types and low <= self.dims(i) <= high
               and where(self.sizes(i)) and (draw is None)]
        floats = [i for i in fit if self.kind(i) == "f"]
        if floats and rng.random() < 0.7:
            fit = floats
        if fit and rng.random() < 0.85:
            return fit[max(rng.randrange(len(fit)), rng.randrange(len(fit)))]
        for _ in range(100):
            shape = self.shape(low, high)
            if where(shape):
                return self.leaf(self.float_or(rng.choice(types)), shape, draw=draw)
        raise Refused

    def float_or(self, kind):
        other = F32 if self.dtype == F64 else F64
        return {"i": I64, "b": BOOL, "f": other if self.mixed and self.rng.random() < 0.3 else self.dtype}[kind]

    def like(self, dtype, shape, grad=None, new=0.3):
        """A tensor of this shape and type."""
        fit = [i for i, x in enumerate(self.main.values) if x.dtype == dtype and list(x.shape) == list(shape)]
        if fit and self.rng.random() > new:
            return self.rng.choice(fit)
        return self.leaf(dtype, shape, grad=grad)

    def broadcast(self, dtype, shape):
        """A tensor that can be broadcast with this shape."""
        rng = self.rng
        fit = [i for i, x in enumerate(self.main.values) if x.dtype == dtype and broadcasts(x.shape, shape)]
        if fit and rng.random() < 0.5:
            return rng.choice(fit)
        sizes = [rng.choice([n, n, n, 1 if n != 1 else rng.randint(0, 4)]) for n in shape]
        if rng.random() < 0.3:
            sizes = sizes[rng.randint(0, len(sizes)):]
        elif len(sizes) < 4 and rng.random() < 0.1:
            sizes = [rng.randint(1, 3), *sizes]
        return self.leaf(dtype, sizes)

    def lies_alike(self, i):
        """Has the tensor the same strides in PyTorch? The library's results are row-major, except views; results
        of PyTorch's elementwise ops keep the order of their inputs' dimensions."""
        if isinstance(self.nodes[i], Step) and self.nodes[i].name in VIEWS:
            return self.lies_alike(self.nodes[i].inputs[0])
        if isinstance(self.nodes[i], Step) and "attention" in IN_C.get(self.nodes[i].name, self.nodes[i].name):
            q = self.main.values[self.nodes[i].inputs[0]]  # the result has the layout of q
            return q.dim() < 4 or q.stride(1) >= q.stride(2)
        return isinstance(self.nodes[i], Leaf) or self.main.values[i].is_contiguous()

    def dim(self, i, new=0):
        """One of the dimensions of tensor i; for a scalar 0 or -1."""
        n = max(self.dims(i) + new, 1)
        return self.rng.randrange(-n, n)
