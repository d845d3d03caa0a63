"""Slow reference of the mixtures of groups: the NumPy and SciPy program that came checked with the notes on the thesis.

Used by tests/unit/learn/groups/. Its expectations and penalties were held against Monte-Carlo draws; it is kept as it
was but for line breaks and names.
"""

import numpy as np
from numpy.linalg import eigh, inv, slogdet
from scipy.special import digamma as psi
from scipy.special import gammaln as lg


def lse(a):
    m = a.max(1, keepdims=True)
    return (m + np.log(np.exp(a - m).sum(1, keepdims=True)))[:, 0]


class GW:  # Gaussian-Wishart cluster
    def __init__(s, m0, iO0, rho0, g0=1.0):  # iO0 = inverse of prior Omega = rho0*lmax*Cw*I
        s.p = (m0, iO0, rho0, g0)
        s.D = len(m0)
        s.upd(0.0, np.zeros(s.D), np.zeros((s.D, s.D)))

    def upd(s, N, S1, S2):  # N=sum q, S1=sum q x, S2=sum q x x'
        m0, iO0, r0, g0 = s.p
        s.N = N
        xb = S1 / N if N > 0 else m0
        s.g = g0 + N
        s.rho = r0 + N
        s.m = (g0 * m0 + S1) / s.g
        d = xb - m0
        s.iO = iO0 + (S2 - N * np.outer(xb, xb) if N > 0 else 0) + g0 * N / s.g * np.outer(d, d)
        s.O = inv(s.iO)
        s.ldO = slogdet(s.O)[1]
        j = np.arange(1, s.D + 1)
        s.ps = psi((s.rho + 1 - j) / 2).sum()
        s.El = s.ps + s.D * np.log(2) + s.ldO

    def ell(s, X):
        d = X - s.m
        return (
            0.5 * s.El
            - s.D / (2 * s.g)
            - 0.5 * s.D * np.log(2 * np.pi)
            - 0.5 * s.rho * np.einsum("nd,de,ne->n", d, s.O, d)
        )

    def kl(s):
        m0, iO0, r0, g0 = s.p
        D = s.D
        j = np.arange(1, D + 1)
        d = s.m - m0
        return (
            D / 2 * (g0 / s.g - np.log(g0 / s.g) - s.rho - 1)
            + r0 / 2 * (-slogdet(iO0)[1] - s.ldO)
            + s.rho / 2 * np.trace(iO0 @ s.O)
            + s.rho * g0 / 2 * d @ s.O @ d
            + (s.N / 2 * psi((s.rho + 1 - j) / 2) + lg((r0 + 1 - j) / 2) - lg((s.rho + 1 - j) / 2)).sum()
        )

    def side(s, X):
        return (X - s.m) @ eigh(s.iO)[1][:, -1] >= 0


class Dir:
    def __init__(s, a=1.0):
        s.a0 = a

    def upd(s, N):
        s.N = N
        s.a = s.a0 + N
        s.Elp = psi(s.a) - psi(s.a.sum())
        return s

    def kl(s):
        K = len(s.a)
        return lg(s.a.sum()) - lg(K * s.a0) - lg(s.a).sum() + K * lg(s.a0) + ((s.a - s.a0) * s.Elp).sum()

    def mean(s):
        return s.a / s.a.sum()


class GDir:  # a=b=1; dp=True -> VDP (no forced last stick)
    def __init__(s, a=1.0, b=1.0, dp=False):
        s.a0, s.b0, s.dp = a, b, dp

    def upd(s, N):
        s.N = N
        K = len(N)
        o = np.argsort(-N, kind="stable")
        n = N[o]
        a = s.a0 + n
        b = s.b0 + n.sum() - np.cumsum(n)
        lv = psi(a) - psi(a + b)
        l1 = psi(b) - psi(a + b)
        if not s.dp:
            lv[-1] = 0.0
        s.Elp = np.empty(K)
        s.Elp[o] = lv + np.r_[0, np.cumsum(l1[:-1])]
        e = K if s.dp else K - 1
        a, b, lv, l1 = a[:e], b[:e], lv[:e], l1[:e]
        s.penalty = (
            (a - s.a0) * lv + (b - s.b0) * l1 - lg(a) - lg(b) + lg(a + b) + lg(s.a0) + lg(s.b0) - lg(s.a0 + s.b0)
        ).sum()
        return s

    def kl(s):
        return s.penalty


def prior(X, Cw, scale=True):
    D = X.shape[1]
    logs = np.linalg.eigvalsh(np.atleast_2d(np.cov(X.T)))[-1] if scale else 1.0
    return (X.mean(0), D * logs * Cw * np.eye(D), float(D), 1.0)


def vb(X, qZ, wt, pr, maxit=-1, tol=1e-5, check=True):  # GMC: X,qZ lists over groups
    K = qZ[0].shape[1]
    F = np.inf
    it = 0
    C = [GW(*pr) for _ in range(K)]
    while True:
        W = [wt().upd(q.sum(0)) for q in qZ]
        for k, c in enumerate(C):
            c.upd(
                sum(q[:, k].sum() for q in qZ),
                sum(q[:, k] @ x for q, x in zip(qZ, X, strict=True)),
                sum((x * q[:, k : k + 1]).T @ x for q, x in zip(qZ, X, strict=True)),
            )
        L = 0.0
        nq = []
        for x, w in zip(X, W, strict=True):
            if not len(x):
                nq.append(np.zeros((0, K)))
                continue
            logs = np.stack([c.ell(x) for c in C], 1) + w.Elp
            z = lse(logs)
            L += z.sum()
            nq.append(np.exp(logs - z[:, None]))
        qZ = nq
        Fo = F
        F = sum(c.kl() for c in C) + sum(w.kl() for w in W) - L
        it += 1
        assert not (check and np.isfinite(Fo) and F - Fo > 1e-6 * abs(Fo)), (Fo, F)
        if it == maxit or (np.isfinite(Fo) and abs((Fo - F) / Fo) <= tol):
            return F, qZ, W, C


def gmc(X, wt, pr, greedy=True, tol=1e-5, splitit=15):
    qZ = [np.ones((len(x), 1)) for x in X]
    tally = [0]
    nv = 0
    while True:
        F, qZ, W, C = vb(X, qZ, wt, pr)
        K = len(C)
        Fk = [
            c.kl() - sum((q[:, k] * (w.Elp[k] + c.ell(x))).sum() for q, x, w in zip(qZ, X, W, strict=True))
            for k, c in enumerate(C)
        ]
        order = sorted(range(K), key=lambda k: (tally[k], -Fk[k])) if greedy else range(K)
        best = None
        for k in order:
            tally[k] += 1
            if C[k].N < 4:
                continue
            msk = [q[:, k] > 0.5 for q in qZ]
            Xs = [x[m] for x, m in zip(X, msk, strict=True)]
            sd = [C[k].side(x) if len(x) else np.zeros(0, bool) for x in Xs]
            n1 = sum(s.sum() for s in sd)
            n = sum(map(len, Xs))
            if n1 < 2 or n - n1 < 2:
                continue
            _, qs, _, Cs = vb(Xs, [np.stack([s, ~s], 1).astype(float) for s in sd], wt, pr, splitit)
            if min(c.N for c in Cs) <= 1:
                continue
            qa = []
            for q, m, s in zip(qZ, msk, qs, strict=True):
                r = np.hstack([q, np.zeros((len(q), 1))])
                i = np.flatnonzero(m)[s[:, 1] > 0.5]
                r[i, -1] = r[i, k]
                r[i, k] = 0
                qa.append(r)
            Fs, qa, _, Ca = vb(X, qa, wt, pr, 1, check=False)
            nv += 1
            if min(c.N for c in Ca) <= 1:
                continue
            if Fs < F and (F - Fs) / abs(F) > tol and (best is None or Fs < best[0]):
                best = (Fs, qa, k)
                if greedy:
                    break
        if best is None:
            return F, qZ, W, C
        qZ = best[1]
        tally[best[2]] = 0
        tally.append(0)


def vbm(Wi, X, qY, qZ, wt, phi, pt, pk, maxit=-1, tol=1e-5, check=True):  # SCM (Wi=None) / MCM
    T = qY[0].shape[1]
    K = qZ[0][0].shape[1]
    F = np.inf
    it = 0
    CK = [GW(*pk) for _ in range(K)]
    CT = [GW(*pt) for _ in range(T)] if Wi is not None else []
    Xc = np.vstack([x for g in X for x in g])
    while True:
        G = [wt().upd(q.sum(0)) for q in qY]
        nji = [np.stack([z.sum(0) for z in g]) for g in qZ]  # I_j x K
        N = sum(q.T @ n for q, n in zip(qY, nji, strict=True))
        B = [Dir(phi).upd(N[t]) for t in range(T)]
        Zc = np.vstack([z for g in qZ for z in g])
        for k, c in enumerate(CK):
            q = Zc[:, k]
            c.upd(q.sum(), q @ Xc, (Xc * q[:, None]).T @ Xc)
        for t, c in enumerate(CT):
            c.upd(
                sum(q[:, t].sum() for q in qY),
                sum(q[:, t] @ w for q, w in zip(qY, Wi, strict=True)),
                sum((w * q[:, t : t + 1]).T @ w for q, w in zip(qY, Wi, strict=True)),
            )
        Elb = np.stack([b.Elp for b in B])
        D = 0.0
        nY = []
        nZ = []
        for j in range(len(X)):
            cross = nji[j] @ Elb.T
            logs = cross + G[j].Elp
            if CT:
                logs = logs + np.stack([c.ell(Wi[j]) for c in CT], 1)
            z = lse(logs)
            y = np.exp(logs - z[:, None])
            nY.append(y)
            D += (y * cross).sum() - z.sum()
            zz = []
            for i, x in enumerate(X[j]):
                if not len(x):
                    zz.append(np.zeros((0, K)))
                    continue
                logs = np.stack([c.ell(x) for c in CK], 1) + y[i] @ Elb
                z = lse(logs)
                zz.append(np.exp(logs - z[:, None]))
                D -= z.sum()
            nZ.append(zz)
        qY, qZ = nY, nZ
        Fo = F
        it += 1
        F = sum(c.kl() for c in CK) + sum(c.kl() for c in CT) + sum(b.kl() for b in B) + sum(g.kl() for g in G) + D
        assert not (check and np.isfinite(Fo) and F - Fo > 1e-6 * abs(Fo)), (Fo, F)
        if it == maxit or (np.isfinite(Fo) and abs((Fo - F) / Fo) <= tol):
            return F, qY, qZ, G, B, CT, CK


def mcm(Wi, X, wt, phi, pt, pk, T0, rng, tol=1e-5, splitit=15):
    qY = [rng.random((len(g), T0)) for g in X]
    qY = [q / q.sum(1, keepdims=True) for q in qY]
    qZ = [[np.ones((len(x), 1)) for x in g] for g in X]
    tally = [0]
    while True:
        F, qY, qZ, G, B, CT, CK = vbm(Wi, X, qY, qZ, wt, phi, pt, pk)
        K = len(CK)
        Fk = [
            c.kl()
            - sum((z[:, k] * c.ell(x)).sum() for gz, gx in zip(qZ, X, strict=True) for z, x in zip(gz, gx, strict=True))
            for k, c in enumerate(CK)
        ]
        done = True
        for k in sorted(range(K), key=lambda k: (tally[k], -Fk[k])):
            tally[k] += 1
            if CK[k].N < 4:
                continue
            msk = [[z[:, k] > 0.5 for z in g] for g in qZ]
            Xs = [[x[m] for x, m in zip(g, mm, strict=True)] for g, mm in zip(X, msk, strict=True)]
            sd = [[CK[k].side(x) for x in g] for g in Xs]
            n1 = sum(s.sum() for g in sd for s in g)
            n = sum(len(x) for g in Xs for x in g)
            if n1 < 2 or n - n1 < 2:
                continue
            q1 = [np.ones((len(g), 1)) for g in X]
            _, _, qs, _, _, _, Cs = vbm(
                None, Xs, q1, [[np.stack([s, ~s], 1).astype(float) for s in g] for g in sd], wt, phi, pt, pk, splitit
            )
            if min(c.N for c in Cs) <= 1:
                continue
            qa = []
            for gz, gm, gs in zip(qZ, msk, qs, strict=True):
                o = []
                for q, m, s in zip(gz, gm, gs, strict=True):
                    r = np.hstack([q, np.zeros((len(q), 1))])
                    i = np.flatnonzero(m)[s[:, 1] > 0.5]
                    r[i, -1] = r[i, k]
                    r[i, k] = 0
                    o.append(r)
                qa.append(o)
            Fs, ya, qa, _, _, _, Ca = vbm(Wi, X, qY, qa, wt, phi, pt, pk, 1, check=False)
            if min(c.N for c in Ca) <= 1:
                continue
            if Fs < F and (F - Fs) / abs(F) > tol:
                qY, qZ = ya, qa
                tally[k] = 0
                tally.append(0)
                done = False
                break
        if done:
            keep = np.array([b.N.sum() for b in B]) >= 1
            if keep.all():
                return F, qY, qZ, G, B, CT, CK
            qY = [q[:, keep] for q in qY]
            qY = [q / q.sum(1, keepdims=True) for q in qY]
