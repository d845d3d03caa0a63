"""Active sets for Gaussian-process regression on KIN40K: variance reduction, entropy, random rows.

Called by tools/experiments/exemplars/command.py. It must not look at the 30,000 test rows but to score.
"""

import argparse
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from stillwatch.learn import GaussianProcessActiveSet
from stillwatch.tools.experiments.data import Cost, kin40k, measure
from stillwatch.tools.shared import find_data

Row = dict[str, Any]
SIZES = (200, 400, 600, 800, 1000)
VALIDATIONS = (2000, 6000, 10_000)
BLOCK = 500
N_TRAIN, N_HYPER = 10_000, 2000
PASSES = 1


class Hyper(NamedTuple):
    """Hyper-parameters of the squared-exponential ARD kernel with noise."""

    lengthscales: np.ndarray
    signal_variance: float
    noise_variance: float


def gaussian_process(args: argparse.Namespace) -> Iterator[Row]:
    """Rows 0-9,999 train, the rest test; hyper-parameters by marginal likelihood on 2,000 training rows.

    F_V is the objective; `validation_mse`, the squared error on W of appendix II, is shown beside it.
    """
    X, y = kin40k(find_data(args.data))
    n_train = min(args.rows or N_TRAIN, N_TRAIN)
    train, test = (X[:n_train], y[:n_train]), (X[N_TRAIN:], y[N_TRAIN:])
    subset = np.random.default_rng(0).choice(n_train, min(N_HYPER, n_train), replace=False)
    hyper, cost = measure(lambda: fit_hyper(train[0][subset], train[1][subset]))
    yield {
        "method": "hyper",
        "seen": len(subset),
        "seconds": cost.seconds,
        "peak_rss_mb": cost.peak_rss_mb,
        "lengthscales": hyper.lengthscales.tolist(),
        "signal_variance": hyper.signal_variance,
        "noise_variance": hyper.noise_variance,
    }
    for seed in range(args.seeds):
        rng = np.random.default_rng([seed, 3])
        order = rng.permutation(n_train)
        given = train[0][order], train[1][order]
        for k in SIZES:
            if _wanted(args, "random"):
                yield _random(hyper, given, test, k, seed)
            if _wanted(args, "entropy"):
                yield _active_set("entropy", hyper, given, test, k, 2, seed)
        for validation in VALIDATIONS if _wanted(args, "variance") else ():
            for k in SIZES:
                yield _active_set("variance", hyper, given, test, k, validation, seed)


def _wanted(args: argparse.Namespace, method: str) -> bool:
    return not args.methods or method in args.methods


def _active_set(
    objective: Literal["variance", "entropy"], hyper: Hyper, train, test, k: int, validation: int, seed: int
) -> Row:
    learner = GaussianProcessActiveSet(
        k=k, objective=objective, block=BLOCK, validation=validation, seed=seed, **hyper._asdict()
    )

    def learn() -> None:
        for _ in range(PASSES):
            learner.partial_fit(*train)
        learner.flush()

    _, cost = measure(learn)
    active = learner.active_set_
    sampled = active.reservoir_.row_numbers[: active.reservoir_.count] % len(train[0])
    error = np.square(learner.predict(train[0][sampled]) - train[1][sampled]).mean() if len(sampled) else None
    return _row(objective, learner, test, k, cost) | {
        "block": BLOCK,
        "validation": validation if objective == "variance" else None,
        "seen": active.n_seen_,
        "utility": active.utility_,
        "train_loss": active.loss_ if objective == "variance" else None,
        "validation_mse": error,
        "state_bytes": sum(learner.memory_bytes().values()),
        "swaps": active.n_swaps_,
        "held": active.n_held_,
        "factor_drift": active.process_.drift,
        "seed": seed,
    }


def _random(hyper: Hyper, train, test, k: int, seed: int) -> Row:
    """The first k rows of the shuffled stream."""
    learner = GaussianProcessActiveSet(k=k, objective="entropy", block=k, **hyper._asdict())
    _, cost = measure(lambda: learner.partial_fit(train[0][:k], train[1][:k]).flush())
    return _row("random", learner, test, k, cost) | {"seen": k, "held": learner.active_set_.n_held_, "seed": seed}


def _row(method: str, learner: GaussianProcessActiveSet, test, k: int, cost: Cost) -> Row:
    mean, deviation = learner.predict(test[0], return_std=True)
    noisy = deviation**2 + learner.active_set_.process_.noise_variance
    errors = np.square(mean - test[1])
    return {
        "method": method,
        "order": "shuffled",
        "k": k,
        "mse": float(errors.mean()),
        "log_likelihood": float(-0.5 * (np.log(2.0 * np.pi * noisy) + errors / noisy).mean()),
        "seconds": cost.seconds,
        "cpu_seconds": cost.cpu_seconds,
        "peak_rss_mb": cost.peak_rss_mb,
    }


def fit_hyper(X: np.ndarray, y: np.ndarray) -> Hyper:
    """Return the hyper-parameters of largest marginal likelihood (Rasmussen and Williams 2006, 5.8-5.9), by L-BFGS.

    A quarter of the rows gives the start for all of them, so that few evaluations cost the full n^3.
    """
    from scipy.optimize import minimize

    theta = np.log(np.concatenate([np.full(X.shape[1], np.sqrt(X.shape[1])), [1.0, 0.1]]))
    bounds = [(-4.0, 8.0)] * X.shape[1] + [(-6.0, 8.0), (-12.0, 2.0)]
    for rows, iterations in ((slice(0, len(X) // 4), 60), (slice(None), 30)):
        found = minimize(
            negative_log_marginal,
            theta,
            (X[rows], y[rows]),
            "L-BFGS-B",
            jac=True,
            bounds=bounds,
            options={"maxiter": iterations},
        )
        theta = found.x
    values = np.exp(theta)
    return Hyper(values[:-2], float(values[-2]), float(values[-1]))


def negative_log_marginal(theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return -log p(y | X, theta) and its gradient; theta = log of length scales, signal and noise variance."""
    n, d = X.shape
    scales, signal, noise = np.exp(theta[:d]), np.exp(theta[d]), np.exp(theta[d + 1])
    scaled = X / scales
    norms = (scaled * scaled).sum(axis=1)
    covariance = signal * np.exp(np.minimum(scaled @ scaled.T - 0.5 * norms[:, None] - 0.5 * norms, 0.0))
    noisy = covariance + noise * np.eye(n)
    inverse = np.linalg.inv(noisy)
    log_det = np.linalg.slogdet(noisy)[1]
    weights = inverse @ y
    value = 0.5 * (y @ weights + log_det + n * np.log(2.0 * np.pi))
    outer = np.outer(weights, weights) - inverse  # dL/dtheta = 1/2 tr(outer dSigma/dtheta)
    gradient = np.empty(d + 2)
    product = outer * covariance
    sums = product.sum(axis=1)
    for j in range(d):  # sum_ab product_ab (x_aj - x_bj)^2 / l_j^2
        x = scaled[:, j]
        gradient[j] = 0.5 * (2.0 * sums @ (x * x) - 2.0 * x @ (product @ x))
    gradient[d] = 0.5 * product.sum()
    gradient[d + 1] = 0.5 * noise * np.trace(outer)
    return float(value), -gradient
