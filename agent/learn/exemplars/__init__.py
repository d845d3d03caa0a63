"""StreamGreedy (Gomes, Krause 2010), its objectives, and examples of components.

Owns: the exemplars and their payloads, the validation sample, swaps.
In: rows and payloads. Out: exemplars.
Imports: base, kernels.
"""
