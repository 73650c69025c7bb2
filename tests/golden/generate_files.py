#!/usr/bin/env python3
"""Writes tests/golden/files/ for tests/test_files.c, by NumPy and Python's safetensors.

    python3 tests/golden/generate_files.py

Needs NumPy and safetensors. The committed files came from NumPy 1.24 and safetensors 0.8. Every
array counts 0, 1, 2, ... in row-major order; a bool is true if its number is not divisible by 3.
"""
import os

import numpy as np
from safetensors.numpy import save_file

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
TYPES = {"float32": "<f4", "float64": "<f8", "int64": "<i8", "bool": "|b1"}


def counting(shape, descr):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return (values % 3 != 0 if descr == "|b1" else values).astype(descr)


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

tensors = {name: counting((2, 3), descr) for name, descr in TYPES.items()}
tensors.update(scalar=counting((), "<f8"), empty=counting((0, 2), "<f4"), odd=counting((3,), "|b1"))
tensors['"\\/\b\f\n\r\t\x01\x7f é € 😀'] = counting((1,), "<f4")
save_file(tensors, os.path.join(FOLDER, "all.safetensors"), {"format": 'n"p\n\u00e9'})
save_file({}, os.path.join(FOLDER, "nothing.safetensors"))
for descr, name in (("<f2", "F16"), ("<i4", "I32"), ("|u1", "U8")):
    save_file({"ok": counting((2,), "<f4"), "w": counting((2,), descr)},
              os.path.join(FOLDER, name + ".safetensors"))
