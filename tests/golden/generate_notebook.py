#!/usr/bin/env python3
"""Prints the output that build/notebook should have: PyTorch runs the notebook's cells.

    python3 tests/golden/generate_notebook.py | diff - tests/golden/notebook.txt

With PyTorch 2.15 (reference.py says how to install PyTorch) the last decimals of the losses differ; both programs are
equally close to the original notebook. The fifth digit of a few weights after training differs, too, because
PyTorch's w is the float next to the original w. The committed notebook.txt is the output of build/notebook. It
was compared with this output, and with the cells of the original, which it equals in all digits except the
sixth decimals of the losses.
"""
import math

from reference import torch
from torch import nn


def cell(number, *results):
    """Prints the heading and the values of a cell; the members of a tuple are printed one by one."""
    print(f"In [{number}]:" if number == 1 else f"\nIn [{number}]:")
    for result in results:
        print(result)


# ---- 1 the data, pooled without parameters -----------------------------------------------------


def f(x):
    return 2 * torch.sin(x) + x**0.8


torch.manual_seed(517109245)
n_train = 50
x_train, _ = torch.sort(torch.rand(n_train) * 5)
y_train = f(x_train) + torch.normal(0.0, 0.5, (n_train,))
x_test = torch.arange(0, 5, 0.5)
y_truth = f(x_test)
n_test = len(x_test)
cell(1, "Tapehead, retracing a notebook that ran under PyTorch 1.12.0+cu113")
cell(2, n_test)
cell(3, x_train)
cell(4, y_truth)
cell(5, y_train)
cell(6, x_test)
cell(7, y_train.mean().repeat(n_test))

cell(8)
difference = x_test.reshape((-1, 1)) - x_train.reshape((1, -1))
attention_weights = torch.softmax(-(difference**2) / 2, dim=1)
cell(49, x_test.reshape((-1, 1)).shape, x_train.reshape((1, -1)).shape, difference.shape)
cell(9, torch.matmul(attention_weights, y_train))
cell(10, attention_weights, attention_weights.shape)

# ---- 1.3 with a parameter ----------------------------------------------------------------------

X_tile, Y_tile = x_train.repeat((n_train, 1)), y_train.repeat((n_train, 1))
others = (1 - torch.eye(n_train)).type(torch.bool)
keys, values = (tile[others].reshape((n_train, -1)) for tile in (X_tile, Y_tile))
cell(11, X_tile, X_tile.shape)
cell(12, Y_tile, Y_tile.shape)
cell(13, keys, keys.shape)
cell(14, values, values.shape)


class NWKernelRegression(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand((1,), requires_grad=True))

    def forward(self, queries, keys, values):
        queries = queries.repeat_interleave(keys.shape[1]).reshape((-1, keys.shape[1]))
        self.attention_weights = nn.functional.softmax(-(((queries - keys) * self.w) ** 2) / 2, dim=1)
        return torch.bmm(self.attention_weights.unsqueeze(1), values.unsqueeze(-1)).reshape(-1)


cell(15)
cell(16)
net = NWKernelRegression()
loss = nn.MSELoss(reduction="none")
losses = []
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
for epoch in range(5):
    optimizer.zero_grad()
    l = loss(net(x_train, keys, values), y_train)
    l.sum().backward()
    optimizer.step()
    losses.append(float(l.sum()))
    print(f"epoch {epoch + 1}, loss {losses[-1]:.6f}")
cell(17, net.w)
cell(18, net.attention_weights, net.attention_weights.shape)
cell(19)
net(x_test, x_train.repeat((n_test, 1)), y_train.repeat((n_test, 1)))
cell(20, net.w)
cell(21, net.attention_weights, net.attention_weights.shape)

# ---- 2 attention scoring functions -------------------------------------------------------------


def masked_softmax(scores, valid_lens):
    shape = scores.shape
    lens = torch.repeat_interleave(valid_lens, shape[1]) if valid_lens.dim() == 1 else valid_lens
    ignored = torch.arange(shape[-1])[None, :] >= lens.reshape(-1, 1)
    scores = scores.reshape(-1, shape[-1]).masked_fill(ignored, -1e6)
    return nn.functional.softmax(scores.reshape(shape), dim=-1)


class DotProductAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens):
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)


class AdditiveAttention(nn.Module):
    def __init__(self, query_size, key_size, num_hiddens, dropout):
        super().__init__()
        self.W_q = nn.Linear(query_size, num_hiddens, bias=False)
        self.W_k = nn.Linear(key_size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens):
        features = torch.tanh(self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1))
        self.attention_weights = masked_softmax(self.w_v(features).squeeze(-1), valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)


def show(number, attention, *inputs):
    """Prints an output and its attention weights in one cell, as in sections 2.1 and 2.2."""
    output = attention(*inputs)
    weights = attention.attention_weights
    cell(number, output, output.shape, weights, weights.shape)


cell(22)
cell(23, masked_softmax(torch.rand(2, 2, 4), torch.tensor([2, 3])))
cell(24, masked_softmax(torch.rand(2, 2, 4), torch.tensor([[1, 3], [2, 4]])))

queries, keys = torch.normal(0, 1, (2, 1, 2)), torch.ones((2, 10, 2))
values = torch.arange(40, dtype=torch.float32).reshape(1, 10, 4).repeat(2, 1, 1)
valid_lens = torch.tensor([2, 6])
cell(25)
cell(26, queries, keys, values)
show(27, DotProductAttention(dropout=0.5).eval(), queries, keys, values, valid_lens)

queries = torch.normal(0, 1, (2, 1, 20))
cell(28)
show(29, AdditiveAttention(20, 2, 8, 0.1).eval(), queries, keys, values, valid_lens)

# ---- multi-head attention and self-attention ---------------------------------------------------


class MultiHeadAttention(nn.Module):
    def __init__(self, num_hiddens, num_heads, dropout):
        super().__init__()
        self.num_heads = num_heads
        self.attention = DotProductAttention(dropout)
        for name in "W_q", "W_k", "W_v", "W_o":
            setattr(self, name, nn.Linear(num_hiddens, num_hiddens, bias=False))

    def transpose_qkv(self, X):
        X = X.reshape(X.shape[0], X.shape[1], self.num_heads, -1).permute(0, 2, 1, 3)
        return X.reshape(-1, X.shape[2], X.shape[3])

    def transpose_output(self, X):
        X = X.reshape(-1, self.num_heads, X.shape[1], X.shape[2]).permute(0, 2, 1, 3)
        return X.reshape(X.shape[0], X.shape[1], -1)

    def forward(self, queries, keys, values, valid_lens):
        queries = self.transpose_qkv(self.W_q(queries))
        keys = self.transpose_qkv(self.W_k(keys))
        values = self.transpose_qkv(self.W_v(values))
        valid_lens = torch.repeat_interleave(valid_lens, repeats=self.num_heads, dim=0)
        return self.W_o(self.transpose_output(self.attention(queries, keys, values, valid_lens)))


X, Y, valid_lens = torch.ones((2, 4, 10)), torch.ones((2, 6, 10)), torch.tensor([3, 2])
cell(30)
cell(31)
for number, keys in (32, Y), (35, X):
    multi_head_attention = MultiHeadAttention(10, 5, 0.5).eval()
    cell(number, multi_head_attention)
    output = multi_head_attention(X, keys, keys, valid_lens)
    weights = multi_head_attention.attention.attention_weights
    cell(number + 1, output, output.shape)
    cell(number + 2, weights, weights.shape)

# ---- the losses, beside the losses of the notebook ---------------------------------------------

original = 31.119806, 10.461807, 10.461460, 10.461108, 10.460758
furthest = max(abs(l - o) for l, o in zip(losses, original))
verdict = "PASS" if furthest < 1e-5 else "FAIL"
print(f"expect  furthest from the original's losses  {furthest:.4f} < 1e-05  {verdict}")
