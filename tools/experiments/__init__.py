"""The papers' experiments on the shared data.

In: the shared data. Out: rows.
Imports: agent, tools' data.
"""
