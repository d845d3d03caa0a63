"""Finds the frames that look most like a picture: by the topics in it, in what runs and ground stations hold.

The `find` command. It must not need the agent's video: shares of topics, the topic model and the encoder were told. A
thin link has no room for those: what it brought is searched by the pictures of its alerts.
"""

import argparse
import base64
import bisect
import json
import pathlib
from dataclasses import dataclass, field, replace
from typing import Any

import cv2
import msgspec
import numpy as np

from stillwatch.base import MOVING, Frame, UsageError, shown
from stillwatch.features import FeatureExtractor, RowMaker
from stillwatch.learn import TopicPredictive
from stillwatch.pipeline import mixture_of
from stillwatch.runs import utc_text
from stillwatch.settings import Config, EncoderConfig, FeaturesConfig, SourceConfig
from stillwatch.tools.report import charts as c
from stillwatch.tools.report import page
from stillwatch.tools.shared import existing, print_json, read_image, words, write_result
from stillwatch.transport.disk import open_run
from stillwatch.transport.wire import TOPIC_MODEL
from stillwatch.transport.wire import messages as m

WORDS = 400.0  # that the shares of a frame are worth: what they were measured by, or near it
UNSEEN = 1e-3  # share of a topic that was not told
NEAR_NS = 2_000_000_000  # a picture so near in time stands for a frame

MOST_PICTURES = 2000  # of a thin link's folder: the newest
WORD_DIMS = 32
WIDE, HIGH = 320, 240  # to which a thin link's pictures are brought before their words are taken
SAMPLED = 400  # words of the other pictures, by which the width of the kernel is found

Box = tuple[float, float, float, float]


@dataclass
class Held:
    """What one run told. scores, pictures: the frames with shares; (stream time, JPEG), in order of time."""

    name: str
    encoder: m.Encoder | None = None
    model: m.Model | None = None
    scores: list[m.Score] = field(default_factory=list)
    pictures: list[tuple[int, bytes]] = field(default_factory=list)


@dataclass
class Pictured:
    """What a thin link brought of one run. alerts: by event, the newest message with a picture."""

    name: str
    alerts: dict[int, m.Alert] = field(default_factory=dict)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="+", type=existing, metavar="RUN", help="run, ground station's folder, recording")
    parser.add_argument("--like", required=True, type=existing, metavar="PICTURE", help="what to look for")
    parser.add_argument("--box", metavar="X0,Y0,X1,Y1", help="the part of it that matters, as shares of its size")
    parser.add_argument("--top", type=int, default=20, metavar="N", help="frames to show (20)")
    parser.add_argument("--json", action="store_true", help="one JSON object: {rows: [...]}")
    parser.add_argument("--out", metavar="FILE", help="also write a page with pictures")


def main(args: argparse.Namespace) -> int:
    picture = read_image(args.like)
    if picture is None:
        raise UsageError(f"{args.like}: no picture that can be read; give a JPEG or PNG")
    if args.top < 1:
        raise UsageError(f"--top: {args.top} is less than 1")
    rows = find([pathlib.Path(run) for run in args.run], picture, box_of(args.box), args.top)
    if args.out:
        _write(pathlib.Path(args.out), rows, picture)
    if args.json:
        print_json({"rows": [row | {"picture": _data_uri(row["picture"])} for row in rows]})
        return 0
    for row in rows:
        print(shown(f"{row['score']:8.3f}  {_named(row):<14}  {row['t_utc']}  {row['run']}"))
    if args.out:
        print(args.out)
    return 0


def box_of(text: str | None) -> Box:
    """Return a box as shares; the whole picture for None. UsageError where it is none."""
    if text is None:
        return 0.0, 0.0, 1.0, 1.0
    try:
        x0, y0, x1, y1 = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--box: {text!r} is not four numbers X0,Y0,X1,Y1") from None
    if not (0.0 <= x0 < x1 <= 1.0 and 0.0 <= y0 < y1 <= 1.0):
        raise UsageError(f"--box: {text} must be within 0 and 1, the first corner above and left of the second")
    return x0, y0, x1, y1


def find(runs: list[pathlib.Path], picture: np.ndarray, box: Box, top: int) -> list[dict[str, Any]]:
    """Return the `top` frames of all runs that the picture's words are likeliest in, the best first.

    Rows of {run, sequence, t_utc, score, picture}. score: how much likelier a word of the picture is in that frame than
    in any of its run, nats a word: the score (thesis 3.28), less the words' density under the whole run, so that runs
    of different models compare. picture: JPEG of a frame within two seconds, b"" where none was told. Of what a thin
    link brought, rows are alerts: `sequence` is None where it did not say the frame, densities are Parzen's of the
    words of their pictures.

    picture : ndarray of shape (height, width, 3), uint8 BGR

    Raises
    ------
    UsageError
        A run that told no topics, or no encoder, and no pictures of alerts.
    """
    found: list[dict[str, Any]] = []
    for path in runs:
        for held in read_run(path):
            if isinstance(held, Pictured):
                found += _alerts_like(held, picture, box)
                continue
            scores = similarities(held, picture, box)
            for i in np.argsort(-scores, kind="stable")[:top]:
                told = held.scores[i]
                found.append(_row(held.name, told.frame, told.wall_ns, scores[i], _picture(held, told.t_ns)))
    return sorted(found, key=lambda row: -row["score"])[:top]


def _row(run: str, frame: int, wall_ns: int, score: float, picture: bytes) -> dict[str, Any]:
    known = frame if frame >= 0 else None
    return {"run": run, "sequence": known, "t_utc": utc_text(wall_ns), "score": float(score), "picture": picture}


def _named(row: dict[str, Any]) -> str:
    return "alert" if row["sequence"] is None else f"frame {row['sequence']}"


def read_run(path: pathlib.Path) -> list[Held] | list[Pictured]:
    """Return what a folder holds, a start of an agent each: those that told topics, else pictures of alerts; UsageError
    where none can be searched."""
    starts: dict[tuple[str, int], Held] = {}
    pictured: dict[tuple[str, int], Pictured] = {}
    for _, message in open_run(path).messages({"encoder", "model", "score", "alert", "exemplar"}):
        held = starts.setdefault((message.run, message.epoch), Held(message.run))
        if isinstance(message, m.Alert) and message.thumbnail:
            pictured.setdefault((message.run, message.epoch), Pictured(message.run)).alerts[message.id] = message
        match message:
            case m.Encoder():
                held.encoder = message
            case m.Model() if message.which == TOPIC_MODEL:
                held.model = message
            case m.Score() if message.topic_ids is not None:
                held.scores.append(message)
            case m.Alert() if message.thumbnail and message.picture_frame >= 0:
                held.pictures.append((message.picture_t_ns, message.thumbnail))
            case m.Exemplar() if message.thumbnail and message.role == "frame":
                held.pictures.append((message.exemplar_t_ns, message.thumbnail))
    usable = [held for held in starts.values() if held.encoder and held.model and held.scores]
    if not usable and pictured:
        return list(pictured.values())
    if not usable:
        raise UsageError(
            f"{path}: no shares of topics with their model and encoder, and no picture of an alert: too short, of a "
            "version before 0.2, or heard over a thin link that had no room; search the vehicle's own run folder"
        )
    for held in usable:
        held.pictures.sort(key=lambda item: item[0])
    return usable


def similarities(held: Held, picture: np.ndarray, box: Box) -> np.ndarray:
    """Return how well the picture's words fit each frame of a run, (n_scores,) nats a word."""
    assert held.model is not None
    assert held.encoder is not None
    found = describe(picture, held.encoder, box)
    corpus = mixture_of(held.model)
    topics = TopicPredictive(corpus.summary | {"alpha": np.ones(corpus.n_components)})
    place = {int(topic): k for k, topic in enumerate(corpus.ids)}
    shares = np.full((len(held.scores), len(place)), UNSEEN)
    for row, score in enumerate(held.scores):
        assert score.topic_ids is not None
        assert score.topic_shares is not None
        for topic, share in zip(score.topic_ids.tolist(), score.topic_shares.tolist(), strict=True):
            if topic in place:
                shares[row, place[topic]] += share
    return (topics.similarity(found, WORDS * shares) - corpus.score_samples(found).sum()) / len(found)


def describe(picture: np.ndarray, encoder: m.Encoder, box: Box) -> np.ndarray:
    """Return a picture's words within a box as an agent describes them, (n, n_word_dims) float32.

    The picture is brought to the size of the agent's frames where it is larger. UsageError for one that is too small.
    """
    settings = {name: json.loads(text) for name, text in encoder.settings.items()}
    width, height = (int(settings.pop(name)) for name in ("width", "height"))
    scale = min(width / picture.shape[1], height / picture.shape[0], 1.0)
    size = [max(round(scale * length), 1) for length in picture.shape[1::-1]]
    colour = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    config = Config(
        source=SourceConfig(width=width, height=height),
        features=msgspec.convert(settings, FeaturesConfig),
        encoder=EncoderConfig(kind="random", frame_kind="random", patch_dims=encoder.basis.shape[1]),
    )
    extractor = FeatureExtractor(config)
    extractor.take_projection(encoder.basis, encoder.offset)
    return _words(extractor, config, colour, box, takes_out_brightness=encoder.takes_out_brightness)


def _words(
    extractor: FeatureExtractor, config: Config, colour: np.ndarray, box: Box, *, takes_out_brightness: bool
) -> np.ndarray:
    maker = RowMaker(extractor.capacity_patches, extractor.n_patch_dims, config.features.step_px)
    grey = cv2.cvtColor(colour, cv2.COLOR_BGR2GRAY)
    frame = Frame(grey, colour, None, t_ns=0, mono_ns=0, wall_ns=0, sequence=0, epoch=0)
    try:
        features = extractor.extract(frame)
    except ValueError as error:
        size = f"{colour.shape[1]}x{colour.shape[0]}"
        raise UsageError(f"--like: picture of {size} is too small: {error}") from None
    rows = maker.rows_of(frame, features, replace(MOVING, takes_out_brightness=takes_out_brightness))
    x0, y0, x1, y1 = box
    places = [rows.word_centre(word) for word in range(len(rows.words))]
    inside = [word for word, (x, y) in enumerate(places) if x0 <= x <= x1 and y0 <= y <= y1]
    if not inside:
        raise UsageError(f"--box: nothing of the picture's {len(places)} words lies in {box}; take a larger one")
    return np.array(rows.words[inside])


def _alerts_like(held: Pictured, picture: np.ndarray, box: Box) -> list[dict[str, Any]]:
    """Return a row for each alert with a picture that can be read."""
    told = list(held.alerts.values())[-MOST_PICTURES:]
    pairs = [(alert, pixels) for alert in told if (pixels := _decoded(alert.thumbnail)) is not None]
    if not pairs:
        return []
    scores = densities([pixels for _, pixels in pairs], picture, box)
    rows = zip(pairs, scores.tolist(), strict=True)
    return [_row(held.name, alert.picture_frame, alert.wall_ns, score, alert.thumbnail) for (alert, _), score in rows]


def _decoded(jpeg: bytes) -> np.ndarray | None:
    return cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)


def densities(pictures: list[np.ndarray], wanted: np.ndarray, box: Box) -> np.ndarray:
    """Return how much likelier a word of the wanted picture is in each picture than in all, (n,) nats a word.

    pictures, wanted : ndarrays of shape (height, width, 3), uint8 BGR

    The density of a picture's words is Parzen's (1962), with normal kernels as wide as words of one picture lie from
    their nearest in the others, in the mean square. The wanted picture is made as small as they are first: a thumbnail
    has no fine grain.
    """
    config = Config(
        source=SourceConfig(width=WIDE, height=HIGH),
        encoder=EncoderConfig(kind="random", frame_kind="random", patch_dims=WORD_DIMS),
    )
    extractor = FeatureExtractor(config)
    side = int(np.median([max(pixels.shape[:2]) for pixels in pictures]))

    def words_of(pixels: np.ndarray, within: Box) -> np.ndarray:
        return _words(extractor, config, _scaled(pixels, WIDE, HIGH), within, takes_out_brightness=False)

    there = [words_of(pixels, (0.0, 0.0, 1.0, 1.0)) for pixels in pictures]
    here = words_of(_scaled(wanted, side, side, only_down=True), box)
    random = np.random.default_rng(0)
    some = [words[random.integers(len(words), size=max(SAMPLED // len(there), 4))] for words in there]
    nearest = [
        _squares(own, np.concatenate([*some[:i], *some[i + 1 :]]) if len(some) > 1 else own[::-1]).min(axis=1)
        for i, own in enumerate(some)
    ]
    width = max(float(np.concatenate(nearest).mean()), 1e-9)
    logs = np.stack([_log_mean(-_squares(here, words) / (2.0 * width), axis=1) for words in there])
    ratios = logs - _log_mean(logs, axis=0)
    return np.logaddexp(ratios, np.log(UNSEEN)).mean(axis=1)  # a word that is nowhere in it does not decide alone


def _scaled(pixels: np.ndarray, width: int, height: int, *, only_down: bool = False) -> np.ndarray:
    scale = min(width / pixels.shape[1], height / pixels.shape[0], 1.0 if only_down else np.inf)
    size = [max(round(scale * length), 1) for length in pixels.shape[1::-1]]
    return cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if scale < 1.0 else cv2.INTER_CUBIC)


def _squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the squared distances of all rows, (len(a), len(b)) float64."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return np.maximum((a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2.0 * a @ b.T, 0.0)


def _log_mean(logs: np.ndarray, axis: int) -> np.ndarray:
    top = logs.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(logs - top).mean(axis=axis))


def _picture(held: Held, t_ns: int) -> bytes:
    """Return the JPEG that is nearest in time, b"" where none is near."""
    at = bisect.bisect_left(held.pictures, t_ns, key=lambda item: item[0])
    near = min(held.pictures[max(at - 1, 0) : at + 1], key=lambda item: abs(item[0] - t_ns), default=(0, b""))
    return near[1] if near[1] and abs(near[0] - t_ns) <= NEAR_NS else b""


def _data_uri(jpeg: bytes) -> str | None:
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}" if jpeg else None


def _write(path: pathlib.Path, rows: list[dict[str, Any]], picture: np.ndarray) -> None:
    """Write the page: what was looked for, then the frames."""
    jpeg = cv2.imencode(".jpg", picture)[1].tobytes()
    figures = "".join(_figure(number, row) for number, row in enumerate(rows, 1))
    body = (
        "<h1>Frames like this one</h1><div class='gallery'><figure><div class='picture'>"
        f"{c.picture(jpeg, alt='Wanted')}</div></figure></div>"
        f"<h2>Found</h2><p class='note'>{words.number(len(rows))} frames, the most alike first. A "
        f"picture is of the frame told nearest in time.</p><div class='gallery'>{figures}</div>"
    )
    write_result(path, page("Stillwatch: frames like a picture", body))


def _figure(number: int, row: dict[str, Any]) -> str:
    shown_by = c.picture(row["picture"], alt=f"Near {_named(row)}", opens=True)
    return (
        f"<figure><div class='picture'>{shown_by}</div><figcaption>{number}. {_named(row)}, "
        f"{c.esc(row['t_utc'])}<br>{c.esc(row['run'])}, {row['score']:.2f} nats a word</figcaption></figure>"
    )
