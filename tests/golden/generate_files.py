#!/usr/bin/env python3
"""Writes tests/golden/files/ for tests/suites/library/test_files.c, by NumPy, PyTorch and Python's safetensors.

    DIR/bin/python tests/golden/generate_files.py

The committed files came from NumPy 1.24 and 2.4 and safetensors 0.8. Every array counts 0, 1, 2,
... in row-major order; a bool is true if its number is not divisible by 3. half.safetensors holds
16-bit floats of every kind, and the float32 that NumPy makes of F16, PyTorch of BF16. (PyTorch
makes every NaN of F16 the same NaN.)
"""
import io
import os
import struct

import numpy as np
import safetensors.torch
import torch
from safetensors.numpy import save_file

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
TYPES = {"float32": "<f4", "float64": "<f8", "int64": "<i8", "bool": "|b1"}


def counting(shape, descr):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return (values % 3 != 0 if descr == "|b1" else values).astype(descr)


def as_python_2(array):
    """The .npy file of Python 2 on Windows, where a size is a long: (2L, 3L)."""
    sizes = ", ".join(f"{n}L" for n in array.shape)
    header = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': ({sizes}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    file = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + array.tobytes()
    assert (np.load(io.BytesIO(file)) == array).all()
    return file


def save_text(name, header, data):
    """A safetensors file with this header. Python's safetensors must read it."""
    file = struct.pack("<Q", len(header)) + header.encode() + data
    safetensors.torch.load(file)
    with open(os.path.join(FOLDER, name + ".safetensors"), "wb") as out:
        out.write(file)


def floats(dtype, *bits):
    return torch.tensor(bits).to(torch.uint16).view(dtype)


def save_npy(name, array, version=None):
    with open(os.path.join(FOLDER, name + ".npy"), "wb") as file:
        np.lib.format.write_array(file, array, version)


os.makedirs(FOLDER, exist_ok=True)
for name, descr in TYPES.items():
    save_npy(name, counting((2, 3), descr))
save_npy("scalar", counting((), "<f4"))
save_npy("empty", counting((3, 0, 2), "<f8"))
save_npy("eight", counting((1, 2, 1, 1, 3, 1, 1, 1), "<i8"))
save_npy("long", counting((70,), "|b1"))
save_npy("fortran", np.asfortranarray(counting((2, 3, 4), "<f4")))
save_npy("fortran_bool", np.asfortranarray(counting((2, 3), "|b1")))
save_npy("big_float32", counting((2, 3), ">f4"))
save_npy("big_float64", np.asfortranarray(counting((2, 3), ">f8")))
save_npy("big_int64", counting((2, 3), ">i8"))
save_npy("version2", counting((2, 3), "<f4"), (2, 0))
save_npy("version3", counting((2, 3), "<f4"), (3, 0))
save_npy("int32", counting((2, 3), "<i4"))
save_npy("complex", counting((2, 3), "<c8"))
save_npy("text", np.array(["a", "bc"]))
save_npy("record", np.zeros(2, [("a", "<f4"), ("b", "<i8")]))
save_npy("nine", counting((1,) * 9, "<f4"))
save_npy("float16", counting((2, 3), "<f2"))
save_npy("big_float16", np.asfortranarray(counting((2, 3), ">f2")))
with open(os.path.join(FOLDER, "long_sizes.npy"), "wb") as file:
    file.write(as_python_2(counting((2, 3), "<f4")))

tensors = {name: counting((2, 3), descr) for name, descr in TYPES.items()}
tensors.update(scalar=counting((), "<f8"), empty=counting((0, 2), "<f4"), odd=counting((3,), "|b1"))
tensors['"\\/\b\f\n\r\t\x01\x7f é € 😀'] = counting((1,), "<f4")
save_file(tensors, os.path.join(FOLDER, "all.safetensors"), {"format": 'n"p\n\u00e9'})
save_file({}, os.path.join(FOLDER, "nothing.safetensors"))
for descr, name in (("<f2", "F16"), ("<i4", "I32"), ("|u1", "U8")):
    save_file({"ok": counting((2,), "<f4"), "w": counting((2,), descr)},
              os.path.join(FOLDER, name + ".safetensors"))

# Zeros, the smallest and the largest denormal, the smallest and the largest normal number, one,
# infinities, quiet NaNs, numbers.
half = {
    "F16": floats(torch.float16, 0, 0x8000, 1, 0x83ff, 0x400, 0x8400, 0x3c00, 0x7bff, 0xfbff,
                  0x7c00, 0xfc00, 0x7e00, 0xff55, 0x3555, 0xc248),
    "BF16": floats(torch.bfloat16, 0, 0x8000, 1, 0x807f, 0x80, 0x8080, 0x3f80, 0x7f7f, 0xff7f,
                   0x7f80, 0xff80, 0x7fc0, 0xffd5, 0x3eab, 0xc049),
}
half["F16 as F32"] = torch.from_numpy(half["F16"].numpy().astype("<f4"))
half["BF16 as F32"] = half["BF16"].float()
safetensors.torch.save_file(half, os.path.join(FOLDER, "half.safetensors"))

ENTRY = '"dtype":"F32","shape":[2],"data_offsets":'
TWO = counting((2,), "<f4").tobytes()
save_text("null", '{"__metadata__":null,"w":{%s[0,8]}}' % ENTRY, TWO)
save_text("unknown", '{"w":{"a":[1,{"b":[-1.5e+3,null]},[]],%s[0,8],"c":"\\u20ac","c":{}}}' % ENTRY, TWO)
