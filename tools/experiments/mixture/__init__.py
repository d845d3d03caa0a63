"""The mixture against its peers: synthetic clusters, digits, MNIST, patches.

In: the shared data. Out: rows.
Imports: learn, tools' data.
"""
