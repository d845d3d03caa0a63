"""Tasks that tests give to workers: importable there as here."""

import os
import pathlib
import time

from threadpoolctl import threadpool_info


def double(value: int) -> int:
    return 2 * value


def blas_threads(_: int) -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def refuse(value: int) -> int:
    raise ValueError(f"task {value} cannot be done")


def once_held(job: tuple[str, int]) -> tuple[int, int]:
    """Leave a file for each time it began; the task 2 then waits to be killed, the first time alone."""
    folder, value = job
    place = pathlib.Path(folder)
    began = len(list(place.glob(f"{value}-*")))
    (place / f"{value}-{began}-{os.getpid()}").touch()
    if value == 2 and not began:
        time.sleep(120)
    return value, os.getpid()
