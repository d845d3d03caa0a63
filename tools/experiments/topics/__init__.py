"""The topic model against its peers: known topics, joint segmentation, retrieval of documents.

Owns: its corpora, its peers.
In: the shared data. Out: rows.
Imports: the agent, transport, tools.shared, tools.experiments.
"""
