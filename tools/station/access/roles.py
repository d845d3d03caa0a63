"""What a user may do: see, act on what is seen, administer the station. Each may all that the ones before it may.

Used by everything in tools/station that lets somebody do something.
"""

import enum


class Role(enum.StrEnum):
    """`see` reads; `act` acknowledges, notes, labels, mutes, commands agents; `administer` reads the audit log too."""

    SEE = "see"
    ACT = "act"
    ADMINISTER = "administer"

    def may(self, needed: "Role") -> bool:
        """Whether this role holds what another allows."""
        order = list(Role)
        return order.index(self) >= order.index(needed)
