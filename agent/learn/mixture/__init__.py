"""The memory-bounded variational Dirichlet process mixture (Gomes, Welling, Perona 2008) and its predictive.

Owns: components, clumps and the points still held; build.py makes a model, compress.py makes clumps.
In: rows. Out: components, clumps, densities.
Imports: base, kernels.
"""
