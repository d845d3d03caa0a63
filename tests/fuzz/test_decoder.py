"""A million wrong messages (thousands by default): only typed errors, no crash, no growth; what passes is whole."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from fuzz_cases import mutated, payloads
from mirror_models import model_message
from wire_examples import examples

from stillwatch.transport.live.control import MAX_REQUEST_BYTES, Request
from stillwatch.transport.mirror.ground import ModelMirror
from stillwatch.transport.mirror.vehicle import ModelEncoder
from stillwatch.transport.wire.codec import decode, decode_struct, encode, encode_struct
from stillwatch.transport.wire.errors import DecodeError

COUNT = int(os.environ.get("STILLWATCH_FUZZ", "12000"))
ROOT = pathlib.Path(__file__).resolve().parents[2]
GROWTH_BYTES = 8_000_000


def rss_bytes() -> int:
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


def fuzz_messages(count: int, seed: int) -> tuple[int, int]:
    """Decode `count` wrong payloads; return how many were refused, and the growth of memory after the first tenth."""
    good = [encode(message) for message in examples().values()]
    refused, before = 0, 0
    for at, payload in enumerate(payloads(seed, count, good)):
        if at == count // 10:
            before = rss_bytes()
        try:
            message = decode(payload)
        except DecodeError:
            refused += 1
        else:
            encode(message)  # what is let in could have been sent
    return refused, rss_bytes() - before


def test_wrong_messages_raise_only_decode_errors_and_leave_no_memory_behind():
    refused, growth = fuzz_messages(COUNT, seed=8)
    assert refused > COUNT // 2
    assert growth < GROWTH_BYTES


@pytest.mark.soak
def test_a_million_wrong_messages_in_a_process_that_must_end_well():
    code = "import test_decoder as t; refused, growth = t.fuzz_messages(1_000_000, 9); assert growth < t.GROWTH_BYTES"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / 'tests' / 'fuzz'}"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_wrong_requests_raise_only_decode_errors():
    request = Request(id="12345678", command="set_nav", arguments={"latitude": 1.0, "depth_m": None})
    for payload in payloads(10, COUNT // 4, [encode_struct(request, MAX_REQUEST_BYTES)]):
        try:
            decode_struct(payload, Request, MAX_REQUEST_BYTES)
        except DecodeError:
            continue


@pytest.mark.parametrize("is_full", [False, True])
def test_wrong_model_packets_raise_only_decode_errors_and_leave_the_mirror_usable(is_full):
    rng = np.random.default_rng(11)
    k, d = 12, 6
    tril = np.tril_indices(d)
    second = np.stack([np.eye(d)[tril] for _ in range(k)]) if is_full else np.ones((k, d))
    scale = np.eye(d)[tril] if is_full else np.ones(d)
    model = model_message(
        np.arange(k), rng.uniform(1, 1000, k), rng.normal(size=(k, d)), second, np.zeros(d), scale, is_full, 1
    )
    encoder = ModelEncoder()
    encoder.update(model)
    good = []
    while (packet := encoder.next_packet(64)) is not None:
        encoder.acknowledge(packet[0])
        good.append(packet[1])
    mirror = ModelMirror()
    for at in range(COUNT // 6):
        try:
            mirror.take_packet(mutated(rng, good))
        except DecodeError:
            pass
        if at % 100 == 0:
            summary = mirror.summary()
            if summary is not None:
                assert all(np.isfinite(value).all() for value in (summary.means, summary.counts, summary.prior_mean))
