"""One message of every kind with every field set, always the same: golden bytes, fuzzing and round trips start here.

A kind that nobody wrote an example of is filled from its types, so that none can be left out.
"""

from typing import Any

import msgspec
import numpy as np

from stillwatch.transport.wire import array_fields
from stillwatch.transport.wire import messages as m

HEADER = {
    "agent": "cam1", "run": "20260102T030405Z-1", "boot": "b00t", "epoch": 3, "sequence": 41, "t_ns": 12_000_000_000,
    "mono_ns": 98_000_000_001, "wall_ns": 1_767_322_800_000_000_000, "source_ns": 11_999_999_999, "frame": 360,
}  # fmt: skip


def _grid(dtype: str, *shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape)).reshape(shape) / 8.0).astype(dtype)


def examples() -> dict[str, m.Message]:
    """Return a fully filled message of each kind, by kind."""
    made = {m.kind_of(message): message for message in _written()}
    return {m.kind_of(kind): made.get(m.kind_of(kind)) or filled(kind) for kind in m.MESSAGES}


def filled(kind: type[m.Message]) -> m.Message:
    """Return a message of this kind whose own fields are filled from their types, none with its default."""
    own = [field for field in msgspec.inspect.type_info(kind).fields if field.name not in m.Message.__struct_fields__]
    return kind(**HEADER, **{field.name: _value(field.type, array_fields(kind).get(field.name)) for field in own})


def _value(form: Any, array: tuple | None = None) -> Any:
    """Return a value within the limits of a type; arrays have two elements along each named dimension."""
    match form:
        case msgspec.inspect.Metadata():
            return _value(form.type, array)
        case msgspec.inspect.UnionType():
            return _value(next(part for part in form.types if not isinstance(part, msgspec.inspect.NoneType)), array)
        case msgspec.inspect.CustomType() if array is not None:
            (dtype, *_), shape = array
            return _grid(dtype, *(size if isinstance(size, int) else 2 for size in shape))
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.IntType():
            return max(form.ge or 0, 3) if form.le is None or form.le >= 3 else form.le
        case msgspec.inspect.FloatType():
            limits = [limit for limit in (form.le, form.lt) if limit is not None]
            return min([(form.ge or form.gt or 0.0) + 0.5, *limits])
        case msgspec.inspect.StrType():
            return form.pattern.strip("^$()").split("|")[0] if form.pattern else "text"
        case msgspec.inspect.BytesType():
            return b"bytes"
        case msgspec.inspect.DictType():
            return {_value(form.key_type): _value(form.value_type)}
        case msgspec.inspect.ListType():
            return [_value(form.item_type)]
        case msgspec.inspect.StructType():
            return form.cls(**{field.name: _value(field.type) for field in form.fields})
    raise TypeError(f"{form}: write an example of a message that has such a field")


def _written() -> list[m.Message]:
    return [
        m.Status(
            **HEADER,
            state="live",
            learning=0.5,
            frames=361,
            accepted=350,
            refused={"dark": 11},
            dropped=2,
            events=3,
            alerts=1,
            suppressed={"budget": 2},
            drops={"score": 4},
            sequences={"score": 361},
            tx_bytes={"live": 70_000},
            epochs={"patches": 4},
            model_hash="00112233aabbccdd",
            encoder_hash="e" * 16,
            config_hash="c" * 16,
            memory_bytes=50_000_000,
            rss_bytes=150_000_000,
            cpu_seconds=12.5,
            temperature_c=41.25,
            disk_free_bytes=2**40,
            rate_hz=30.0,
            frame_age_s=0.03125,
            versions={"stillwatch": "0.1.0"},
            source_kind="rtsp",
            source_uri="rtsp://***@cam/1",
            endpoints={"data": "tcp://127.0.0.1:5570"},
        ),
        m.Score(**HEADER, value=3.5, rarity=1024.0, frame_surprise=-20.25, event=7, accepted=True, reason=""),
        m.Scores(
            **HEADER,
            first=357,
            frames=np.array([350, 352, 359, 360]),
            offsets=np.array([-9000, -7000, -800, 0], np.int16),
            flags=np.array([1, 28, 2, 20], np.uint8),
            values=np.array([3.5, -0.25], np.float16),
            rarities=np.array([1024.0], np.float16),
            surprises=np.array([-20.25, 7.0], np.float16),
            events=np.array([-1, 7, 7, 7]),
            reasons=["dark"],
        ),
        m.Alert(
            **HEADER,
            id=7,
            alert_kind="novelty",
            phase="update",
            severity=0.75,
            start_frame=350,
            start_t_ns=11_000_000_000,
            duration_s=1.5,
            peak=9.25,
            rarity=4096.0,
            x=0.5,
            y=0.25,
            boxes=_grid("f4", 2, 4),
            component=19,
            exemplar=4,
            history=_grid("f4", 5),
            nav=m.Position(latitude=54.5, longitude=10.25, depth_m=20.5, altitude_m=2.0, heading_deg=270.0),
            thumbnail=b"\xff\xd8jpeg\xff\xd9",
        ),
        m.Model(
            **HEADER,
            which="patches",
            covariance="diagonal",
            n_dims=3,
            n_components=2,
            model_epoch=4,
            activated_frame=352,
            free_energy=12.5,
            ids=np.array([19, 4]),
            counts=_grid("f8", 2),
            weights=_grid("f4", 2),
            means=_grid("f4", 2, 3),
            variances=_grid("f4", 2, 3),
            prior_mean=_grid("f4", 3),
            prior_scale=_grid("f4", 3),
            prior_strength=0.25,
            prior_dof=3.0,
            concentration=1.0,
            horizon=10_000,
            seconds=0.5,
            splits=1,
            merges=2,
            clumps=30,
            singlets=5,
            born=np.array([19]),
            died=np.array([2, 3]),
            labels={"19": "sand"},
        ),
        m.Clumps(
            **HEADER,
            which="scenes",
            model_epoch=4,
            n_clumps=9,
            counts=_grid("f4", 3),
            means=_grid("f2", 3, 3),
            variances=_grid("i1", 3, 3),
            mean_scale=_grid("f4", 3),
            mean_offset=_grid("f4", 3),
            variance_scale=_grid("f4", 3),
            covariance="full",
            n_singlets=4,
            total=120.5,
            memory=200,
            clump_points=99.0,
            epoch_size=100,
            components=np.array([19, 4, 4], np.int32),
            variance_logs=_grid("i1", 2, 3),
            log_scale=_grid("f4", 3),
            log_offset=_grid("f4", 3),
            correlations=_grid("i1", 2, 3),
            correlation_steps=_grid("f4", 2),
            shift=_grid("f4", 3),
            scale=_grid("f4", 3),
            component_ids=np.array([19, 4], np.int32),
            component_counts=_grid("f4", 2),
            component_means=_grid("i2", 2, 3),
            component_variance_logs=_grid("i1", 2, 3),
            component_correlations=_grid("i1", 2, 3),
            component_correlation_steps=_grid("f4", 2),
        ),
        m.Exemplar(
            **HEADER,
            id=4,
            exemplar_frame=100,
            exemplar_t_ns=3_000_000_000,
            share=0.25,
            component=19,
            role="most_typical",
            label="sand",
            removed=np.array([1, 2]),
            thumbnail=b"\xff\xd8jpeg\xff\xd9",
        ),
        m.GateChange(**HEADER, state="dark", reason="dark", previous="open", scene_change=True),
        m.SourceChange(
            **HEADER, state="stalled", previous="live", detail="no frame", stream_epoch=1, width=384, height=288
        ),
        m.LogNotice(**HEADER, level="warning", code="disk_full", text="1 MB left", count=3),
        m.Summary(
            **HEADER,
            frames=361,
            accepted=350,
            refused={"dark": 11},
            dropped=2,
            events=3,
            alerts=1,
            hash="a" * 16,
            exit_code=0,
            reason="end of source",
        ),
    ]
