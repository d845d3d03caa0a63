"""StreamGreedy (Gomes, Krause 2010), its objectives, and examples of components.

In: rows and payloads. Out: exemplars.
Imports: base, kernels.
"""
