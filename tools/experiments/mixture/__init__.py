"""The mixture against its peers: synthetic clusters, digits, MNIST, patches, a continuum.

Owns: its designs, its peers.
In: the shared data. Out: rows.
Imports: the agent, transport, tools.shared, tools.experiments.
"""
