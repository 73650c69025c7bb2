"""Reads the tests' table of ops, ../suites/library/ops.def: what golden/generate.py and differential/ops.py need of it."""
import math
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
NUMBERS = {"NAN": math.nan, "INFINITY": math.inf, "F32": 0, "F64": 1, "I64": 2, "BOOL": 3, "REDUCE_NONE": 0,
           "REDUCE_SUM": 1, "REDUCE_MEAN": 2}
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[(){},]|[^"(){},]+')


def arguments(text, at):
    """The arguments of a macro; its first one begins at text[at]."""
    found, depth = [""], 1
    for token in TOKEN.finditer(text, at):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return [argument.strip() for argument in found]
        if token[0] == "," and depth == 1:
            found.append("")
        else:
            found[-1] += token[0]


def rows(path, names):
    """The rows of an X-macro table: the name of the macro, and its arguments."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / path).read_text(), flags=re.S)
    for row in re.finditer(rf"^({names})\(", text, flags=re.M):
        yield row[1], arguments(text, row.end())


def unquoted(literals):
    """"a" "b" of C, as one string"""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"')


def case_of(example):
    """{{R(3, 4), R(4)}, {1e-5}} -> "1e-5: f3,4 f4" """
    inputs, numbers = arguments(example[1:-1] + ")", 0)
    numbers = numbers[1:-1].replace("(double)", "").split(",")
    values = [eval(n, dict(NUMBERS)) for n in numbers]
    found, first = [], None
    for kind, scalar, sizes in re.findall(r"([RCMLI])(?:(0)|\(([^)]*)\))", inputs):
        sizes = [] if scalar else [int(n) for n in sizes.split(",")]
        first = sizes if first is None else first
        below = {"L": first[-1] + 2 if first else 1,
                 "I": first[int(values[0])] if first and -len(first) <= values[0] < len(first) else 1}.get(kind)
        letter = {"R": "f", "C": "f", "M": "b"}.get(kind, "i")
        found.append(letter + ",".join(map(str, sizes)) + (f"~0,{below}" if below else ""))
    return " ".join(map(repr, values)) + ": " + " ".join(found)


class Elementwise:
    """A row of elementwise.def: how many inputs it has, their types and bounds, and the cases for them."""

    def __init__(self, form, arguments):
        compares = form == "COMPARE"
        self.inputs = 1 if form.startswith("UNARY") else 2
        self.scalar = form == "UNARY_SCALAR"
        self.types = {"FLOAT": "f", "NUMBER": "fi", "SAME": "fib"}["SAME" if compares else arguments[4]]
        self.bounds = ("-2", "2") if compares else arguments[-2:]

    def cases(self):
        shapes = {1: ["3,4", "", "2,0,3", "12", "77"], 2: ["3,4 3,4", "2,0 1,1", "3,1,2 4,1", " ", "2,37 37"]}[self.inputs]
        wide = {"12": "-8,8", "77": "-5,5"} if self.inputs == 1 and self.bounds == ["-2", "2"] else {}
        usual = "" if tuple(self.bounds) == ("-2", "2") else "~" + ",".join(self.bounds)
        found = []
        for sizes in shapes:
            bounds = "~" + wide[sizes] if sizes in wide else usual
            found.append(" ".join(f"f{size}{bounds}" for size in sizes.split(" ")))
        found += [" ".join(kind + size for size in shapes[0].split(" ")) for kind in self.types[1:]]
        return "; ".join(("0.75: " if self.scalar else "") + case for case in found)


ELEMENTWISE = {arguments[0]: Elementwise(form, arguments) for form, arguments in
               rows("tensor/kernels/elementwise.def", "UNARY|UNARY_SCALAR|BINARY|COMPARE")}


class Op:
    """A row of ops.def. torch: the call in PyTorch, an expression of x and a. cases: as in generate.py."""

    def __init__(self, kind, arguments):
        self.name, self.torch, self.cases = arguments[0], None, None
        self.elementwise = ELEMENTWISE[self.name] if kind == "ELEMENTWISE" else None
        examples = []
        for argument in arguments[1 if self.elementwise else 2:]:
            macro = re.match(r"(SAMPLES|TORCH)\((.*)\)$", argument, flags=re.S)
            if not macro:
                continue
            inside = globals()["arguments"](macro[2] + ")", 0)
            if macro[1] == "TORCH":
                self.torch, self.cases = unquoted(inside[0]), unquoted(inside[1]) if len(inside) > 1 else None
            else:
                examples = inside
        if self.cases is None:
            self.cases = self.elementwise.cases() if self.elementwise else "; ".join(map(case_of, examples))


OPS = [Op(kind, arguments) for kind, arguments in rows("tests/suites/library/ops.def", "ELEMENTWISE|OP|COMPOSITE")]
