"""The suite that keeps figures honest: real clips, other starts, transforms, made worlds with exact truth.

In: the shared data, seeds. Out: rows of found, false and AUC by group.
Imports: agent, the rest of evaluate.
"""
