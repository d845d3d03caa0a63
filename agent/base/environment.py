"""What the same bits depend on besides frames, config and seed: versions of libraries, features of the CPU.

Written into recordings and status by the rooms that make them; compared by replays.
"""

import pathlib
import platform

from stillwatch.base.version import __version__


def versions() -> dict[str, str]:
    """Return the versions that the same bits depend on."""
    import importlib.metadata  # a fifth of the time that `import stillwatch.base` takes

    found = {"stillwatch": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for name in ("numpy", "numba", "llvmlite", "opencv-python-headless", "av", "msgspec"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def cpu_features() -> list[str]:
    """Return the CPU's model and those of its features that change how sums are rounded; empty where unknown."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return []
    fields = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    wanted = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512vl", "asimd", "sve", "sve2")
    return [fields.get("model name", platform.processor()), *(name for name in wanted if name in flags)]
