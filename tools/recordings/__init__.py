"""Recordings replayed, inspected, repaired, exported and imported.

Owns: the forms of MCAP files.
In: recordings. Out: recordings, reports of what they hold.
Imports: the agent, transport, tools.shared, tools.report.
"""
