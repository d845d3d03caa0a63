"""The form of what commands print with --json: JSON Schema (2020-12), by command.

Printed by `stillwatch reference schema`; tests run the commands and hold their output to it. Names may be added; none
goes, and none changes its type. It must not hold a command's words.
"""

from typing import Any

Schema = dict[str, Any]

NUMBER: Schema = {"type": "number"}
TEXT: Schema = {"type": "string"}
YES: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
ANY: Schema = {"type": "object"}
MAYBE_YES: Schema = {"type": ["boolean", "null"]}
MAYBE_COUNT: Schema = {"type": ["integer", "null"], "minimum": 0}
MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
COUNTS: Schema = {"type": "object", "additionalProperties": COUNT}
NUMBERS: Schema = {"type": "object", "additionalProperties": NUMBER}
# Columns of measurements that are no numbers; all others are numbers, or null where they do not apply.
COLUMNS: dict[str, Schema] = dict.fromkeys(
    (
        "method",
        "order",
        "covariance",
        "grouping",
        "part",
        "encoder",
        "scene",
        "clip",
        "group",
        "kernel",
        "size",
        "tails",
    ),
    MAYBE_TEXT,
) | {"stages": NUMBERS, "baselines": ANY}


def _object(**names: Schema) -> Schema:
    return {"type": "object", "properties": names, "required": list(names)}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _with(schema: Schema, **names: Schema) -> Schema:
    """The object, and these names too."""
    return _object(**schema["properties"], **names)


def _measured(names: str, **more: Schema) -> Schema:
    """Rows of measurements, of which each has at least these columns."""
    return _object(rows=_list(_columns(names)), **more)


def _columns(names: str) -> Schema:
    return _object(**{name: COLUMNS.get(name, MAYBE_NUMBER) for name in names.split()})


def _tagged(**kinds: Schema) -> Schema:
    """One object a line, of which `what` says what it is."""
    return {"oneOf": [_with(schema, what={"const": what}) for what, schema in kinds.items()]}


_MIXTURE = "method order memory seed log_likelihood free_energy components ari accuracy seconds peak_rss_mb state_bytes"
_EXEMPLARS = "method order k block validation seen utility train_loss test_loss mse seconds peak_rss_mb state_bytes"
_TOPICS = (
    "method memory groups documents topics log_likelihood free_energy_ratio ari accuracy seconds cpu_seconds "
    "state_bytes peak_rss_mb"
)
_SURVEYS = "method grouping groups nmi v_measure ari clusters free_energy seconds"
_NOVELTY = "clip frames scored_from auc events_total events_found false_alerts median_delay_s fps peak_rss_mb baselines"
_EVENT = _object(
    id=COUNT,
    kind=TEXT,
    phase=TEXT,
    t_utc=MAYBE_TEXT,
    stream_s=MAYBE_NUMBER,
    frame=MAYBE_COUNT,
    end_frame=MAYBE_COUNT,
    duration_s=NUMBER,
    severity=NUMBER,
    how_rare=TEXT,
    watched_s=MAYBE_NUMBER,
    judged=MAYBE_COUNT,
    visits=MAYBE_COUNT,
    alike=MAYBE_COUNT,
    here=MAYBE_COUNT,
    visit_kind=MAYBE_COUNT,
    rarity=MAYBE_NUMBER,
    score=MAYBE_NUMBER,
    boxes=_list(_list(NUMBER)),
    nearest=MAYBE_COUNT,
)
_KIND = _object(  # of visits: events --kinds
    kind=COUNT,
    name=MAYBE_TEXT,
    visits=COUNT,
    first_s=NUMBER,
    last_s=NUMBER,
    once_in_s=MAYBE_NUMBER,
    picture_frame=MAYBE_COUNT,
    run=TEXT,
    picture=MAYBE_TEXT,
)
_DAMAGE = _list(_object(file=TEXT, offset=COUNT, end=COUNT, reason=TEXT))
_OUTBOX = _object(path=TEXT, put=COUNT, acknowledged=COUNT, waiting=COUNT, damage=_DAMAGE, whole=YES)
_INSPECTED: Schema = {
    "anyOf": [
        _object(path=TEXT, files=COUNT, bytes=COUNT, records=COUNTS, record_bytes=COUNTS),
        _object(file=TEXT, bytes=COUNT, meta=ANY, whole=YES, arrays=_list(_object(name=TEXT, bytes=COUNT))),
        _OUTBOX,
        _object(path=TEXT, outboxes=_list(_OUTBOX), whole=YES),
    ]
}
_RUN = _tagged(
    alert=_EVENT,
    notice=_object(level=TEXT, code=TEXT, text=TEXT),
    note=_object(text=TEXT),
    end=_object(reason=TEXT, exit_code=COUNT, frames=COUNT, accepted=COUNT, dropped=COUNT, refused=COUNTS, folder=TEXT),
)

SCHEMAS: dict[str, Schema] = {
    "run": _RUN,
    "record": _RUN,
    "ground-thin": {"type": "object", "properties": {"what": TEXT}, "required": ["what"]},
    "events": {
        "anyOf": [
            _object(rows=_list(_with(_EVENT, run=TEXT, picture=MAYBE_TEXT, clip=MAYBE_TEXT))),
            _object(rows=_list(_KIND)),
        ]
    },
    "scores": _object(
        rows=_list(
            _object(
                frame=COUNT, t_utc=MAYBE_TEXT, stream_s=NUMBER, score=MAYBE_NUMBER, rarity=MAYBE_NUMBER, state=TEXT
            )
        )
    ),
    "topics": _object(
        rows=_list(_object(run=TEXT, frame=COUNT, stream_s=NUMBER, topic=COUNT, name=MAYBE_TEXT, share=NUMBER))
    ),
    "find": _object(rows=_list(_object(run=TEXT, sequence=MAYBE_COUNT, t_utc=TEXT, score=NUMBER, picture=MAYBE_TEXT))),
    "clips": _object(clips=_list(_object(alert=COUNT, file=TEXT, bytes=COUNT)), missed=_list(COUNT)),
    "replay": _object(hash=TEXT, recorded_hash=TEXT, equal=MAYBE_YES, frames=COUNT, speed=NUMBER, cpu_seconds=NUMBER),
    "compare": _object(
        a=ANY, b=ANY, both=_list({"type": "array"}), only_a=_list(ANY), only_b=_list(ANY), config=_list(ANY), equal=YES
    ),
    "inspect": _INSPECTED,
    "recover": _object(
        records=COUNT,
        lost_records=COUNT,
        bytes=COUNT,
        by_kind=COUNTS,
        damage=_DAMAGE,
        missing=_list(_object(file=TEXT, first=COUNT, last=COUNT)),
        damaged_checkpoints=_list(TEXT),
    ),
    "survey": _object(
        items=COUNT,
        groups=_list(_object(name=TEXT, items=NUMBER, weights=_list(NUMBER))),
        clusters=_list(_object(id=COUNT, weight=NUMBER, count=NUMBER, exemplars=_list(TEXT))),
        labels={"type": ["object", "null"]},
        free_energy=NUMBER,
        seconds=NUMBER,
    ),
    "health": _object(
        ok=YES, state=TEXT, last_frame_age_s=MAYBE_NUMBER, alerts=COUNT, reasons=_list(TEXT), unsure=TEXT
    ),
    "doctor": _object(rows=_list(_object(check=TEXT, ok=YES, found=TEXT, remedy=TEXT)), ok=YES),
    "linksim": COUNTS,
    "check-config": _object(
        errors=_list(_object(file=TEXT, key=TEXT, message=TEXT)),
        memory=_list(_object(stage=TEXT, bytes=COUNT)),
        total_bytes=MAYBE_COUNT,
        resident_bytes=MAYBE_COUNT,
        limit_bytes=MAYBE_COUNT,
    ),
    "warm-up": _object(kernels=COUNT, seconds=NUMBER, cache=MAYBE_TEXT),
    "fit-encoder": _object(file=TEXT, hash=TEXT, patches=COUNT, frames=COUNT, patch_dims=COUNT, frame_dims=COUNT),
    "fit-dictionary": _object(file=TEXT, pictures=COUNT, patches=COUNT, atoms=COUNT, bytes=COUNT),
    "faults": _object(
        rows=_list(
            _object(
                input=TEXT, expected=TEXT, outcome=TEXT, frames=COUNT, refused=COUNTS, seconds=NUMBER,
                peak_rss_mb=MAYBE_NUMBER,
            )
        )
    ),
    "evaluate novelty": {"anyOf": [_columns(_NOVELTY), _measured(_NOVELTY)]},
    "evaluate suite": _measured(
        "clip group auc events_total events_found false_alerts median_delay_s hours",
        found=COUNT,
        total=COUNT,
        false_alerts_per_hour=MAYBE_NUMBER,
        mean_auc=MAYBE_NUMBER,
    ),
    "bench features": _measured("size kernel threads ms descriptors ratio_to_opencv"),
    "bench mixture": _measured("method dims covariance memory learnt_per_s scored_per_s"),
    "bench transport": _object(rows=_list(ANY)),
    "bench pipeline": _measured("size cores fps p50_ms p99_ms stages rss_mb rss_slope_mb_per_1e5"),
    "bench find": _measured("frames with_shares found seconds cpu_s peak_rss_mb"),
    "bench survey": _measured("tails rows dives seconds cpu_s peak_rss_mb clusters rounds free_energy"),
    "bench files": _object(clip=TEXT, rows=_list(_object(row=TEXT, fps=NUMBER, turns=_list(NUMBER)))),
    "bench station": _object(rows=_list(ANY)),
    "bench detectors": _measured("method events_found events_total false_alerts median_delay_s seconds"),
    **{
        f"experiment mixture-{name}": _measured(_MIXTURE) for name in ("synthetic", "digits", "mnist", "patches")
    },
    "experiment mixture-continuum": _measured(
        "dims covariance memory order method gap log_likelihood components clumps singlets seconds"
    ),
    **{
        f"experiment exemplars-{name}": _measured(_EXEMPLARS)
        for name in ("synthetic", "mnist", "scale", "gp", "frames")
    },
    **{
        f"experiment topics-{name}": _measured(_TOPICS)
        for name in ("synthetic", "ground", "segmentation", "retrieval")
    },
    **{f"experiment survey-{name}": _measured(_SURVEYS) for name in ("caltech", "scenes", "transects")},
    "experiment survey-clumps": _object(rows=_list(ANY)),
    "experiment novelty-digits": _measured("method auc_unseen auc_between"),
    "experiment encoders": _measured("scene part encoder dims variance_kept neighbours_kept auc"),
}  # fmt: skip
