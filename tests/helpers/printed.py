"""What a command printed with --json, held to the schema that is published for it."""

import json
from typing import Any

import jsonschema

from stillwatch.tools.pages.schemas import SCHEMAS

# Commands that compute for minutes: each in as little as it takes, by tests/soak/test_long_commands.py. CLIP: a clip.
LONG_CALLS = {
    "bench detectors": ["CLIP", "EVENTS"],
    "bench files": ["CLIP", "--turns", "1"],
    "bench pipeline": ["--frames", "30", "--size", "640x480", "--cores", "1"],
    "evaluate novelty": ["CLIP", "EVENTS", "--baselines", "difference"],
    "experiment encoders": ["--dims", "8"],
    "experiment exemplars-frames": ["--methods", "random"],
    "experiment exemplars-gp": ["--rows", "1000", "--methods", "random"],
    "experiment exemplars-mnist": ["--rows", "1000", "--order", "shuffled", "--methods", "streamgreedy", "random"],
    "experiment exemplars-scale": ["--rows", "20000"],
    "experiment mixture-mnist": ["--rows", "2000", "--memory", "1500", "--order", "shuffled"],
    "experiment mixture-patches": ["--rows", "2000", "--memory", "1500", "--order", "shuffled"],
    "experiment survey-caltech": ["--methods", "kmeans", "sgmc", "--trials", "1"],
    "experiment survey-transects": ["--methods", "kmeans", "sgmc", "--trials", "1", "--every", "60"],
    "experiment topics-retrieval": ["--documents", "12", "--classes", "3", "--memory", "2000", "--no-peers"],
    "faults": ["--only", "grey"],
}


def of_schema(command: str, text: str) -> Any:
    """Return the one JSON value on the one line of `text`; it must have the command's schema and no NaN."""
    lines = text.splitlines()
    assert len(lines) == 1, lines
    value = json.loads(text, parse_constant=_refuse)
    jsonschema.validate(value, SCHEMAS[command])
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
