"""Where a survey's tasks run: in this process, on a Dask cluster of this machine, or on one that was named.

Called by tools/survey/command.py. A task is a function of a module and one argument, and gives the same result where
and as often as it runs: one that was lost with its worker runs again. BLAS has one thread in each process: its sums
differ between one thread and two. It must not know what tasks do.
"""

import functools
import importlib.util
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from threadpoolctl import threadpool_limits

from stillwatch.base import UsageError

Given = TypeVar("Given")
Made = TypeVar("Made")

HERE = "none"
ANSWERS_WITHIN_S = 10


class Machines(Protocol):
    """What runs tasks."""

    def run(self, task: Callable[[Given], Made], given: Sequence[Given]) -> Iterator[tuple[int, Made]]:
        """Yield (place in `given`, result), each as it is done; an exception of a task is raised here."""
        ...


class Here:
    """This process: one task after the other, in order."""

    def run(self, task: Callable[[Given], Made], given: Sequence[Given]) -> Iterator[tuple[int, Made]]:
        """Yield (place, result) in order."""
        for place, one in enumerate(given):
            yield place, task(one)


class Cluster:
    """Workers of a Dask cluster. One that dies loses the task that it was at, which another takes."""

    def __init__(self, client: Any):
        self._client = client

    def run(self, task: Callable[[Given], Made], given: Sequence[Given]) -> Iterator[tuple[int, Made]]:
        """Yield (place, result), each as it is done.

        Raises UsageError where a task ended several workers one after the other.
        """
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        alone = functools.partial(_on_one_thread, task)
        places = {future: place for place, future in enumerate(self._client.map(alone, list(given), pure=False))}
        try:
            for future in as_completed(places):
                yield places[future], future.result()
        except KilledWorker as error:
            raise UsageError(
                f"a task ended its worker each time it was tried: {error}; give workers more memory"
            ) from None
        finally:
            self._client.cancel(list(places))


def _on_one_thread(task: Callable[[Given], Made], given: Given) -> Made:
    with threadpool_limits(1, user_api="blas"):
        return task(given)


def has_dask() -> bool:
    """Return whether Dask's workers are installed."""
    return importlib.util.find_spec("distributed") is not None


@contextmanager
def machines(scheduler: str | None, is_worth_it: bool, n_workers: int | None = None) -> Iterator[Machines]:
    """Yield where tasks run; BLAS of this process has one thread until it is left.

    scheduler : the address of a Dask scheduler (tcp://...), whose workers see the same folders; HERE; or None: a
        cluster of this machine's cores, a process each, where Dask is there and `is_worth_it`, else this process

    Raises UsageError where the scheduler does not answer, or Dask is not installed for it.
    """
    with threadpool_limits(1, user_api="blas"), _opened(scheduler, is_worth_it, n_workers) as opened:
        yield opened


@contextmanager
def _opened(scheduler: str | None, is_worth_it: bool, n_workers: int | None) -> Iterator[Machines]:
    if scheduler == HERE or (scheduler is None and not (is_worth_it and has_dask())):
        yield Here()
        return
    if not has_dask():
        raise UsageError(f"--scheduler {scheduler}: Dask is not installed: pip install 'stillwatch[survey]'")
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(
        logging.CRITICAL
    )  # that a worker died is told by nobody: its task runs again
    if scheduler is None:
        with (
            LocalCluster(
                n_workers=n_workers or os.cpu_count() or 1,
                threads_per_worker=1,
                processes=True,
                memory_limit=0,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield Cluster(client)
        return
    try:
        client = Client(scheduler, timeout=ANSWERS_WITHIN_S)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"--scheduler {scheduler}: no scheduler answers: {error or type(error).__name__}; "
            "start one with: dask scheduler"
        ) from None
    with client:
        yield Cluster(client)
