"""Slow, clear versions of the mixture's mathematics, written from the textbooks and sharing no code with the agent.

Used by the tests of kernels/mixture_*.py and agent/mixture*.py. Normal-gamma and Normal-inverse-Wishart after Murphy
(2007) and Bishop (2006), appendix B; the bound after Gomes's thesis, 2.8-2.13.
"""

import math

import numpy as np
from scipy.special import digamma, gammaln, multigammaln, xlogy


class DiagonalComponent:
    """Normal-gamma posterior in each dimension; prior (kappa_0, a_0, b_0), prior mean at the origin."""

    def __init__(self, count, mean, scatter, prior):
        self.prior = kappa0, a0, b0 = prior
        self.kappa = kappa0 + count
        self.mean = count * mean / self.kappa
        self.a = a0 + count / 2
        self.b = b0 + 0.5 * (scatter + kappa0 * count / self.kappa * mean**2)

    def expected_log_density(self, mean, second):
        """E[log N(x)] averaged over members with this mean and (packed or square) second moment about it."""
        variance = np.diag(second) if np.ndim(second) == 2 else second
        square = (mean - self.mean) ** 2 + variance
        per_dimension = digamma(self.a) - np.log(self.b) - math.log(2 * math.pi) - 1 / self.kappa
        return 0.5 * float((per_dimension - self.a / self.b * square).sum())

    def kl_from_prior(self):
        """KL(q || p) of the Normal-gamma, summed over dimensions."""
        kappa0, a0, b0 = self.prior
        gamma = (
            (self.a - a0) * digamma(self.a)
            - gammaln(self.a)
            + gammaln(a0)
            + a0 * (np.log(self.b) - math.log(b0))
            + self.a * (b0 - self.b) / self.b
        )
        normal = 0.5 * (
            kappa0 * self.a / self.b * self.mean**2 + kappa0 / self.kappa - 1 - math.log(kappa0 / self.kappa)
        )
        return float((gamma + normal).sum())


class FullComponent:
    """Normal-inverse-Wishart posterior; prior (kappa_0, nu_0, s_0) with scale matrix s_0 I, mean at the origin."""

    def __init__(self, count, mean, scatter, prior):
        self.prior = kappa0, nu0, s0 = prior
        self.d = len(mean)
        self.kappa, self.nu = kappa0 + count, nu0 + count
        self.mean = count * mean / self.kappa
        self.scale = s0 * np.eye(self.d) + scatter + kappa0 * count / self.kappa * np.outer(mean, mean)
        self.inverse = np.linalg.inv(self.scale)

    def _expected_log_det(self):
        steps = digamma((self.nu + 1 - np.arange(1, self.d + 1)) / 2).sum()
        return steps + self.d * math.log(2) - np.linalg.slogdet(self.scale)[1]

    def expected_log_density(self, mean, second):
        """E[log N(x)] averaged over members with this mean and second moment about it."""
        off = mean - self.mean
        square = off @ self.inverse @ off + np.trace(self.inverse @ second)
        return 0.5 * float(
            self._expected_log_det() - self.d * math.log(2 * math.pi) - self.d / self.kappa - self.nu * square
        )

    def kl_from_prior(self):
        """KL(q || p) of the Normal-Wishart over (mean, precision)."""
        kappa0, nu0, s0 = self.prior
        d = self.d
        precision = self.nu * self.inverse
        normal = 0.5 * (
            d * math.log(self.kappa / kappa0) + d * kappa0 / self.kappa - d + kappa0 * self.mean @ precision @ self.mean
        )
        log_det_scale = np.linalg.slogdet(self.scale)[1]
        wishart = (
            0.5 * (self.nu - nu0) * self._expected_log_det()
            - 0.5 * self.nu * d
            + 0.5 * s0 * np.trace(precision)
            + 0.5 * self.nu * log_det_scale
            - 0.5 * self.nu * d * math.log(2)
            - multigammaln(self.nu / 2, d)
            - 0.5 * nu0 * d * math.log(s0)
            + 0.5 * nu0 * d * math.log(2)
            + multigammaln(nu0 / 2, d)
        )
        return float(normal + wishart)


COMPONENTS = {"diagonal": DiagonalComponent, "full": FullComponent}


def statistics(x, counts, second, shares):
    """Return (count, mean, scatter) of one component from all items; `second` holds square matrices or variances."""
    weights = counts * shares
    count = weights.sum()
    mean = weights @ x / count if count > 0 else np.zeros(x.shape[1])
    if second.ndim == 3:
        outer = np.einsum("ni,nj->nij", x - mean, x - mean)
    else:
        outer = (x - mean) ** 2
    return count, mean, np.tensordot(weights, outer + second, axes=1)


def sticks(counts, alpha):
    """Return E[log pi_k] in the given order, and the KL of the sticks, largest stick first."""
    order = np.argsort(-counts, kind="stable")
    log_weight, kl, left = np.zeros(len(counts)), 0.0, 0.0
    for position, k in enumerate(order):
        one = 1 + counts[k]
        two = alpha + counts[order[position + 1 :]].sum()
        log_weight[k] = left + digamma(one) - digamma(one + two)
        left += digamma(two) - digamma(one + two)
        kl += (
            gammaln(one + two)
            - gammaln(one)
            - gammaln(two)
            - math.log(alpha)
            + (one - 1) * (digamma(one) - digamma(one + two))
            + (two - alpha) * (digamma(two) - digamma(one + two))
        )
    return log_weight, kl


def free_energy(x, counts, second, shares, prior, alpha, covariance):
    """Return the bound for given q(Z) with q(Phi), q(V) at their optimum: E[log p(X, Z)] + H(Z) - KLs, term by term.

    x (n, d); counts (n,); second (n, d, d) or (n, d), zero for points; shares (n, K), rows sum to one
    """
    n_components = shares.shape[1]
    stats = [statistics(x, counts, second, shares[:, k]) for k in range(n_components)]
    parts = [COMPONENTS[covariance](*stat, prior) for stat in stats]
    log_weight, kl = sticks(np.array([stat[0] for stat in stats]), alpha)
    total = -kl - sum(part.kl_from_prior() for part in parts)
    for s in range(len(x)):
        for k in range(n_components):
            joint = log_weight[k] + parts[k].expected_log_density(x[s], second[s])
            total += counts[s] * (shares[s, k] * joint - xlogy(shares[s, k], shares[s, k]))
    return total


def log_joints(x, second, stats, prior, alpha, covariance):
    """Return S_sk (2.9) of all items under components given by their statistics."""
    parts = [COMPONENTS[covariance](*stat, prior) for stat in stats]
    log_weight, _ = sticks(np.array([stat[0] for stat in stats]), alpha)
    return np.array(
        [
            [log_weight[k] + part.expected_log_density(x[s], second[s]) for k, part in enumerate(parts)]
            for s in range(len(x))
        ]
    )


def log_evidence(count, mean, scatter, prior, covariance):
    """Return the log marginal likelihood of statistics (Murphy 2007, equations 95 and 266), counts may be fractions."""
    if covariance == "diagonal":
        kappa0, a0, b0 = prior
        part = DiagonalComponent(count, mean, scatter, prior)
        terms = gammaln(part.a) - gammaln(a0) + a0 * math.log(b0) - part.a * np.log(part.b)
        return float((terms + 0.5 * math.log(kappa0 / part.kappa) - count / 2 * math.log(2 * math.pi)).sum())
    kappa0, nu0, s0 = prior
    part = FullComponent(count, mean, scatter, prior)
    d = part.d
    return float(
        -count * d / 2 * math.log(math.pi)
        + multigammaln(part.nu / 2, d)
        - multigammaln(nu0 / 2, d)
        + nu0 / 2 * d * math.log(s0)
        - part.nu / 2 * np.linalg.slogdet(part.scale)[1]
        + d / 2 * math.log(kappa0 / part.kappa)
    )


def unpack(packed, n_dims):
    """Return the square symmetric matrix of a lower triangle packed row by row."""
    square = np.zeros((n_dims, n_dims))
    low = np.tril_indices(n_dims)
    square[low] = packed
    square[low[1], low[0]] = packed
    return square


def decode_rounded(second: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the covariance of a rounded clump: unit rows of a factor, variances on both sides."""
    n = len(second) - 1
    factor = np.zeros((n, n))
    factor[np.tril_indices(n, -1)] = codes.astype(float) * float(second[n])
    last = np.maximum(1.0 - (factor**2).sum(axis=1), 1e-5)
    factor += np.diag(np.sqrt(last))
    factor /= np.linalg.norm(factor, axis=1)[:, None]
    deviation = np.sqrt(second[:n].astype(float))
    return factor @ factor.T * np.outer(deviation, deviation)
