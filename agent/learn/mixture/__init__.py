"""The memory-bounded variational Dirichlet process mixture (Gomes, Welling, Perona 2008) and its predictive.

In: rows. Out: components, clumps, densities.
Imports: base, kernels.
"""
