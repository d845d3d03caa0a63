"""Presets: the numbers of field.md, and budgets that follow from them."""

import pytest

from stillwatch.transport.thin.presets import PRESETS, Budget, find_preset
from stillwatch.transport.wire.errors import LinkError

# One packet per 15-s slot: bytes per hour as the table of link numbers has them.
BYTES_PER_HOUR = {0: 7_680, 1: 46_080, 2: 46_080, 3: 122_880, 4: 122_880, 5: 491_520}


@pytest.mark.parametrize(("rate", "expected"), BYTES_PER_HOUR.items())
def test_micromodem_bytes_per_hour(rate, expected):
    assert find_preset(f"micromodem-{rate}").up.bytes_per_hour == expected


def test_iridium_carries_340_up_and_270_down():
    preset = find_preset("iridium-sbd")
    assert (preset.up.frame_bytes, preset.down.frame_bytes) == (340, 270)


@pytest.mark.parametrize("name", PRESETS)
def test_every_burst_fits_into_its_slot_and_every_frame_holds_an_alert(name):
    preset = PRESETS[name]
    assert 8 * preset.up.slot_bytes / preset.bits_per_second <= preset.up.slot_s
    assert preset.up.frame_bytes >= 32
    assert preset.down.frame_bytes >= 32


def test_ten_minutes_hold_their_share_of_an_hour():
    assert Budget(32, 1, 15.0).window_bytes == 40 * 32
    assert Budget(32, 1, 7.0).window_bytes == 85 * 32
    assert Budget(32, 1, 600.0).window_bytes == 32


def test_a_share_makes_slots_rarer():
    assert Budget(32, 1, 15.0).shared(0.25).slot_s == 60.0
    assert Budget(32, 1, 15.0).shared(0.001).slot_s == 600.0


@pytest.mark.parametrize("share", [0.0, -1.0, 1.1])
def test_an_impossible_share_is_refused(share):
    with pytest.raises(LinkError, match="share"):
        Budget(32, 1, 15.0).shared(share)


@pytest.mark.parametrize("fields", [(31, 1, 15.0), (32, 0, 15.0), (32, 1, 0.0), (32, 1, 601.0)])
def test_an_impossible_budget_is_refused(fields):
    with pytest.raises(LinkError, match="link budget"):
        Budget(*fields)


def test_an_unknown_preset_is_refused_with_those_that_there_are():
    with pytest.raises(LinkError, match=r"'micromodem-9' is none of .*micromodem-0.*lte"):
        find_preset("micromodem-9")
