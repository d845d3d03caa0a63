"""Clumps on the wire: what a mixture keeps of its data, made small, and as a learner takes it back.

Called by agent/pipeline/summaries.py, and by whoever learns from clumps received: surveys, notebooks. It must not
send what it cannot read: a clump comes back with its variances to 4 % and positive definite.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from stillwatch.transport.wire.codec import encode
from stillwatch.transport.wire.errors import DecodeError, EncodeError
from stillwatch.transport.wire.messages import Clumps
from stillwatch.transport.wire.topics import TOPICS

HEAD_BYTES = 8192  # of a message of 64 dimensions, without its clumps
LEAST_SHARE = 1e-8  # a variance below this share of its column's largest is sent as that
# Of a component's mean, from the middle of its column to the end. A half float is too coarse far from the middle: under
# a still camera components are narrow, and 0.08 nats a row were lost.
MEAN_STEPS = 32767
LEAST_VARIANCE = 1e-5  # of a column of the factor of correlations, given those before it: codes say no less


def clump_fields(clumps: Mapping[str, np.ndarray], most_bytes: int = TOPICS["clumps"].max_bytes) -> dict[str, Any]:
    """Return the fields of a Clumps message that say as many of the largest clumps as fit, in their order.

    Parameters
    ----------
    clumps : mapping of str to ndarray
        As `MemoryBoundedMixture.clumps_` gives them: count (n,), mean (n, d), variance (v, d) or covariance
        (v, d (d + 1) / 2), component (n,), shift and scale (d,); where they are told, the components by the same
        names behind component_. These are left out where they would take more than half of the message.
    most_bytes : int
        Of the message.
    """
    name = "variance" if "variance" in clumps else "covariance"
    second = clumps[name]
    is_full, d, v = name == "covariance", clumps["mean"].shape[1], len(second)
    room = most_bytes - HEAD_BYTES
    k = len(clumps.get("component_id", ()))
    for_components = k * (_cost(d) + _cost_of_spread(d, is_full))
    if 2 * for_components > room:
        k = for_components = 0
    kept = _largest(clumps["count"], v, room - for_components, d, is_full)
    means, second = clumps["mean"][kept], second[kept[kept < v]].astype(np.float64)
    if k:  # they share the scales of the clumps' columns
        means = np.concatenate([means, clumps["component_mean"]])
        second = np.concatenate([second, clumps[f"component_{name}"]])
    mean_scale, mean_offset, means = _columns(means, 1.0)
    diagonal = np.cumsum(np.arange(1, d + 1)) - 1
    variances = second[:, diagonal] if is_full else second
    floor = np.maximum(variances.max(axis=0, initial=0.0) * LEAST_SHARE, 1e-30)
    log_scale, log_offset, logs = _columns(np.log(np.maximum(variances, floor)), 127.0)
    logs = np.round(logs).astype(np.int8)
    n, n_logs = len(kept), len(second) - k
    fields = {
        "covariance": "full" if is_full else "diagonal",
        "n_clumps": v,
        "n_singlets": len(clumps["count"]) - v,
        "total": float(clumps["count"].sum()),
        "counts": clumps["count"][kept].astype(np.float32),
        "components": clumps["component"][kept].astype(np.int32),
        "means": means[:n].astype(np.float16),
        "mean_scale": mean_scale,
        "mean_offset": mean_offset,
        "variance_logs": logs[:n_logs],
        "log_scale": log_scale,
        "log_offset": log_offset,
        "shift": clumps["shift"].astype(np.float32),
        "scale": clumps["scale"].astype(np.float32),
    }
    if k:
        fields["component_ids"] = clumps["component_id"].astype(np.int32)
        fields["component_counts"] = clumps["component_count"].astype(np.float32)
        fields["component_means"] = np.round(means[n:] * MEAN_STEPS).astype(np.int16)
        fields["component_variance_logs"] = logs[n_logs:]
    if is_full:
        steps, codes = _codes(second, d)
        fields["correlation_steps"], fields["correlations"] = steps[:n_logs], codes[:n_logs]
        if k:
            fields["component_correlation_steps"], fields["component_correlations"] = steps[n_logs:], codes[n_logs:]
    return fields


def clump_arrays(message: Clumps) -> dict[str, np.ndarray]:
    """Return what a message says as `MemoryBoundedMixture.from_clumps` takes it, float64; the components' ids int64.

    Clumps without second moments (older senders) are points. Raises DecodeError where parts do not belong together.
    """
    means = _told(message.means, message.mean_scale, message.mean_offset)
    found = {"count": message.counts.astype(np.float64), "mean": means}
    logs, d = message.variance_logs, means.shape[1]
    if logs is not None:
        variances = np.exp(_told(logs, message.log_scale, message.log_offset))
    elif message.variances is not None:
        variances = np.maximum(_told(message.variances, message.variance_scale, None), 0.0)
    else:
        variances = np.zeros((0, d))
    if len(variances) > len(means):
        raise DecodeError(f"clumps: {len(variances)} rows of variances for {len(means)} means")
    if message.covariance == "diagonal":
        found["variance"] = variances
    else:
        found["covariance"] = _covariances(message.correlations, message.correlation_steps, variances)
    if message.components is not None:
        found["component"] = message.components.astype(np.int64)
    if message.shift is not None and message.scale is not None:
        found["shift"], found["scale"] = message.shift.astype(np.float64), message.scale.astype(np.float64)
    return found | _components(message)


def _components(message: Clumps) -> dict[str, np.ndarray]:
    """Return the components that a message tells, by the names of the clumps behind component_; empty if it does not.

    A message of which some part is missing tells none.
    """
    counts, means, logs = message.component_counts, message.component_means, message.component_variance_logs
    if message.component_ids is None or counts is None or means is None or logs is None:
        return {}
    variances = np.exp(_told(logs, message.log_scale, message.log_offset))
    found = {
        "component_id": message.component_ids.astype(np.int64),
        "component_count": counts.astype(np.float64),
        "component_mean": _told(means / MEAN_STEPS, message.mean_scale, message.mean_offset),
    }
    if message.covariance == "diagonal":
        return found | {"component_variance": variances}
    codes, steps = message.component_correlations, message.component_correlation_steps
    return found | {"component_covariance": _covariances(codes, steps, variances)}


def largest_clumps(message: Clumps, most_bytes: int) -> bytes:
    """Return the payload of a message of as many of the largest clumps of `message` as fit into so many bytes.

    Components stay out: on a thin link they come by themselves, in models. Raises EncodeError where not one does.
    """
    n = len(message.counts)
    while n:
        payload = encode(_of_rows(message, np.sort(np.argsort(-message.counts, kind="stable")[:n])))
        if len(payload) <= most_bytes:
            return payload
        n = min(n - 1, n * most_bytes // len(payload))
    raise EncodeError(f"clumps: not one fits into {most_bytes} bytes")


def _of_rows(message: Clumps, rows: np.ndarray) -> Clumps:
    """Return a message of these rows alone, which rise."""
    of_all = ("counts", "means", "components")
    of_clumps = ("variances", "variance_logs", "correlations", "correlation_steps")
    kept = {}
    for name in of_all + of_clumps:
        array = getattr(message, name)
        if array is not None:
            kept[name] = array[rows[rows < len(array)]]
    left_out = {name: None for name in message.__struct_fields__ if name.startswith("component_")}
    return msgspec.structs.replace(message, **kept, **left_out)


def _cost(d: int) -> int:
    """Return the bytes of a point: its count, the component's id, the mean."""
    return 4 + 4 + 2 * d


def _cost_of_spread(d: int, is_full: bool) -> int:
    """Return the bytes of a second moment."""
    return d + (4 + d * (d - 1) // 2) * is_full


def _largest(counts: np.ndarray, n_clumps: int, room: int, d: int, is_full: bool) -> np.ndarray:
    """Return the places of those that stand for most and fit into `room` bytes, in their order."""
    cost = np.full(len(counts), _cost(d))
    cost[:n_clumps] += _cost_of_spread(d, is_full)
    order = np.argsort(-counts, kind="stable")
    return np.sort(order[np.cumsum(cost[order]) <= room])


def _columns(rows: np.ndarray, largest: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each column's scale and offset (float32), and rows within [-largest, largest] that they make again."""
    low, high = (np.zeros(rows.shape[1]),) * 2 if not len(rows) else (rows.min(axis=0), rows.max(axis=0))
    offset = ((low + high) / 2).astype(np.float32)
    reach = np.maximum(high - offset, offset - low)
    scale = np.maximum(reach / largest, 1e-30).astype(np.float32)
    return scale, offset, np.clip((rows - offset) / scale, -largest, largest)


def _told(rows: np.ndarray, scale: np.ndarray | None, offset: np.ndarray | None) -> np.ndarray:
    numbers = rows.astype(np.float64)
    numbers = numbers if scale is None else numbers * scale
    return np.asarray(numbers if offset is None else numbers + offset)


def _codes(packed: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps and codes of the factors of the clumps' correlations, as kernels/mixture_rounded.py has them."""
    low, strict = np.tril_indices(d), np.tril_indices(d, -1)
    full = np.zeros((len(packed), d, d))
    full[:, low[0], low[1]] = packed
    full += np.tril(full, -1).transpose(0, 2, 1)
    deviations = np.sqrt(np.maximum(np.einsum("nii->ni", full), 0.0))
    deviations[deviations == 0.0] = np.inf  # such a column goes with no other
    correlations = full / deviations[:, :, None] / deviations[:, None, :]
    correlations[:, np.arange(d), np.arange(d)] = 1.0 + LEAST_VARIANCE
    factors = _factors(correlations)
    entries = factors[:, strict[0], strict[1]]
    steps = (np.abs(entries).max(axis=1, initial=0.0) / 127.0).astype(np.float32)
    codes = np.round(entries / np.maximum(steps, 1e-30)[:, None])
    return steps, np.clip(codes, -127, 127).astype(np.int8)


def _factors(matrices: np.ndarray) -> np.ndarray:
    """Return lower triangular factors of (n, d, d) matrices, rows of unit length; what is not definite is made so."""
    n, d, _ = matrices.shape
    factors = np.zeros_like(matrices)
    for j in range(d):
        above = factors[:, j, :j]
        left = matrices[:, j:, j] - np.einsum("nim,nm->ni", factors[:, j:, :j], above)
        factors[:, j, j] = np.sqrt(np.maximum(left[:, 0], LEAST_VARIANCE))
        factors[:, j + 1 :, j] = left[:, 1:] / factors[:, j, j][:, None]
    lengths = np.sqrt(np.einsum("nij,nij->ni", factors, factors))
    return np.asarray(factors / np.maximum(lengths, 1e-30)[:, :, None])


def _covariances(codes: np.ndarray | None, steps: np.ndarray | None, variances: np.ndarray) -> np.ndarray:
    """Return packed covariances, lower triangle row by row, of variances (v, d) and coded correlations, if any."""
    v, d = variances.shape
    factors = np.zeros((v, d, d))
    strict = np.tril_indices(d, -1)
    if v and codes is not None and steps is not None:
        if codes.shape != (v, len(strict[0])):
            raise DecodeError(f"clumps: correlations of shape {codes.shape}, must be {(v, len(strict[0]))}")
        factors[:, strict[0], strict[1]] = codes * steps.astype(np.float64)[:, None]
    length = np.einsum("nij,nij->ni", factors, factors)
    last = np.maximum(1.0 - length, LEAST_VARIANCE)
    factors[:, np.arange(d), np.arange(d)] = np.sqrt(last)
    factors *= np.sqrt(variances / (length + last))[:, :, None]
    low = np.tril_indices(d)
    return (factors @ factors.transpose(0, 2, 1))[:, low[0], low[1]]
