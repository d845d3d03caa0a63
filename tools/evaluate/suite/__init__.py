"""The suite that keeps figures honest: real clips, other starts, transforms, made worlds with exact truth.

Owns: the cases, and which seeds are held.
In: the shared data, seeds. Out: rows of found, false and AUC by group.
Imports: the agent, transport, tools.shared, tools.evaluate.
"""
