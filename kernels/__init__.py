"""The loops that are compiled: descriptors, mixture, exemplars, Gaussian processes. numba stays here.

Owns: signatures, decorators and cache (_jit.py), what compiles them all (warm_up.py).
In: arrays and workspaces that the caller allocated. Out: the same arrays, filled.
Imports: nothing of ours.
"""

if __name__ != "stillwatch.kernels":
    raise ImportError("import stillwatch.kernels, not kernels: a second copy of every class would follow")
