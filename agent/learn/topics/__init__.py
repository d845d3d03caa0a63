"""The memory-bounded topic model: documents share topics, each mixes them in its own way (thesis chapter 3).

Owns: documents, their groups and alpha; the rest is mixture/'s, whose clumps and moves it shares: a mixture is the case
of one document.
In: words (rows) by document. Out: topics, shares of documents, densities.
Imports: base, kernels.
"""
