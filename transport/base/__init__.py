"""What every wing of transport needs of its caller: a clock.

In: nothing. Out: the clock's protocol.
Imports: nothing of ours.
"""

from stillwatch.transport.base.clock import Clock

__all__ = ["Clock"]
