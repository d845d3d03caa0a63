"""The papers' experiments on the shared data.

Owns: designs, peers.
In: the shared data. Out: rows.
Imports: the agent, transport, tools.shared, tools.encoders, tools.survey.
"""
