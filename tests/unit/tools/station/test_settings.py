"""Settings are read with every fault at once: which file and line, which key, the value, what it may be."""

import pytest

from stillwatch.base import ConfigError
from stillwatch.tools.station.settings import StationSettings, load_settings

WHOLE = """
[station]
name = "harbour"
score_days = 3.5
[page]
port = 0
[agents.cam1]
endpoint = "tcp://10.0.0.1:5570"
[thin.auv]
preset = "micromodem-0"
[tell.hook]
url = "https://example.test/?token=${env:HOOK}"
phases = ["new", "end"]
"""


def problems(tmp_path, text):
    path = tmp_path / "station.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as told:
        load_settings(str(path))
    return [str(problem).removeprefix(str(path)) for problem in told.value.problems]


def test_without_a_file_everything_has_its_default():
    assert load_settings(None) == StationSettings()


def test_a_file_says_what_differs_and_secrets_come_from_outside(tmp_path, monkeypatch):
    monkeypatch.setenv("HOOK", "s3cret")
    path = tmp_path / "station.toml"
    path.write_text(WHOLE)
    settings = load_settings(str(path))
    assert (settings.station.name, settings.station.score_days, settings.page.port) == ("harbour", 3.5, 0)
    assert settings.agents["cam1"].endpoint == "tcp://10.0.0.1:5570"
    assert settings.thin["auv"].preset == "micromodem-0"
    assert settings.tell["hook"].url.endswith("token=s3cret")
    assert settings.tell["hook"].phases == ("new", "end")


def test_every_fault_is_told_with_its_line(tmp_path):
    found = problems(
        tmp_path,
        '[station]\nscore_days = -1\nstroe = "x"\n[page]\nport = 70000\n[agents.Cam]\nendpoint = "http://x"\n[stuff]\n',
    )
    assert found == [
        ":2: station.score_days: -1 is not a number in (0.0, 36500.0]",
        ":3: station.stroe: unknown key; did you mean store?",
        ":5: page.port: 70000 is not a whole number in [0, 65535]",
        ":6: agents.Cam: a name is 1 to 32 of a-z 0-9 _ - beginning with a letter or digit",
        ":8: stuff: unknown section; known are station, page, agents, thin, tell",
        ":7: agents.Cam.endpoint: 'http://x' is not the agent's publish.endpoint, tcp://HOST:PORT or ipc://PATH",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[tell.a]\nkind = "webhook"', "tell.a.url: webhook needs url"),
        ('[tell.a]\nkind = "email"\nhost = "x"', "tell.a.sender: email needs sender"),
        ('[tell.a]\nkind = "fax"', "is not one of"),
        ('[agents.a]\nendpoint = "tcp://h:1"\nserver = "/no/such.pub"', "'/no/such.pub' is not a file"),
        ('[agents.a]\nendpoint = "tcp://h:1"\nserver = "x"', "needs key"),
        ("[thin.a]\n[thin.b]", "thin.b.listen: udp://127.0.0.1:5581 is taken by thin.a"),
        ('station = "x"', "write [station] and its keys below"),
        ("[station", "not valid TOML"),
    ],
)
def test_what_does_not_go_together_is_said(tmp_path, text, words):
    assert any(words in problem for problem in problems(tmp_path, text))
