"""Three synthetic agents beside a station, for a first look.

Started by `stillwatch station --demo`. They are real agents in processes of their own, on sockets of this machine.
"""

import pathlib
import subprocess
import sys

import msgspec

from stillwatch.tools.station.settings import AgentSection, StationSettings

WORLDS = {"seafloor": "transect", "roadside": "road", "hallway": "room"}
FRAMES = 864_000  # a day
ENDS_WITHIN_S = 10.0


class Demo:
    """The agents of a demonstration, in a folder that is thrown away with them."""

    def __init__(self, folder: str):
        self._folder = pathlib.Path(folder)
        self._agents: list[subprocess.Popen] = []

    def settings(self, settings: StationSettings) -> StationSettings:
        """Return the settings with the demonstration's agents and store in place of the others."""
        station = msgspec.structs.replace(settings.station, store=str(self._folder / "station.db"), folders=[])
        agents = {name: AgentSection(endpoint=self._endpoint(name)) for name in WORLDS}
        return msgspec.structs.replace(settings, station=station, agents=agents, thin={}, tell={})

    def start(self) -> None:
        """Start the agents."""
        for seed, (name, world) in enumerate(WORLDS.items()):
            source = f"synthetic:{world}?seed={seed}&n_frames={FRAMES}&pace=1"
            command = [sys.executable, "-m", "stillwatch.tools.cli", "run", source]
            command += ["--out", str(self._folder / name), "--fresh", "--quiet"]
            for setting in (f'agent.id="{name}"', f'publish.endpoint="{self._endpoint(name)}"'):
                command += ["--set", setting]
            log = (self._folder / f"{name}.log").open("wb")
            self._agents.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
            log.close()

    def stop(self) -> None:
        """End the agents."""
        for agent in self._agents:
            agent.terminate()
        for agent in self._agents:
            try:
                agent.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait()

    def _endpoint(self, name: str) -> str:
        return f"ipc://{self._folder}/{name}.ipc"  # the run folder has the name itself
