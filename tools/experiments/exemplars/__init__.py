"""StreamGreedy against its peers: clusters, digits, scale, Gaussian processes, frames.

In: the shared data. Out: rows.
Imports: learn, tools' data.
"""
