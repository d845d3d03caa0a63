"""Going on after a restart: finds the newest good checkpoint and says where the stream goes on.

Called by agent/process/app.py once at start. It must not guess: a checkpoint that does not fit is refused with a
message.
"""

import datetime
import logging
import pathlib
from dataclasses import dataclass
from typing import Any

from stillwatch.base import SnapshotError, redact_uri
from stillwatch.pipeline import Pipeline
from stillwatch.restart import checkpoint
from stillwatch.settings import Config, config_hash

logger = logging.getLogger(__name__)

SEAM_NS = 1_000_000_000  # stream time between the last frame before a restart and the first one after it


@dataclass(frozen=True, slots=True)
class Resumed:
    """Where a run goes on.

    Attributes
    ----------
    path : Path
        The checkpoint.
    first_sequence : int
        Number for the first frame that the source gives.
    skip_before : int
        Frames numbered below this were taken before the restart: a file is read again from its start.
    t_offset_ns : int
        Added to the stream time of new frames, so that it goes on where it was.
    last_t_ns : int
        Stream time of the last frame before the restart.
    told : str
        When the checkpoint was saved and after which frame, for people.
    after_crash : bool
        A live stream went on after this checkpoint: event ids may have been given that it does not know.
    """

    path: pathlib.Path
    first_sequence: int
    skip_before: int
    t_offset_ns: int
    last_t_ns: int
    told: str = ""
    after_crash: bool = False


def resume(config: Config, folder: pathlib.Path, pipeline: Pipeline) -> Resumed | None:
    """Restore the newest good checkpoint into the pipeline; None where there is none.

    Raises
    ------
    SnapshotError
        The checkpoint is good but of another version, or of settings that its state does not fit.
    """
    found = checkpoint.load_newest(folder)
    if found is None:
        return None
    state, meta, path = found
    try:
        pipeline.restore(state)
    except SnapshotError as error:
        raise SnapshotError(
            f"{path.name} does not fit this config ({error}): start with --fresh, or give another --out"
        ) from None
    if meta.get("config_hash") != config_hash(config):
        logger.warning("%s was saved under another config: what was learnt is kept", path.name)
    return position_of(config, meta, path)


def position_of(config: Config, meta: dict[str, Any], path: pathlib.Path) -> Resumed:
    """An interrupted file goes on at its next frame; anything else is new footage after the old."""
    next_sequence = int(meta["next_sequence"])
    last_t_ns = int(meta["t_ns"])
    told = f"{_saved_at(path)}frame {next_sequence - 1}"
    same = meta.get("source") == redact_uri(config.source.uri)
    if same and not meta.get("finished", False) and not meta.get("live", False):
        return Resumed(path, 0, next_sequence, 0, last_t_ns, told)
    return Resumed(
        path, next_sequence, next_sequence, last_t_ns + SEAM_NS, last_t_ns, told, not meta.get("at_end", False)
    )


def _saved_at(path: pathlib.Path) -> str:
    """Return the UTC time at which a file was written, as people say it; empty where it cannot be found out."""
    try:
        return datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC, ")
    except OSError:
        return ""
