#!/usr/bin/env python3
"""The leave-one-out minima of kernel regression: writes kernel_regression.txt beside this file.

Run this with PyTorch 2.15 (reference.py says how to install PyTorch), from any folder. This program uses no
gradient and no C. For each data set it evaluates the leave-one-out loss at 20000 widths, evenly spaced in log w
from 1e-3 / range to 1e4 / range; at both ends the loss is constant. Between the neighbours of the width with the
smallest loss, bisection finds the width where the slope, a central difference, is 0. A line with a w0 has a local
minimum in place of the smallest loss: the search begins at w0 and goes to smaller losses.

Columns: data set, w0 (0: none), w, leave-one-out rmse, and the fitted curve at five places, evenly
spaced from the smallest x to the largest. All numbers are in the units of the data.
"""
import os

import numpy as np
from reference import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def notebook():
    """The notebook's data, in float32, in the order in which the notebook draws them."""
    torch.manual_seed(517109245)
    x, _ = torch.sort(torch.rand(50) * 5)
    y = 2 * torch.sin(x) + x**0.8 + torch.normal(0.0, 0.5, (50,))
    return x.double().numpy(), y.double().numpy()


def load(name):
    if name == "notebook":
        return notebook()
    path = os.path.join(HERE, "../../examples/data", name + ".csv")
    return np.loadtxt(path, delimiter=",", skiprows=1).T


def attend(queries, x, y, w, leave_one_out):
    scores = -(((queries[:, None] - x[None, :]) * w) ** 2) / 2
    if leave_one_out:
        np.fill_diagonal(scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ y / weights.sum(axis=1)


def loss(x, y, log_w):
    return np.mean((attend(x, x, y, np.exp(log_w), True) - y) ** 2)


def minimum(x, y, w0):
    log_w = np.linspace(np.log(1e-3 / np.ptp(x)), np.log(1e4 / np.ptp(x)), 20000)
    losses = np.array([loss(x, y, l) for l in log_w])
    if w0 == 0:
        i = int(losses.argmin())
    else:
        i = int(np.abs(log_w - np.log(w0)).argmin())
        while losses[i - 1] < losses[i]:
            i -= 1
        while losses[i + 1] < losses[i]:
            i += 1
    # Near the minimum the loss changes by the square of the distance, so losses show only half of the digits
    # of w. The slope, which is 0 at the minimum, shows more.
    slope = lambda l: loss(x, y, l + 1e-4) - loss(x, y, l - 1e-4)
    a, b = log_w[i - 1], log_w[i + 1]
    while b - a > 1e-10:
        middle = (a + b) / 2
        a, b = (middle, b) if slope(middle) < 0 else (a, middle)
    return (a + b) / 2


def main():
    wanted = [("mcycle", 0), ("faithful", 0), ("cars", 0), ("notebook", 0)]
    wanted += [("notebook", 5)]
    with open(os.path.join(HERE, "kernel_regression.txt"), "w") as file:
        for name, w0 in wanted:
            x, y = load(name)
            log_w = minimum(x, y, w0)
            places = np.linspace(x.min(), x.max(), 5)
            curve = attend(places, x, y, np.exp(log_w), False)
            numbers = [np.exp(log_w), np.sqrt(loss(x, y, log_w)), *curve]
            print(name, w0, *("%.8g" % number for number in numbers), file=file)


main()
