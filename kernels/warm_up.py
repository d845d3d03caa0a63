"""Loads every kernel there is: from the cache, or by compiling it. Signatures are explicit, so loading is enough.

Called by the warm-up command and before what is timed. It must not run before `_jit` chose the cache folder.
"""

import importlib
import pkgutil

import stillwatch.kernels
from stillwatch.kernels._jit import Kernel


def load_all() -> dict[str, Kernel]:
    """Import all modules of kernels/ and return {"module.name": kernel}; with the JIT off there are none."""
    found: dict[str, Kernel] = {}
    for module in pkgutil.iter_modules(stillwatch.kernels.__path__):
        loaded = importlib.import_module(f"stillwatch.kernels.{module.name}")
        compiled = {name: value for name, value in vars(loaded).items() if isinstance(value, Kernel)}
        found |= {
            f"{module.name}.{n}": kernel for n, kernel in compiled.items() if kernel.__module__ == loaded.__name__
        }
    for kernel in found.values():
        kernel.load()
    return found
