"""How a station bears a fleet, and how fast its pages are when it keeps much.

Owns: what is measured, and how. In: sizes. Out: rows. Used by the `bench station` command.
Imports: the agent, transport, tools.shared.
"""
