"""scikit-learn's own estimator checks over the learners themselves, and what its users do with an estimator."""

import pickle
import subprocess
import sys
import warnings
from unittest import SkipTest

import numpy as np
import pytest
from learner_cases import learners_of_the_door
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from stillwatch.base import NotFittedError as OurNotFittedError
from stillwatch.learn import (
    GaussianProcessActiveSet,
    GroupedMixture,
    MemoryBoundedMixture,
    SimultaneousMixture,
    StreamGreedy,
)

ESTIMATORS = [
    MemoryBoundedMixture(covariance="full", memory=200, horizon=10_000, max_components=10),
    MemoryBoundedMixture(covariance="diagonal", memory=200, horizon=10_000, max_components=10),
    StreamGreedy(k=4, block=50, validation=100),
    GaussianProcessActiveSet(k=100, block=50, validation=100, lengthscales=4.0),
    GaussianProcessActiveSet(k=100, block=50, validation=100, lengthscales=4.0, objective="entropy"),
]
ESTIMATORS += [kind() for kind in learners_of_the_door() if kind not in {type(made) for made in ESTIMATORS}]
# They take all their rows at once: no `partial_fit`, no state but the pickle's.
AT_ONCE = [
    GroupedMixture(),
    GroupedMixture(weights="stick_breaking", sparse=True),
    SimultaneousMixture(max_kinds=4, n_init=1),
]
# check -> why it cannot apply. None of these may pass unnoticed: a check that begins to pass here fails the test.
NOT_APPLICABLE = {
    "check_supervised_y_2d": "a column of targets is taken as it is: the warning asked for is a class of scikit-learn's"
}
# Checks that scikit-learn skips by itself, and why that is right here.
SKIPPED = {
    "check_array_api_input": "rows are NumPy arrays on the CPU: the learners run compiled kernels over their memory",
    "check_regressor_data_not_an_array": "it wants pandas, which nothing here uses",
}


def not_applicable(estimator):
    return NOT_APPLICABLE if isinstance(estimator, GaussianProcessActiveSet) else {}


with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "Estimator .* does not inherit from", UserWarning)  # it is what is shown here
    every_check = parametrize_with_checks(ESTIMATORS + AT_ONCE, expected_failed_checks=not_applicable)


@every_check
def test_scikit_learns_checks(estimator, check):
    try:
        check(estimator)
    except SkipTest:
        assert check.func.__name__ in SKIPPED
        raise


def rows(n=300):
    return np.random.default_rng(0).normal(size=(n, 3)) * [1.0, 50.0, 0.1]


def taught(estimator):
    X = rows()
    return clone(estimator).fit(X, X[:, 0]), X


@pytest.mark.parametrize("estimator", ESTIMATORS + AT_ONCE, ids=repr)
def test_a_clone_has_the_settings_and_nothing_that_was_learnt(estimator):
    learner, _ = taught(estimator)
    again = clone(learner)
    assert repr(again) == repr(estimator)
    assert vars(again) == again.get_params()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_pickle_answers_and_goes_on_as_the_learner_does(estimator):
    learner, X = taught(estimator)
    again = pickle.loads(pickle.dumps(learner))
    for found in (learner, again):
        found.partial_fit(X[:70], X[:70, 0])
    np.testing.assert_array_equal(again.predict(X), learner.predict(X))
    assert again.state().keys() == learner.state().keys()
    assert all((array == learner.state()[name]).all() for name, array in again.state().items())


@pytest.mark.parametrize("estimator", AT_ONCE, ids=repr)
def test_a_pickle_of_what_was_learnt_at_once_answers_as_it_did(estimator):
    learner, X = taught(estimator)
    again = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(again.predict(X), learner.predict(X))


@pytest.mark.parametrize("estimator", ESTIMATORS + AT_ONCE, ids=repr)
def test_it_works_at_the_end_of_a_pipeline(estimator):
    X = rows()
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(X, X[:, 0])
    scaled = StandardScaler().fit_transform(X)
    alone = clone(estimator).fit(scaled, X[:, 0])
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(scaled))


@pytest.mark.parametrize("estimator", ESTIMATORS + AT_ONCE, ids=repr)
def test_fit_forgets_what_was_learnt_before_even_of_another_width(estimator):
    X = rows()
    learner = clone(estimator).fit(np.ones((60, 5)), np.ones(60)).fit(X, X[:, 0])
    assert learner.n_features_in_ == 3
    np.testing.assert_array_equal(learner.predict(X), clone(estimator).fit(X, X[:, 0]).predict(X))


def test_asking_too_early_raises_scikit_learns_error_and_ours():
    for kind in (NotFittedError, OurNotFittedError):
        with pytest.raises(kind, match="no rows yet"):
            MemoryBoundedMixture().predict(np.zeros((1, 2)))


def test_without_scikit_learn_the_learners_work_and_do_not_load_it():
    code = (
        "import sys; sys.modules['sklearn'] = None; import numpy as np; import stillwatch.learn as l; "
        "X = np.random.default_rng(0).normal(size=(100, 2)); "
        "l.StreamGreedy(k=2, block=20).fit(X).predict(X); l.MemoryBoundedMixture(memory=60).fit(X).score(X); "
        "l.GroupedMixture().fit(X).score(X)\n"
        "try: l.StreamGreedy().predict(X)\n"
        "except Exception as error: print(type(error).__name__, isinstance(error, ValueError))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "NotFittedError False"
