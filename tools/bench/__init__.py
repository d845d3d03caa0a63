"""Speed and memory, against a peer in the same run.

Owns: what is timed, and how.
In: sizes. Out: rows.
Imports: the agent, transport, tools.shared, tools.evaluate.
"""
