"""Is an agent well? One rule for /healthz, `stillwatch health` and the service manager's watchdog.

Read from a status message and its age. It must not ask the agent anything: one that hangs could not answer.
"""

from dataclasses import dataclass

from stillwatch.transport.wire import messages as m

STATUS_LATE_S = 30.0  # heartbeats come every ten seconds or more often: so long without one, and the process hangs
FRAME_LATE_S = 30.0
WELL = frozenset({"live", "dark", "overexposed"})  # a night is not a fault
LITTLE_DISK_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether an agent is well, and if not, every reason. `last_frame_age_s` is None before the first frame.

    `unsure`: why its alerts are not to be relied on yet, learning, busy_start or weather; an agent that learns is well.
    """

    ok: bool
    state: str
    last_frame_age_s: float | None
    alerts: int
    reasons: tuple[str, ...]
    unsure: str = ""


def judge(status: m.Status | None, age_s: float, *, ended: bool = False) -> Judgement:
    """Return the judgement of a status that is `age_s` seconds old; None: none was ever heard."""
    if status is None:
        return Judgement(False, "unknown", None, 0, ("no status was ever heard",))
    frame_age_s = None if status.frame_age_s is None else status.frame_age_s + max(age_s, 0.0)
    reasons = []
    if ended:
        reasons.append("the run has ended")
    elif age_s > STATUS_LATE_S:
        reasons.append(f"no status for {age_s:.0f} s")
    elif status.state not in WELL:
        reasons.append(f"source is {status.state}")
    if not ended and frame_age_s is None:
        reasons.append("no frame yet")
    elif not ended and frame_age_s is not None and frame_age_s > FRAME_LATE_S:
        reasons.append(f"no new frame for {frame_age_s:.0f} s")
    if status.disk_free_bytes is not None and status.disk_free_bytes < LITTLE_DISK_BYTES:
        reasons.append(f"{status.disk_free_bytes} bytes free on the disk")
    state = "ended" if ended else status.state
    return Judgement(not reasons, state, frame_age_s, status.alerts, tuple(reasons), status.unsure)
