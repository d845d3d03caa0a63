"""StreamGreedy against its peers: clusters, digits, scale, Gaussian processes, frames.

Owns: its designs, its peers.
In: the shared data. Out: rows.
Imports: the agent, transport, tools.shared, tools.experiments.
"""
