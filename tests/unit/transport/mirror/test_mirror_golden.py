"""The mirror's packets of every version stay readable for ever, and those of this version stay what they are."""

import dataclasses
import sys

import numpy as np
import pytest
from places import GOLDEN

from stillwatch.transport.mirror.ground import ModelMirror
from stillwatch.transport.mirror.model import summary_of
from stillwatch.transport.mirror.vehicle import MODEL_BITS, VERSION
from stillwatch.transport.wire import MODELS, DecodeError

sys.path.insert(0, str(GOLDEN))
from make_mirror import mixtures, packets_of, read


def golden(version, name):
    return read(GOLDEN / f"mirror_v{version}" / f"{name}.bin")


def mirrored(packets):
    mirror = ModelMirror()
    for packet in packets:
        mirror.take_packet(packet)
    return mirror.summary()


def with_model_number(packet, number):
    """Return a packet of version 2 that names another model: 3 bits of version, then 4 of the model."""
    bits = int.from_bytes(packet, "big")
    shift = 8 * len(packet) - 7
    return (bits & ~(15 << shift) | number << shift).to_bytes(len(packet), "big")


@pytest.mark.parametrize("name", MODELS)
def test_this_version_sends_exactly_these_bytes(name):
    assert packets_of(mixtures()[name]) == golden(VERSION, name)


@pytest.mark.parametrize(
    ("version", "name"), [(version, name) for version in MODEL_BITS for name in MODELS[: 1 << MODEL_BITS[version]]]
)
def test_kept_packets_are_read_as_the_mixture_they_were_made_of(name, version):
    summary, meant = mirrored(golden(version, name)), summary_of(mixtures()[name])
    assert (summary.which, summary.is_full, summary.model_epoch) == (name, meant.is_full, meant.model_epoch)
    assert summary.ids.tolist() == meant.ids.tolist()
    assert summary.counts == pytest.approx(meant.counts, rel=0.022)  # a sixteenth of an octave
    assert summary.prior_dof == pytest.approx(meant.prior_dof)
    assert np.abs(summary.means - meant.means).max() < 0.1  # a few steps of 0.04 standard deviations of about one


@pytest.mark.parametrize("name", MODELS[: 1 << MODEL_BITS[1]])
def test_versions_differ_in_nothing_but_the_head(name):
    old, new = (dataclasses.asdict(mirrored(golden(version, name))) for version in (1, 2))
    for field, value in old.items():
        assert np.array_equal(value, new[field]), field


def test_a_model_that_this_version_does_not_know_is_refused_and_changes_nothing():
    mirror = ModelMirror()
    first = golden(2, "patches")[0]
    assert with_model_number(first, 0) == first
    with pytest.raises(DecodeError, match="model 3: 3 are known"):
        mirror.take_packet(with_model_number(first, 3))
    assert mirror.packets == 0
    assert mirror.summary() is None


def test_models_fit_the_mirror_s_and_the_thin_link_s_numbers():
    assert len(MODELS) <= 8
    assert len(MODELS) <= 1 << MODEL_BITS[VERSION]
