"""Surveys of labelled pictures: how well clusters found without labels agree with them, by method and grouping.

Owns: the labelled sets, artificial groups, methods and their peers.
In: class folders, the shared data, a made world. Out: rows.
Imports: the agent, transport, tools.shared, tools.survey.
"""
