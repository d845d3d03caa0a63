"""Speed and memory, against a peer in the same run.

In: sizes. Out: rows.
Imports: agent, transport, evaluate.
"""
