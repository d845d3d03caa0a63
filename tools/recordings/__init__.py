"""Recordings made, replayed, inspected, repaired, exported and imported.

In: recordings. Out: recordings, reports of what they hold.
Imports: agent, transport, report.
"""
