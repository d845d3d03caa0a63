"""What every wing of transport needs of its caller: a clock.

Owns: the clock's protocol.
In: nothing. Out: the protocol.
Imports: nothing of ours.
"""

from stillwatch.transport.base.clock import Clock

__all__ = ["Clock"]
