"""Loads every kernel there is: from the cache, or by compiling it. Signatures are explicit, so loading is enough.

Called by the warm-up command and at the start of a run. It must not run before `_jit` chose the cache folder.
"""

import importlib
import pkgutil
from typing import Any

import stillwatch.kernels


def load_all() -> dict[str, Any]:
    """Import all modules of kernels/ and return {"module.name": kernel}; with the JIT off, plain functions."""
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(stillwatch.kernels.__path__):
        loaded = importlib.import_module(f"stillwatch.kernels.{module.name}")
        compiled = {name: value for name, value in vars(loaded).items() if hasattr(value, "py_func")}
        own = {name for name, value in compiled.items() if value.__module__ == loaded.__name__}
        found |= {f"{module.name}.{name}": compiled[name] for name in own}
    return found
