"""Ashore: many dives, one map. Describes pictures, clusters them over all dives at once, writes a page and its files.

A command of the console script. It must not change anything but the folder it was given.
"""

import os
import pathlib
import sys
import time
from typing import Any

import numpy as np

from stillwatch.base import UsageError
from stillwatch.tools.shared import ProgressLine, existing, existing_source, print_json, words, write_result
from stillwatch.tools.survey.agreement import Agreement, agreement
from stillwatch.tools.survey.analysis import Found, cluster_segments, summary_of
from stillwatch.tools.survey.describe import PICTURES_A_PART, describe_dives
from stillwatch.tools.survey.dives import cluster_dives, coordinates, segments_of
from stillwatch.tools.survey.fleet import is_run, merge
from stillwatch.tools.survey.frames import EVERY, NOTE_NAME, is_source, known_places, take_frames
from stillwatch.tools.survey.ground import SQUARE_METRES, Ground, View, picture_ground
from stillwatch.tools.survey.machines import HERE, machines
from stillwatch.tools.survey.output import geojson, make_folder, write_summary, write_table
from stillwatch.tools.survey.page import render
from stillwatch.tools.survey.pictures import (
    BY_FOLDER,
    Dive,
    dives_of,
    labels_of,
    named_few,
    notes_of_dives,
    places_of,
    read_picture,
)
from stillwatch.tools.survey.segments import NONE, PATCHES, SUPERPIXELS, best_segments, segment_map

# The width that the thesis uses most, for outdoor pictures, albums and sea floor alike (chapters 4 to 6).
C_WIDTH = 0.05
GROUPS, SEGMENTS, BOTH = "sgmc", "scm", "mcm"


def add_arguments(parser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "folders",
        nargs="+",
        metavar="DIVE",
        help="dives: folders of pictures, or of such folders; videos, recordings (with --every), synthetic:WORLD; or "
        "run folders of several agents",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder of the results; a stopped survey goes on")
    parser.add_argument(
        "--labels", metavar=f"{BY_FOLDER}|CSV", help="to compare with: the pictures' folders, or picture,label rows"
    )
    parser.add_argument("--nav", metavar="CSV", help="rows of picture,latitude,longitude and, where known, altitude_m")
    parser.add_argument(
        "--view",
        type=View.parse,
        metavar="ACROSSxALONG",
        help="degrees that the camera sees across and along the track, in water if it is there: with altitudes, ground "
        "is told in square metres, else in metres of track",
    )
    parser.add_argument(
        "--every", type=int, metavar="N", help=f"of videos and recordings, one frame in N (videos: {EVERY})"
    )
    parser.add_argument(
        "--model",
        choices=(GROUPS, SEGMENTS, BOTH),
        default=GROUPS,
        help="whole pictures (sgmc, default), their segments (scm), or both (mcm)",
    )
    parser.add_argument(
        "--segments", choices=(SUPERPIXELS, PATCHES), help="of scm and mcm (default: slic where scikit-image is there)"
    )
    parser.add_argument(
        "--c-width",
        type=float,
        default=C_WIDTH,
        metavar="C",
        help=f"expected width of a cluster, part of the data's own; smaller gives more (default: {C_WIDTH})",
    )
    parser.add_argument(
        "--scheduler",
        metavar=f"tcp://...|{HERE}",
        help="Dask scheduler whose workers see these folders (default: this machine's cores, where Dask is installed)",
    )
    parser.add_argument(
        "--encoders",
        nargs="+",
        type=existing,
        default=[],
        metavar="FILE",
        help="of runs with different ones whose folders hold no checkpoint (.swenc)",
    )
    parser.add_argument("--parquet", action="store_true", help="write the tables as Parquet too (needs pyarrow)")
    parser.add_argument("--json", action="store_true", help="print survey.json")


def main(args) -> int:
    """Run the survey, write its files, say where they are."""
    if not args.c_width > 0.0:
        raise UsageError(f"--c-width {args.c_width}: it is above 0")
    if args.every is not None and args.every < 1:
        raise UsageError(f"--every {args.every}: it is at least 1")
    if args.segments and args.model == GROUPS:
        raise UsageError("--segments: --model sgmc has none; it is for scm and mcm")
    for folder in args.folders:
        existing_source(folder)
    for file in (args.nav, args.labels if args.labels != BY_FOLDER else None):
        if file:
            existing(file)
    n_runs = sum(is_run(folder) and not is_source(folder, args.every) for folder in args.folders)
    if n_runs:
        if n_runs < len(args.folders) or args.labels or args.nav:
            raise UsageError(
                "run folders are surveyed by themselves: leave out folders of pictures, --labels and --nav"
            )
        return survey_runs(args)
    if args.encoders:
        raise UsageError("--encoders: it is for run folders; pictures are described by the survey itself")
    return survey_pictures(args)


def survey_runs(args) -> int:
    """Merge runs by their clumps, write survey.json, clumps.csv and the page."""
    began = time.monotonic()
    out = make_folder(args.out)
    with machines(args.scheduler, False) as workers:
        fleet = merge(args.folders, args.c_width, os.cpu_count() or 1, workers, args.encoders)
    found = fleet.found
    exemplars = [[fleet.captions[i] for i in found.typical(k)[0]] for k in range(found.n_clusters)]
    summary = summary_of(found, exemplars, None, time.monotonic() - began) | {"notes": fleet.notes}
    write_summary(out / "survey.json", summary)
    write_table(out, "clumps", fleet.clump_rows, args.parquet)
    write_result(
        out / "survey.html", render(found, fleet.captions, fleet.picture, fleet.of_dive, None, None, fleet.notes)
    )
    if args.json:
        print_json(summary)
    else:
        print(
            f"{words.count(len(found.names), 'run')}, {words.count(round(found.counts.sum()), 'frame')}, "
            f"{words.count(found.n_clusters, 'cluster')}"
        )
        print(*fleet.notes, f"page: {out / 'survey.html'}", sep="\n")
    return 0


def survey_pictures(args) -> int:
    """Describe and cluster pictures, write their files and the page."""
    began = time.monotonic()
    out = make_folder(args.out)
    line = ProgressLine(enabled=sys.stderr.isatty() and not args.json)
    folders, taken, notes = _folders(args, out, line)
    dives = dives_of(folders, labels_by_folder=args.labels == BY_FOLDER)
    labels, of_labels = labels_of(dives, args.labels)
    known = known_places(taken, dives)
    places, of_nav = places_of(dives, args.nav)
    places = np.where(np.isfinite(known), known, places)
    kind = NONE if args.model == GROUPS else args.segments or best_segments()
    n_pictures = sum(len(dive.pictures) for dive in dives)
    with machines(args.scheduler, len(dives) > 1 and n_pictures > PICTURES_A_PART) as workers:
        parts, readable = describe_dives(dives, out / "features", line.show, kind, workers)
        line.clear()
        if not readable.any():
            raise UsageError(f"none of the {len(readable)} pictures can be read")
        survey = Survey(dives, readable, np.array(labels), places, kind, args.view)
        given = {"c_width": args.c_width, "n_jobs": os.cpu_count() or 1}
        rows = None if args.model == SEGMENTS else coordinates(parts, workers)
        if rows is not None and args.model == GROUPS:
            found = cluster_dives(rows, survey.of_dive, survey.names, workers, **given)
        else:
            found = cluster_segments(*segments_of(parts), survey.of_dive, survey.names, rows=rows, **given)
    agreed = survey.agreed(found)
    notes += [*notes_of_dives(dives), *survey.notes(args.labels, args.nav), *of_labels, *of_nav]
    exemplars = [[survey.captions[i] for i in found.typical(k)[0]] for k in range(found.n_clusters)]
    figures = None if agreed is None else agreed.figures()
    ground = survey.ground(found)
    summary = summary_of(found, exemplars, figures, time.monotonic() - began, ground)
    summary |= {"unreadable": survey.unreadable, "notes": notes}
    survey.write(out, found, summary, agreed, notes, ground, args.parquet)
    if args.json:
        print_json(summary)
    else:
        print(
            f"{words.count(len(survey.captions), 'picture')}, {words.count(len(survey.names), 'dive')}, "
            f"{words.count(found.n_clusters, 'cluster')}"
        )
        print(*notes, f"page: {out / 'survey.html'}", sep="\n")
    return 0


def _folders(args, out: pathlib.Path, line: ProgressLine) -> tuple[list[str], list[str], list[str]]:
    """Return (folders of all dives' pictures, those of frames that were taken of sources, notes)."""
    folders, taken, notes = [], [], []
    for given in args.folders:
        if not is_source(given, args.every):
            folders.append(given)
            continue
        place = take_frames(given, out / "frames", args.every, line.show)
        line.clear()
        folders.append(str(place))
        taken.append(str(place))
        if (place / NOTE_NAME).exists():
            notes.append(f"cut short: {(place / NOTE_NAME).read_text(encoding='utf-8')}")
    return folders, taken, notes


class Survey:
    """The readable pictures of all dives, one list.

    Attributes
    ----------
    names : list of str
        Dives with at least one readable picture, in order.
    of_dive : ndarray of shape (n,), int64
    captions : list of str
        dive/name of each picture.
    unreadable : list of str
    positions, altitudes : ndarray of shape (n, 2), (n,)
        Degrees and metres above ground, NaN where unknown.
    kind : str
        Of segments.
    of_picture : (n,) float64 and its unit
        Ground that each picture stands for.
    """

    def __init__(
        self,
        dives: list[Dive],
        readable: np.ndarray,
        labels: np.ndarray,
        places: np.ndarray,
        kind: str = NONE,
        view: View | None = None,
    ):
        self.kind = kind
        pairs = [(dive, picture) for dive in dives for picture in dive.pictures]
        kept = np.flatnonzero(readable)
        self.unreadable = [f"{pairs[i][0].name}/{pairs[i][1].name}" for i in np.flatnonzero(~readable)]
        self.captions = [f"{pairs[i][0].name}/{pairs[i][1].name}" for i in kept]
        self.paths = [pairs[i][1].path for i in kept]
        self.names = list(dict.fromkeys(pairs[i][0].name for i in kept))
        self.of_dive = np.array([self.names.index(pairs[i][0].name) for i in kept])
        self.labels, self.positions, self.altitudes = labels[kept], places[kept, :2], places[kept, 2]
        self.of_picture = picture_ground(self.of_dive, self.positions, self.altitudes, view)
        self.view = view

    def ground(self, found: Found) -> Ground | None:
        """Return ground by dive and cluster; None where no position is known."""
        return found.ground(self.of_dive, self.of_picture) if np.isfinite(self.positions).any() else None

    def agreed(self, found: Found) -> Agreement | None:
        """Return the agreement with the labels over the pictures that have one; None where none has."""
        has_label = self.labels != ""
        return agreement(self.labels[has_label], found.clusters[has_label]) if has_label.any() else None

    def notes(self, labels: str | None, nav: str | None) -> list[str]:
        """Return what was left out, and why."""
        notes = []
        if self.unreadable:
            named = named_few(self.unreadable)
            notes.append(f"pictures that cannot be read were skipped, {len(self.unreadable)} of them: {named}")
        if labels:
            n_bare = int((self.labels == "").sum())
            if n_bare:
                notes.append(f"pictures without a label take no part in the comparison with labels: {n_bare}")
        if nav or np.isfinite(self.positions).any():
            n_unknown = int((~np.isfinite(self.positions).all(axis=1)).sum())
            if n_unknown:
                notes.append(f"pictures without a position: {n_unknown}")
        has_area = self.of_picture[1] == SQUARE_METRES
        n_low = int((np.isfinite(self.positions).all(axis=1) & ~np.isfinite(self.altitudes)).sum())
        if has_area and n_low:
            notes.append(f"pictures with a position, but no altitude and so no area: {n_low}")
        if self.view is not None and not has_area:
            notes.append("--view: no picture has an altitude, so ground is metres of track")
        return notes

    def write(
        self,
        out: pathlib.Path,
        found: Found,
        summary: dict[str, Any],
        agreed: Agreement | None,
        notes: list[str],
        ground: Ground | None,
        with_parquet: bool,
    ) -> None:
        """Write survey.json, assignments.csv, survey.geojson and survey.html."""
        dives = [self.names[j] for j in self.of_dive]
        columns: dict[str, list[Any]] = {
            "picture": self.captions,
            "dive": dives,
            "cluster": found.clusters.tolist(),
            "probability": np.round(found.certainty, 4).tolist(),
            "surprise": np.round(found.surprise, 3).tolist(),
            "latitude": self.positions[:, 0].tolist(),
            "longitude": self.positions[:, 1].tolist(),
            "altitude_m": self.altitudes.tolist(),
            "ground_m2" if self.of_picture[1] == SQUARE_METRES else "track_m": np.round(self.of_picture[0], 3).tolist(),
            "label": self.labels.tolist(),
        }
        write_summary(out / "survey.json", summary)
        write_table(out, "assignments", columns, with_parquet)
        write_result(out / "survey.geojson", geojson(self.captions, dives, found.clusters, self.positions))
        page = render(
            found,
            self.captions,
            lambda i: read_picture(self.paths[i]),
            self.of_dive,
            self.positions,
            agreed,
            notes,
            self.cells,
            ground,
        )
        write_result(out / "survey.html", page)

    def cells(self, item: int) -> np.ndarray:
        """Return the segment of each pixel of a picture."""
        image = read_picture(self.paths[item])
        assert image is not None
        return segment_map(image, self.kind)
