"""The version of PyTorch that makes the golden numbers. Every generator imports torch from here:

    python3 -m venv DIR && DIR/bin/pip install torch==2.15 numpy safetensors expecttest
    DIR/bin/python tests/golden/generate_nn.py

The last bits of PyTorch's numbers depend on the machine. With the settings below a generator writes the
same bytes on every x86-64 CPU that has AVX2 and is not made by Intel:

- PyTorch uses its code for AVX2, also on CPUs with AVX-512. Most users get these digits: a uniform number
  between bounds, and so an initial weight of Linear, is u (high - low) + low with one rounding in the
  code for AVX2 and for AVX-512. Only the portable code, for CPUs older than 2013, rounds twice.
- MKL uses code that runs on all CPUs; oneDNN is off; there is one thread.
- On Intel's CPUs dropout and bernoulli draw from MKL's generator. The library draws as PyTorch does on all
  other CPUs: a number of 53 bits is compared with p. On Intel's CPUs this file ends with an error.
"""
import os
import sys

os.environ["ATEN_CPU_CAPABILITY"] = "avx2"
os.environ["MKL_CBWR"] = "COMPATIBLE"
import torch

torch.set_num_threads(1)
torch.backends.mkldnn.enabled = False  # before the import of torch.testing, which locks the setting

if not torch.__version__.startswith("2.15."):
    sys.exit(f"this is torch {torch.__version__}, and the golden numbers come from 2.15")
expected = torch.rand(64, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) < 0.5
if not torch.equal(expected, torch.empty(64).bernoulli_(0.5, generator=torch.Generator().manual_seed(0)).bool()):
    sys.exit("PyTorch's dropout draws from MKL's generator on this CPU, which is Intel's")
