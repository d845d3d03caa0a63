"""Where tasks run: here, on workers of this machine, on a named scheduler; what a killed worker loses."""

import os
import pathlib
import signal
import threading
import time

import pytest
from survey_tasks import blas_threads, double, once_held, refuse
from threadpoolctl import threadpool_limits

from stillwatch.base import UsageError
from stillwatch.tools.survey.machines import HERE, Cluster, Here, machines

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    with machines(None, True, n_workers=2) as workers:
        yield workers


@pytest.mark.parametrize(("scheduler", "is_worth_it"), [(HERE, True), (None, False)])
def test_tasks_stay_here_where_asked_or_where_there_are_few(scheduler, is_worth_it):
    with machines(scheduler, is_worth_it) as run:
        assert isinstance(run, Here)
        assert list(run.run(double, [3, 4])) == [(0, 6), (1, 8)]


def test_workers_give_what_this_process_gives(cluster):
    assert isinstance(cluster, Cluster)
    assert sorted(cluster.run(double, list(range(10)))) == list(Here().run(double, list(range(10))))


def test_tasks_and_what_is_around_them_have_one_thread_of_blas(cluster):
    with threadpool_limits(2, user_api="blas"):
        with machines(HERE, True) as here:
            assert dict(here.run(blas_threads, [0]))[0] == {1}
        assert blas_threads(0) == {2}
    assert dict(cluster.run(blas_threads, [0]))[0] == {1}


def test_an_exception_of_a_task_is_raised(cluster):
    with pytest.raises(ValueError, match="task 7 cannot be done"):
        list(cluster.run(refuse, [7]))


def kill_the_worker_of_task_2(folder: pathlib.Path):
    """Wait until task 2 has begun, then kill its process as the kernel would where memory is out."""
    while not (begun := list(folder.glob("2-0-*"))):
        time.sleep(0.02)
    os.kill(int(begun[0].name.split("-")[2]), signal.SIGKILL)


def test_a_killed_worker_loses_the_task_it_was_at_and_no_other(cluster, tmp_path):
    killer = threading.Thread(target=kill_the_worker_of_task_2, args=(tmp_path,))
    killer.start()
    done = dict(cluster.run(once_held, [(str(tmp_path), value) for value in range(6)]))
    killer.join()
    assert [done[i][0] for i in range(6)] == list(range(6))
    begun = [path.name.split("-")[0] for path in tmp_path.iterdir()]
    assert begun.count("2") == 2
    assert len(begun) <= 8  # a result that only the dead worker held is made again too


def test_a_scheduler_by_its_address(tmp_path):
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as named:
        with machines(named.scheduler_address, False) as run:
            assert dict(run.run(double, [5])) == {0: 10}


def test_a_scheduler_that_is_not_there_is_one_message(monkeypatch):
    monkeypatch.setattr("stillwatch.tools.survey.machines.ANSWERS_WITHIN_S", 0.5)
    with pytest.raises(UsageError, match=r"--scheduler tcp://127.0.0.1:9: no scheduler answers"):
        with machines("tcp://127.0.0.1:9", False):
            pass
