"""The text of a systemd unit that runs one agent for months.

Written out by `stillwatch service`. It must not contain a secret: they come by LoadCredential.
"""

import os
import pathlib
import re
import sys
from dataclasses import dataclass

from stillwatch.base import ExitCode, UsageError, shown

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
MEMORY_MARGIN = 1.25  # over limits.memory_bytes, where the agent has said so itself: the kernel then ends it
HARDENING = """\
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
ProtectProc=invisible
ProcSubset=pid
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
LockPersonality=yes
RemoveIPC=yes
CapabilityBoundingSet=
AmbientCapabilities=
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
UMask=0027
"""


@dataclass(frozen=True, slots=True)
class Service:
    """What the unit of one agent depends on.

    Attributes
    ----------
    name : str
        Of the service: stillwatch-NAME.service, and of its folder below /var/lib/stillwatch.
    config : Path
        Absolute.
    memory_bytes : int
        limits.memory_bytes of the config.
    camera : bool
        The source is a V4L2 device, which the service may then use.
    credentials : tuple of (id, path)
        Files that the service reads as ${file:/run/credentials/stillwatch-NAME.service/ID}.
    """

    name: str
    config: pathlib.Path
    memory_bytes: int
    camera: bool = False
    credentials: tuple[tuple[str, str], ...] = ()
    python: str = sys.executable

    @property
    def unit(self) -> str:
        return f"stillwatch-{self.name}.service"


def unit_text(service: Service) -> str:
    """Return the unit file. UsageError for names and paths that systemd would take for something else."""
    if not NAME.fullmatch(service.name):
        raise UsageError(f"{service.name!r}: a service name is of a-z, 0-9, - and _, at most 32 of them")
    for path in (service.python, str(service.config), *(path for _, path in service.credentials)):
        if not path.startswith("/") or re.search(r"[\s\"'\\%$:;]", path):
            raise UsageError(f"{path!r}: systemd needs an absolute path without spaces, quotes, %, $, : and ;")
        if shown(path).encode() != os.fsencode(path):
            raise UsageError(f"{shown(path)}: systemd needs a path in UTF-8; give the file another name")
    for name, _ in service.credentials:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
            raise UsageError(f"{name!r}: a credential's id is of letters, digits, - _ and .; give another")
    home = f"stillwatch/{service.name}"
    command = f"{service.python} -m stillwatch.tools.cli"
    devices = "DevicePolicy=closed\nDeviceAllow=char-video4linux rw\nSupplementaryGroups=video\n"
    credentials = "".join(f"LoadCredential={name}:{path}\n" for name, path in service.credentials)
    return f"""\
# Written by `stillwatch service install {service.name}`; make changes in a drop-in (systemctl edit {service.unit}).
[Unit]
Description=Stillwatch agent {service.name}
Wants=network-online.target
After=network-online.target time-sync.target
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
DynamicUser=yes
StateDirectory={home}
CacheDirectory={home}
WorkingDirectory=%S/{home}
Environment=STILLWATCH_CACHE_DIR=%C/{home} OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
ExecStartPre={command} warm-up
ExecStart={command} run {service.config} --out %S/{home}/run --log journald
ExecReload=/bin/kill -HUP $MAINPID
{credentials}TimeoutStartSec=900
TimeoutStopSec=10
WatchdogSec=60
Restart=on-failure
RestartSec=5
RestartPreventExitStatus={int(ExitCode.CONFIG)} {int(ExitCode.USAGE)}
MemoryMax={int(service.memory_bytes * MEMORY_MARGIN)}
{devices if service.camera else "PrivateDevices=yes" + chr(10)}{HARDENING}
[Install]
WantedBy=multi-user.target
"""
