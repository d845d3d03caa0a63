"""What a user sees when a config is wrong: every fault at once, with file, line, key, value and limit."""

import importlib.resources

import msgspec
import pytest

from stillwatch.base.errors import ConfigError, UsageError
from stillwatch.settings.config import TEXTS, Config
from stillwatch.settings.reader import config_hash, config_toml, load_config, recorded_config
from stillwatch.transport.wire import Alert
from stillwatch.transport.wire.messages import Exemplar

BROKEN = [
    ("[source]\nwidht = 300", "2: source.widht: unknown key; did you mean width?"),
    ("[sorce]\nwidth = 300", "1: sorce: unknown section; did you mean source?"),
    ("[zzzzzz]\na = 1", "1: zzzzzz: unknown section; known are agent, source"),
    ("source = 3", "1: source: 3 is not a section: write [source] and its keys below"),
    ("[source]\nwidth = 5", "2: source.width: 5 is not a whole number in [32, 4096]"),
    ("[source]\nwidth = 5000", "2: source.width: 5000 is not a whole number in [32, 4096]"),
    ("[source]\nwidth = 50.5", "2: source.width: 50.5 is not a whole number in [32, 4096]"),
    ("[source]\nwidth = true", "2: source.width: True is not a whole number in [32, 4096]"),
    ("[source]\nwidth = 'wide'", "2: source.width: 'wide' is not a whole number in [32, 4096]"),
    ("[source]\nwidth = [1]", "2: source.width: [1] is not a whole number in [32, 4096]"),
    ("[source]\nauto_rotate = 1", "2: source.auto_rotate: 1 is not true or false"),
    ("[source]\nrate_hz = nan", "2: source.rate_hz: nan is not a finite number"),
    ("[source]\nrate_hz = inf", "2: source.rate_hz: inf is not a finite number"),
    ("[source]\nrate_hz = -1.0", "2: source.rate_hz: -1.0 is not a number in [0.0, 240.0]"),
    ("[source]\nopen_timeout_s = 0.0", "2: source.open_timeout_s: 0.0 is not a number in (0.0, 600.0]"),
    ("[source]\nuri = 3", "2: source.uri: 3 is not a text"),
    ("[source]\nuri = '${env:NOT_SET_1}'", "2: source.uri: ${env:NOT_SET_1}: the environment has no NOT_SET_1"),
    ("[source]\nuri = '${file:/no/such}'", "2: source.uri: ${file:/no/such}: cannot be read: No such file"),
    ("[agent]\nid = 'Cam 1'", "2: agent.id: 'Cam 1' is not 1 to 32 of a-z, 0-9, _ and -"),
    ("[agent]\nseed = -1", "2: agent.seed: -1 is not a whole number in [0, 2147483647]"),
    ("[novelty]\ncamera = 'flying'", "2: novelty.camera: 'flying' is not one of auto, fixed, moving"),
    ("[features]\nbin_px = 4", "2: features.bin_px: 4 does not fit"),
    ("[features]\nmask = [[[0.0, 0.0], [1.0, 1.0]]]", "2: features.mask: polygon 0 has 2 corners, needs 3"),
    ("[features]\nmask = [[[0.0, 2.0], [1.0, 1.0], [1.0, 0.0]]]", "2: features.mask: "),
    ("[features]\nmask_png = '/no/such.png'", "2: features.mask_png: '/no/such.png' is not a file"),
    ("[encoder]\nfile = '/no/such'", "2: encoder.file: '/no/such' is not a file"),
    ("[events]\nclear_rarity = 1e6", "2: events.clear_rarity: 1000000.0 is above events.raise_rarity"),
    ("[gate]\ndark_level = 250.0", "2: gate.dark_level: 250.0 is not below gate.bright_level"),
    ("[source\nwidth = 3", ": not valid TOML: "),
    ("[source]\nwidth = 300\nwidth = 301", ": not valid TOML: "),
]


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "camera.toml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(("text", "expected"), BROKEN)
def test_a_fault_is_named_with_its_place_value_and_limit(write, text, expected):
    path = write(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert len(caught.value.problems) == 1
    assert str(caught.value).startswith(str(path))
    assert expected in str(caught.value)


def test_all_faults_are_reported_at_once(write):
    path = write("[source]\nwidth = 1\nheight = 1\n[nope]\n[agent]\nid = ''\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path, ["events.burst=0"])
    assert [p.key for p in caught.value.problems] == [
        "source.width",
        "source.height",
        "nope",
        "agent.id",
        "events.burst",
    ]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("novelty.camera", "--set: novelty.camera: write it as section.key=value"),
        ("camera=fixed", "--set: camera=fixed: write it as section.key=value"),
        ("novelti.camera=fixed", "--set: novelti.camera: unknown section; did you mean novelty?"),
        ("novelty.camra=fixed", "--set: novelty.camra: unknown key; did you mean camera?"),
        ("source.width=1e9", "--set: source.width: 1000000000.0 is not a whole number"),
        ("metrics.endpoint=127.0.0.1:65536", "--set: metrics.endpoint: '127.0.0.1:65536' is not an address of this"),
    ],
)
def test_a_wrong_override_is_named(override, expected):
    with pytest.raises(ConfigError) as caught:
        load_config(None, [override])
    assert str(caught.value).startswith(expected)


def test_overrides_win_over_the_file(write):
    config = load_config(write("[source]\nwidth = 320\n"), ["source.width=640", "novelty.camera=moving"])
    assert config.source.width == 640
    assert config.novelty.camera == "moving"


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00bad", b"x" * 1_000_001])
def test_a_file_that_is_no_config_is_one_clear_line(tmp_path, content):
    path = tmp_path / "camera.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert len(str(caught.value).splitlines()) == 1
    assert str(path) in str(caught.value)


def test_secrets_come_from_the_environment_or_a_file(write, tmp_path, monkeypatch):
    (tmp_path / "password").write_text("s3cret\n")
    monkeypatch.setenv("CAMERA_USER", "ann")
    config = load_config(write(f"[source]\nuri = 'rtsp://${{env:CAMERA_USER}}:${{file:{tmp_path}/password}}@cam/1'"))
    assert config.source.uri == "rtsp://ann:s3cret@cam/1"


def test_a_secret_is_asked_for_only_where_its_uri_is_opened(write):
    path = write("[source]\nuri = 'rtsp://ann:${env:NOT_SET_1}@cam/1'")
    assert load_config(path, ['source.uri="clip.mp4"']).source.uri == "clip.mp4"
    assert load_config(path, opens_source=False).source.uri == "rtsp://ann:${env:NOT_SET_1}@cam/1"
    with pytest.raises(ConfigError, match="NOT_SET_1"):
        load_config(path)


def test_a_picture_that_a_config_allows_fits_into_a_message():
    def most(message, field):
        (kind,) = (item.type for item in msgspec.structs.fields(message) if item.name == field)
        info = msgspec.inspect.type_info(kind)
        return getattr(info, "type", info)  # without its description

    allowed = most(Config().exemplars.__class__, "thumbnail_bytes").le
    assert allowed == most(Alert, "thumbnail").max_length == most(Exemplar, "thumbnail").max_length


def test_every_pattern_of_a_text_has_words():
    """A message must not show a regular expression."""
    sections = [field.type for field in msgspec.structs.fields(Config)]
    kinds = [msgspec.inspect.type_info(item.type) for part in sections for item in msgspec.structs.fields(part)]
    assert {kind.pattern for kind in kinds if getattr(kind, "pattern", None)} == set(TEXTS)


def test_a_written_config_reads_back_equal(write):
    mask = "features.mask=[[[0.0,0.0],[1.0,0.0],[0.5,1.0]]]"
    config = load_config(None, ["source.width=640", mask, 'source.uri="a\\"b"'])
    assert load_config(write(config_toml(config))) == config


def test_the_hash_follows_what_changes_results_and_nothing_else():
    base = config_hash(Config())
    assert config_hash(load_config(None, ["publish.endpoint=tcp://127.0.0.1:9999"])) == base
    assert config_hash(load_config(None, ["source.uri=other.mp4"])) == base
    assert config_hash(load_config(None, ["features.step_px=16"])) != base


SHIPPED = sorted(
    entry.name for entry in importlib.resources.files("stillwatch.configs").iterdir() if entry.name.endswith(".toml")
)


def test_three_configs_are_shipped():
    assert {"demo.toml", "surveillance.toml", "auv.toml"} <= set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_config_loads_and_states_every_key(name, monkeypatch):
    monkeypatch.setenv("CAMERA_PASSWORD", "of-the-example")
    text = importlib.resources.files("stillwatch.configs").joinpath(name).read_text()
    with importlib.resources.as_file(importlib.resources.files("stillwatch.configs").joinpath(name)) as path:
        load_config(path)
    for section, values in msgspec.to_builtins(Config()).items():
        assert f"[{section}]" in text
        for key in values:
            assert f"\n{key} = " in text, f"{name} does not state {section}.{key}"


def test_the_demo_config_is_the_default():
    with importlib.resources.as_file(importlib.resources.files("stillwatch.configs").joinpath("demo.toml")) as path:
        assert load_config(path) == Config()


def test_a_recorded_config_of_a_later_version_is_read_without_what_is_unknown():
    notes = []
    text = "[events]\nraise_rarity = 900.0\nlouder = true\n"
    assert recorded_config(text, notes).events.raise_rarity == 900.0
    assert notes == ["recorded config: events.louder is unknown to this version"]


def test_a_recorded_config_that_is_damaged_is_refused():
    with pytest.raises(UsageError, match="cannot be read"):
        recorded_config("[events\n")
