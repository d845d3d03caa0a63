"""What the learners share: the protocol the agent runs them by, and scikit-learn's conventions without scikit-learn.

Used by every learner of this wing. It must not import scikit-learn before scikit-learn asks for its tags.
"""

import functools
import inspect
import sys
from typing import Any, Protocol, Self

import numpy as np

from stillwatch.base import Commit, NotFittedError, Restorable, SnapshotError, State


class Learner(Protocol):
    """A model that learns from a stream of rows in fixed memory, as the agent runs it.

    `partial_fit` takes rows and learns whenever enough wait, `flush` learns those that wait; both return the learner.
    `summary` says what was learnt as named arrays, for messages and reports. The rest is the contract of every stage:
    a state goes on bit for bit, and one that is refused changes nothing.
    """

    def partial_fit(self, X: np.ndarray, y: Any = None) -> Self: ...

    def flush(self) -> Self: ...

    def summary(self) -> dict[str, np.ndarray]: ...

    def state(self) -> State: ...

    def prepare(self, state: State) -> Commit: ...

    def restore(self, state: State) -> None: ...

    def memory_bytes(self) -> dict[str, int]: ...


def not_fitted(message: str) -> NotFittedError:
    """Return the error of a learner that has learnt nothing; scikit-learn's own as well where the caller has loaded it.

    scikit-learn's tools catch their class by name; a program without scikit-learn never sees it.
    """
    theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    return NotFittedError(message) if theirs is None else _also(theirs)(message)


@functools.cache
def _also(theirs: type[Exception]) -> type[NotFittedError]:
    return type("NotFittedError", (NotFittedError, theirs), {"__module__": NotFittedError.__module__})


def check_rows(X: Any, n_features: int | None, who: str) -> np.ndarray:
    """Return X as finite rows of shape (n, n_features), float32 or float64; other real types become float64.

    Parameters
    ----------
    X : array-like of shape (n, n_features); n may be 0
    n_features : int or None
        The width that rows must have; None takes any.
    who : str
        Named in the message.

    Raises
    ------
    ValueError
        Where the shape is wrong, or a value is not a finite real number.
    TypeError
        Where X is sparse, or holds objects that are not numbers.
    """
    if hasattr(X, "toarray"):
        raise TypeError(f"X: {who} takes no sparse matrix: give X.toarray()")
    rows = np.asarray(X)
    if rows.dtype.kind == "c":
        raise ValueError(f"X: dtype {rows.dtype} is not a real number. Complex data not supported")
    if rows.dtype.kind not in "fiubO":
        raise ValueError(f"X: dtype {rows.dtype} is not a real number")
    if rows.ndim != 2:
        raise ValueError(f"X: shape {rows.shape} is not (n, {n_features or 'n_features'}). Reshape your data")
    if rows.shape[1] == 0:
        raise ValueError(f"X: 0 feature(s) (shape={rows.shape}) while a minimum of 1 is required.")
    if n_features is not None and rows.shape[1] != n_features:
        raise ValueError(f"X has {rows.shape[1]} features, but {who} is expecting {n_features} features as input")
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise ValueError(
            f"X: {np.count_nonzero(bad)} of {len(rows)} rows hold NaN or infinity, first row {int(np.argmax(bad))}"
        )
    return rows


class Configured:
    """Settings as scikit-learn has them: a constructor that only assigns, `get_params`, `set_params`, tags.

    Base of the learners from streams (`Estimator`) and of those that take all their rows at once. A subclass says what
    it is to scikit-learn in `_estimator_kind`.
    """

    _estimator_kind: str | None = None
    n_features_in_: int

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {parameter.name: parameter.default for parameter in parameters}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; `deep` is there for scikit-learn, no setting has settings of its own."""
        return {name: getattr(self, name) for name in sorted(self._defaults())}

    def set_params(self, **params: Any) -> Self:
        """Change settings; they take effect when memory is taken next: by `fit` or `allocate`."""
        known = self._defaults()
        for name in params:
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: {sorted(known)}"
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = self._defaults()
        given = {name: getattr(self, name) for name in defaults if repr(getattr(self, name)) != repr(defaults[name])}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def __sklearn_is_fitted__(self) -> bool:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        is_regressor = self._estimator_kind == "regressor"
        return Tags(
            estimator_type=self._estimator_kind,
            target_tags=TargetTags(required=is_regressor),
            regressor_tags=RegressorTags() if is_regressor else None,
            input_tags=InputTags(),
        )


class Estimator(Configured, Restorable):
    """Base of the learners: settings as scikit-learn has them, memory taken once, one form of saved state.

    The constructor assigns its arguments and nothing else. `allocate`, or the first rows, check them and take all the
    memory there will be. `fit` begins anew, `partial_fit` goes on. `get_params`, `set_params`, `clone`, copies,
    pickles and pipelines work as scikit-learn's users expect; a pickle holds the settings and `state()`.

    A subclass gives `_allocate`, `_prepare`, `_width_of`, `state`, `memory_bytes`, `partial_fit`, `flush`, and says
    what it is to scikit-learn in `_estimator_kind`.

    Attributes
    ----------
    n_features_in_ : int
        Width of the rows; there once memory is taken.
    """

    _allocated_for: dict[str, Any]

    # -- memory ------------------------------------------------------------------------------------------------

    @property
    def _is_allocated(self) -> bool:
        return "n_features_in_" in vars(self)

    def allocate(self, n_features: int) -> Self:
        """Check the settings and take all the memory now, for rows of this width; what was learnt is forgotten.

        Raises ValueError where the settings or the width cannot work; nothing changes then.
        """
        if n_features < 1:
            raise ValueError(f"n_features: {n_features} is below 1")
        self._become(self._fresh(n_features))
        return self

    def _fresh(self, n_features: int) -> Self:
        """Return a new learner of the same settings, its memory taken."""
        fresh = type(self)(**self.get_params())
        fresh._allocated_for = fresh.get_params()
        fresh.n_features_in_ = n_features
        fresh._allocate()
        return fresh

    def _become(self, other: Self) -> None:
        """Take everything that another learner of this kind is; what others hung on this one (pipelines do) stays."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).update(vars(other))

    def _allocate(self) -> None:
        """Check the settings and make every array, for rows of `n_features_in_`."""
        raise NotImplementedError

    def _require_memory(self) -> None:
        if not self._is_allocated:
            raise not_fitted(f"{type(self).__name__} has seen no rows yet: give it some, or allocate(n_features)")

    def _rows(self, X: Any) -> np.ndarray:
        """Return X as rows of the learner's width, or raise; nothing is learnt."""
        return check_rows(X, self.n_features_in_ if self._is_allocated else None, type(self).__name__)

    def _rows_to_learn(self, X: Any) -> np.ndarray:
        for name, value in self._allocated_for.items():
            if getattr(self, name) is not value:
                raise ValueError(f"{name}: changed after memory was taken for it: fit or allocate anew")
        return self._rows(X)

    def fit(self, X: np.ndarray, y: Any = None) -> Self:
        """Forget everything and learn these rows: `partial_fit` and `flush` of a new learner.

        X : array-like of shape (n, n_features), n >= 1; y : ignored, unless the learner has targets

        Raises ValueError as `partial_fit` does; nothing changes then.
        """
        return self._fit_anew(X, y)

    def _fit_anew(self, X: np.ndarray, y: Any, **given: Any) -> Self:
        """Do what `fit` says, for learners whose `partial_fit` is given more."""
        rows = check_rows(X, None, type(self).__name__)
        if not len(rows):
            raise ValueError(f"X: 0 sample(s) (shape={rows.shape}) while a minimum of 1 is required.")
        fresh = self._fresh(rows.shape[1])
        self._become(fresh.partial_fit(X, y, **given).flush())
        return self

    def partial_fit(self, X: np.ndarray, y: Any = None) -> Self:
        """Take rows from the stream; every learner says how."""
        raise NotImplementedError

    def flush(self) -> Self:
        """Learn the rows that wait."""
        raise NotImplementedError

    # -- state -------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return everything learnt and buffered as flat arrays; a restored learner goes on bit for bit."""
        raise NotImplementedError

    def prepare(self, state: State) -> Commit:
        """Validate a state of the same settings and return its commit; SnapshotError, and no change, otherwise.

        A learner that has seen no rows takes its width from the state.
        """
        try:
            fresh = self._fresh(self.n_features_in_ if self._is_allocated else self._width_of(state))
        except ValueError as error:
            raise SnapshotError(f"{type(self).__name__}: the saved state does not fit the settings: {error}") from error
        fresh._prepare(state)()  # down to the last array in a learner of its own: nothing can fail half way
        return lambda: self._become(fresh)

    def _prepare(self, state: State) -> Commit:
        raise NotImplementedError

    def _width_of(self, state: State) -> int:
        """Return the width of the rows that a state is about."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle or a copy holds: the settings, the state, and the labels that a clusterer's `fit` left."""
        labels = {name: vars(self)[name] for name in ("labels_",) if name in vars(self)}
        return {"settings": self.get_params(), "state": self.state() if self._is_allocated else None, "labels": labels}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved["settings"])
        if saved["state"] is not None:
            self.restore(saved["state"])
        vars(self).update(saved["labels"])
