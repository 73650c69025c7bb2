#!/usr/bin/env python3
"""steps_jax.py - the cases of steps.c except attention alone, trained by JAX: a JSON object per line.

A step is one jitted function: the loss, its gradients, their norm if the case clips it, the optimizer. The
function takes over (donates) the parameters, the optimizer's state and the random key, and returns new ones.
XLA starts a thread for each core that the process may use, so --threads binds the process to as many cores.

tests/bench/compare runs this beside steps.c.
"""
import math
import os
from typing import Callable, NamedTuple

import jax
import jax.numpy as jnp
from jax import random

import common

FOOTPRINT = common.peak_memory()


class Training(NamedTuple):
    parameters: dict
    batch: tuple
    loss: Callable  # of parameters, random key, *batch
    update: Callable  # of parameters, gradients, state; returns parameters and state
    state: tuple = ()
    random: bool = False  # does the loss need a key?


# ---- layers ---------------------------------------------------------------------------------------


def linear(key, inputs, outputs):
    return random.uniform(key, (inputs, outputs), minval=-1.0, maxval=1.0) / math.sqrt(inputs)


def dropout(key, p, x):
    return jnp.where(random.bernoulli(key, 1 - p, x.shape), x / (1 - p), 0) if p else x


def padding(keys, lengths):
    """(B, K): true for the keys after the end of their sequence"""
    return jnp.arange(keys.shape[1]) >= lengths[:, None]


def behind(length):
    """(N, N): true for the keys after each query"""
    return jnp.arange(length) > jnp.arange(length)[:, None]


def masked_softmax(scores, ignored):
    return jax.nn.softmax(scores if ignored is None else jnp.where(ignored, -jnp.inf, scores))


def split(x, H):
    """(B, N, C) -> (B, H, N, D)"""
    return x.reshape(*x.shape[:2], H, -1).swapaxes(1, 2)


def merge(x):
    """(B, H, N, D) -> (B, N, C)"""
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def attend(q, k, v, ignored, key=None, p=0.0):
    """q, k, v: (B, H, N, D) -> same"""
    scores = q @ k.swapaxes(-2, -1) / math.sqrt(q.shape[-1])
    return dropout(key, p, masked_softmax(scores, ignored)) @ v


def layer_norm(p, x):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5) * p["weight"] + p["bias"]


# ---- optimizers -----------------------------------------------------------------------------------


def sgd(lr):
    return lambda parameters, gradients, state: (
        jax.tree.map(lambda p, g: p - lr * g, parameters, gradients), state)


def clipped(gradients, clip):
    norm = jnp.sqrt(sum(jnp.square(g).sum() for g in jax.tree.leaves(gradients)))
    return jax.tree.map(lambda g: g * jnp.minimum(clip / (norm + 1e-6), 1), gradients)


def adamw(parameters, gradients, state, lr=1e-3, beta1=0.9, beta2=0.99, decay=0.1):
    m, v, n = state
    n = n + 1
    m = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, m, gradients)
    v = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, v, gradients)
    rate, correction = lr / (1 - beta1**n), jnp.sqrt(1 - beta2**n)
    parameters = jax.tree.map(
        lambda p, m, v: p * (1 - lr * decay) - rate * m / (jnp.sqrt(v) / correction + 1e-8), parameters, m, v)
    return parameters, (m, v, n)


# ---- the cases ------------------------------------------------------------------------------------


def nw(key):
    n = 50
    keys = random.split(key, 3)
    x = jnp.sort(random.uniform(keys[0], (n,)) * 5)
    y = 2 * jnp.sin(x) + x**0.8 + 0.5 * random.normal(keys[1], (n,))
    others = ~jnp.eye(n, dtype=bool)
    k, v = (jnp.tile(t, (n, 1))[others].reshape(n, n - 1) for t in (x, y))

    def loss(w, key, queries, keys, values, targets):
        weights = jax.nn.softmax(-jnp.square((queries[:, None] - keys) * w) / 2)
        return jnp.square((weights[:, None] @ values[..., None]).reshape(-1) - targets).sum()

    return Training(random.uniform(keys[2], (1,)), (x, k, v, y), loss, sgd(0.5))


def mha(key, B, Q, K, C, H, p, lengths=None, causal=False):
    keys = random.split(key, 7)
    parameters = {name: linear(key, C, C) for name, key in zip("qkvo", keys)}
    if lengths == "random":
        lengths = random.randint(keys[4], (B,), 1, K + 1)
    q = random.normal(keys[5], (B, Q, C))
    batch = (q, lengths) if K == Q else (q, lengths, random.normal(keys[6], (B, K, C)))

    def loss(W, key, q, lengths, k=None):
        k = q if k is None else k
        ignored = None if lengths is None else padding(k, lengths)[:, None, None]
        ignored = behind(Q) if causal else ignored
        y = attend(split(q @ W["q"], H), split(k @ W["k"], H), split(k @ W["v"], H), ignored, key, p)
        return jnp.square(merge(y) @ W["o"]).mean()

    return Training(parameters, batch, loss, sgd(0.01), random=p > 0)


def additive(key):
    keys = random.split(key, 7)
    parameters = dict(q=linear(keys[0], 20, 64), k=linear(keys[1], 24, 64), v=linear(keys[2], 64, 1))
    sizes = [(32, 16, 20), (32, 32, 24), (32, 32, 24)]
    batch = [random.normal(key, size) for key, size in zip(keys[3:], sizes)]

    def loss(W, key, q, k, v, lengths):
        features = jnp.tanh((q @ W["q"])[:, :, None] + (k @ W["k"])[:, None])
        weights = masked_softmax((features @ W["v"]).squeeze(-1), padding(k, lengths)[:, None])
        return jnp.square(dropout(key, 0.1, weights) @ v).mean()

    return Training(parameters, (*batch, random.randint(keys[6], (32,), 1, 33)), loss, sgd(0.01), random=True)


def gpt(key, vocabulary=65, C=128, H=4, length=64, layers=4, B=12, clip=1.0):
    keys = iter(random.split(key, 100))

    def weight(*size):
        return 0.02 * random.normal(next(keys), size)

    def norm():
        return dict(weight=jnp.ones(C), bias=jnp.zeros(C))

    def block():
        return dict(ln1=norm(), ln2=norm(), qkv=weight(C, 3 * C), proj=weight(C, C), fc=weight(C, 4 * C),
                    out=weight(4 * C, C))

    parameters = dict(wte=weight(vocabulary, C), wpe=weight(length, C), h=[block() for _ in range(layers)],
                      lnf=norm())

    def block_forward(p, x):
        q, k, v = (split(part, H) for part in jnp.split(layer_norm(p["ln1"], x) @ p["qkv"], 3, axis=2))
        x = x + merge(attend(q, k, v, behind(length))) @ p["proj"]
        return x + jax.nn.gelu(layer_norm(p["ln2"], x) @ p["fc"], approximate=False) @ p["out"]

    def loss(p, key, tokens, targets):
        x = p["wte"][tokens] + p["wpe"]
        for block in p["h"]:
            x = block_forward(block, x)
        logits = jax.nn.log_softmax(layer_norm(p["lnf"], x) @ p["wte"].T)
        return -jnp.take_along_axis(logits, targets[..., None], axis=-1).mean()

    tokens, targets = (random.randint(next(keys), (B, length), 0, vocabulary) for _ in range(2))
    zeros = [jax.tree.map(jnp.zeros_like, parameters) for _ in range(2)]

    def update(parameters, gradients, state):
        return adamw(parameters, clipped(gradients, clip) if clip else gradients, state)

    return Training(parameters, (tokens, targets), loss, update, (*zeros, jnp.zeros(())))


def microgpt(key, C):
    return gpt(key, vocabulary=27, C=C, length=16, layers=1, B=16, clip=0)


CASES = {
    "nw": nw,
    "mha_tiny": lambda key: mha(key, 2, 4, 6, 100, 5, 0.5, jnp.array([3, 2])),
    "mha_small": lambda key: mha(key, 64, 10, 10, 100, 5, 0.1, "random"),
    "additive": additive,
    "mha_medium": lambda key: mha(key, 8, 256, 256, 512, 8, 0.0, "random"),
    "mha_large": lambda key: mha(key, 1, 2048, 2048, 768, 12, 0.0),
    "mha_large_causal": lambda key: mha(key, 1, 2048, 2048, 768, 12, 0.0, causal=True),
    "gpt": gpt,
    "microgpt_16": lambda key: microgpt(key, 16),
    "microgpt_64": lambda key: microgpt(key, 64),
    "microgpt_128": lambda key: microgpt(key, 128),
}


# ---- a step ---------------------------------------------------------------------------------------


def training(t):
    """A function that does one step and returns its loss."""

    def pure_step(parameters, state, key, batch):
        key, now = random.split(key) if t.random else (key, None)
        loss, gradients = jax.value_and_grad(t.loss)(parameters, now, *batch)
        return *t.update(parameters, gradients, state), key, loss

    jitted = jax.jit(pure_step, donate_argnums=(0, 1, 2))
    carried = t.parameters, t.state, random.key(1)

    def step():
        nonlocal carried
        *carried, loss = jitted(*carried, t.batch)
        return loss.block_until_ready()

    return step


def main():
    options = common.read_options(["jitted"])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    common.run(options, lambda: training(CASES[options.case](random.key(0))), FOOTPRINT)


if __name__ == "__main__":
    main()
