"""Mixtures of several groups that share their clusters (Steinberg 2013): GMC, S-GMC, BGMM, VDP, SCM, MCM.

Owns: weights by group, Gaussian clusters from sums, the variational rounds, greedy splits; all rows are held at once.
In: rows or clumps, and the group of each. Out: clusters, weights by group, labels, densities, free energy.
Imports: nothing of ours.
"""
