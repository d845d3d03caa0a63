"""What keeps an agent running for months where nobody looks: is it well, is the place right, the service.

Owns: the systemd unit's text, the list of checks of a site.
In: run folders, endpoints, configs. Out: lines, exit codes, a unit file.
Imports: the agent, transport, tools.shared.
"""
