"""Who may come in and what they may do: users, sessions, cross-site protection, limits, and the rule about addresses.

Owns: roles, passwords (argon2), session tokens, rate limits, what is said of who did what.
In: requests, the store's users and sessions. Out: a `Visitor`, or a refusal.
Imports: the agent, transport, tools.shared.
"""

from stillwatch.tools.station.access.addresses import Listening, check_listening, is_loopback
from stillwatch.tools.station.access.gate import ANYBODY, Gate, Refused, Visitor
from stillwatch.tools.station.access.limits import RateLimit
from stillwatch.tools.station.access.middleware import Doorkeeper, cookie_header
from stillwatch.tools.station.access.passwords import Passwords
from stillwatch.tools.station.access.roles import Role
from stillwatch.tools.station.access.users import add_user_arguments, manage_users

__all__ = [
    "ANYBODY",
    "Doorkeeper",
    "Gate",
    "Listening",
    "Passwords",
    "RateLimit",
    "Refused",
    "Role",
    "Visitor",
    "add_user_arguments",
    "check_listening",
    "cookie_header",
    "is_loopback",
    "manage_users",
]
