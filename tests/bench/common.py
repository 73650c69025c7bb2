"""common.py - for steps.py and steps_jax.py: options, samples, memory, a JSON object per line."""
import argparse
import json
import resource
import time


def read_options(paths):
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--cpu-time", action="store_true", help="of the process instead of the time on the wall")
    parser.add_argument("--path", choices=paths, default=paths[0])
    parser.add_argument("--compile", choices=["compiled", "autotuned"], help="by torch.compile, or its max-autotune")
    parser.add_argument("--losses", action="store_true", help="print the losses of the first three steps, measure nothing")
    parser.add_argument("case", help="nw, mha_tiny, ...; PyTorch: sdpa_2048 (any length); startup: one step, and when")
    return parser.parse_args()


def peak_memory():
    """The peak of the memory of this process until now, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(step, seconds, clock):
    """As measure() of common.c: a sample is a group of steps that takes 100 microseconds."""
    start, n = clock(), 0
    while n == 0 or (n < 3 and clock() - start < 10 * seconds) or (clock() - start < min(1, seconds) and n < 2000):
        step()
        n += 1
    group = max(1, int(100e-6 / ((clock() - start) / n)))
    samples, start = [], clock()
    while not samples or (len(samples) < 5 and clock() - start < 30 * seconds) or clock() - start < seconds:
        since = clock()
        for _ in range(group):
            step()
        samples.append((clock() - since) / group * 1e6)
    samples.sort()
    n = len(samples)
    return dict(median_us=samples[n // 2], p10_us=samples[n // 10], min_us=samples[0])


def run(options, make, footprint):
    """make() returns a function that does one step and returns its loss. footprint: the memory of the imports"""
    step = make()
    first = float(step())  # this step compiles, so it is not part of the warm-up
    if options.losses:
        print(options.case, options.path, options.compile or "", first, float(step()), float(step()))
        return
    clock = time.process_time if options.cpu_time else time.perf_counter
    timing = {key: round(us, 2) for key, us in measure(step, options.seconds, clock).items()}
    path = f"{options.path}, {options.compile}" if options.compile else options.path
    print(json.dumps(dict(case=options.case, path=path, threads=options.threads, **timing,
                          memory_mb=round(peak_memory() - footprint, 1))))
