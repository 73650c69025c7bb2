#!/usr/bin/env python3
"""Writes words.txt, a small dictionary of words that do not exist, for build/pronounce in the suites.

Each letter always says the same: k K, a AA; x says K S, and the h at the end of some words says nothing. So every
alignment is plain, and a short training learns something. The file has the same bytes every time.
"""
import pathlib
import random

CONSONANTS = {"b": "B", "d": "D", "f": "F", "g": "G", "k": "K", "l": "L", "m": "M", "n": "N", "p": "P", "r": "R", "s": "S",
              "t": "T", "x": "K S"}
VOWELS = {"a": "AA", "e": "EH", "i": "IY", "o": "OW", "u": "UW"}


def word(draw):
    spelling, sounds = "", []
    for _ in range(draw.choice([2, 2, 3])):
        for kind in (CONSONANTS, VOWELS):
            letters = draw.choice(list(kind))
            spelling += letters
            sounds.append(kind[letters])
    if "x" not in spelling:
        spelling += draw.choice(["", "", "h"])
    return f"{spelling} {' '.join(sounds)}\n"


draw = random.Random(1)
words = sorted({word(draw) for _ in range(300)} | {"babu B AA B UW\n", "baxi B AA K S IY\n"})
with open(pathlib.Path(__file__).parent / "words.txt", "w") as file:
    file.write("# words.txt - made by generate_words.py\n" + "".join(words))
