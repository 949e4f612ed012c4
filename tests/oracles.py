"""Slow, obvious twins: each follows the formula of the docstring, row by row."""

import itertools

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax


def softmax(z):
    z = np.asarray(z, dtype=np.float64)
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def gaussian(u):
    return np.exp(-0.5 * u * u)


def epanechnikov(u):
    return np.maximum(1 - u * u, 0)


PROFILES = {"gaussian": gaussian, "epanechnikov": epanechnikov}


def xlogx(x):
    x = np.asarray(x, dtype=np.float64)
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1)), 0)


def unit(divergence, a, h):
    """d(a, h) for two arrays of numbers in [0, 1]."""
    a, h = np.broadcast_arrays(np.asarray(a, float), np.asarray(h, float))
    if divergence == "brier":
        return (a - h) ** 2
    with np.errstate(all="ignore"):
        yes = np.where(a > 0, a * (np.log(a) - np.log(h)), 0)
        no = np.where(a < 1, (1 - a) * (np.log1p(-a) - np.log1p(-h)), 0)
    return yes + no


def phi(divergence, p):
    return p * p if divergence == "brier" else xlogx(p) + xlogx(1 - np.asarray(p))


def kernel_matrix(at, h, bandwidth, kernel="gaussian", boundary="none"):
    """K[i, j], with images of every row beyond 0 and 1 if reflected."""
    profile = PROFILES[kernel]
    at, h = np.asarray(at)[:, None], np.asarray(h)[None, :]
    if boundary == "none":
        return profile((at - h) / bandwidth)
    images = range(-12, 13, 2)
    return sum(
        profile((at - (side * h + shift)) / bandwidth)
        for shift in images
        for side in (1, -1)
    )


def nadaraya_watson(at, h, value, weight, bandwidth, **options):
    """Kernel mean of `value` at the places `at`, and the kernel weight there."""
    K = kernel_matrix(at, h, bandwidth, **options) * weight
    whole = K.sum(axis=1)
    with np.errstate(all="ignore"):
        return K @ value / whole, whole


def paper_error(h, a, weight, divergence, bandwidth, estimator="direct", **options):
    """d_CAL of the paper, by the O(n^2) definition."""
    m, _ = nadaraya_watson(h, h, a, weight, bandwidth, **options)
    m = np.clip(m, 0, 1)
    n = weight.sum()
    if estimator == "direct":
        return (weight * unit(divergence, m, h)).sum() / n
    loss = (weight * unit(divergence, a, h)).sum()
    return (loss - (weight * (phi(divergence, a) - phi(divergence, m))).sum()) / n


def squared_distance(h, r, w, width, group=None, *, mixed=True):
    """Debiased mean of (m - h)^2 at one level, by its definition over rows.

    Products of residuals of two different rows, or of rows of two different groups.
    Rows see each other from place to place, four of which make a width; between two
    places a row belongs to the one nearer to the middle, whatever round-off says.
    """
    n, group = w.sum(), np.arange(len(h)) if group is None else group
    rank = np.array([w[h < x].sum() + 0.5 * w[h == x].sum() for x in h]) / n
    x = 0.5 * (rank + h) if mixed else rank
    t = np.subtract.outer(*[np.rint(4 * (1 - 1e-9) * (x - 0.5) / width)] * 2) / 4
    K = np.where(np.abs(t) <= 5, gaussian(t), 0.0)
    D, wr = K @ w, w * r
    different = group[:, None] != group
    total = 0.0
    for i in range(len(h)):
        total += 2 * wr[i] * (K[i] * wr)[different[i]].sum() / D[i]
        seen = np.outer(K[i] * wr, K[i] * wr) * different
        if len(np.unique(group)) == len(h):  # rows of their own are not in the square
            seen[i] = seen[:, i] = 0.0
        total -= w[i] * seen.sum() / D[i] ** 2
    return total / n


def local_platt(z_node, rank_node, z, rank, a, weight, width, tau=4.0, slope_sd=None):
    """Shift at one node, by a general-purpose optimiser; and its precision terms."""
    K = gaussian((rank_node - rank) / width)
    t = z - z_node
    spread = (K * weight * t * t).sum() / (K * weight).sum()
    prior = np.array([1.0, spread + 1e-6 * tau**2]) / tau**2
    if slope_sd is not None:
        prior[1] = 1 / slope_sd**2

    def loss(d):
        eta = z + d[0] + d[1] * t
        nll = a * np.logaddexp(0, -eta) + (1 - a) * np.logaddexp(0, eta)
        return (K * weight * nll).sum() + 0.5 * (prior * d * d).sum()

    def gradient(d):
        eta = z + d[0] + d[1] * t
        r = K * weight * (1 / (1 + np.exp(-eta)) - a)
        return np.array([r.sum(), (r * t).sum()]) + prior * d

    def hessian(d):
        m = 1 / (1 + np.exp(-(z + d[0] + d[1] * t)))
        v = K * weight * m * (1 - m)
        return np.array(
            [[v.sum(), (v * t).sum()], [(v * t).sum(), (v * t * t).sum()]]
        ) + np.diag(prior)

    d = minimize(
        loss,
        np.zeros(2),
        jac=gradient,
        hess=hessian,
        method="trust-exact",
        options={"gtol": 1e-10},
    ).x
    for _ in range(3):
        d = d - np.linalg.solve(hessian(d), gradient(d))
    inverse = np.linalg.inv(hessian(d))
    m = 1 / (1 + np.exp(-(z + d[0] + d[1] * t)))
    v2 = K * K * weight * m * (1 - m)
    meat = np.array([[v2.sum(), (v2 * t).sum()], [(v2 * t).sum(), (v2 * t * t).sum()]])
    return d[0], inverse[0, 0], (inverse @ meat @ inverse)[0, 0]


def log_error(h, z, a, weight):
    """The debiased log calibration error by its definition, all distinct h as nodes."""
    n = weight.sum()
    order, place = np.unique(h, return_inverse=True)
    mass, hits, at = (np.bincount(place, weight * x) for x in (1 + 0 * a, a, z))
    mid = (np.cumsum(mass) - 0.5 * mass) / n
    width = 0.5 * n**-0.25
    fits = [
        local_platt(at[i] / mass[i], mid[i], at / mass, mid, hits / mass, mass, width)
        for i in range(len(order))
    ]
    shift, leverage, variance = np.array(fits)[place].T
    eta = z + shift
    m = 1 / (1 + np.exp(-eta))
    v = m * (1 - m)
    change = leverage * (a - m) / (1 - np.minimum(leverage * v, 0.9))
    eta_out = eta - np.clip(change, -6, 6)
    before = a * np.logaddexp(0, -z) + (1 - a) * np.logaddexp(0, z)
    after = a * np.logaddexp(0, -eta_out) + (1 - a) * np.logaddexp(0, eta_out)
    return (weight * (before - after + 0.5 * v * np.minimum(variance, 4))).sum() / n


def ece(h, a, weight, edges, norm=1, closed="right"):
    """Loop over bins with explicit edges."""
    total = 0.0
    for i, (low, high) in enumerate(itertools.pairwise(edges)):
        if closed == "right":
            inside = (h > low) & (h <= high) | ((i == 0) & (h == low))
        else:
            inside = (h >= low) & (h < high) | ((i == len(edges) - 2) & (h == high))
        w = weight[inside]
        if w.sum():
            gap = abs((w * (a[inside] - h[inside])).sum() / w.sum())
            total += w.sum() / weight.sum() * gap**norm
    return total ** (1 / norm)


def smooth_ece_at(h, a, weight, bandwidth, points=20_000):
    """Integral of |smoothed residual|, by the midpoint rule on many points."""
    t = (np.arange(points) + 0.5) / points
    K = kernel_matrix(t, h, bandwidth, boundary="reflect") / (
        np.sqrt(2 * np.pi) * bandwidth
    )
    return np.abs(K @ (weight * (a - h))).mean() / weight.sum()


def logit_smoothed_ece(h, a, weight, bandwidth, points=40_000):
    z = np.log(h) - np.log1p(-h)
    t = np.linspace(z.min() - 9 * bandwidth, z.max() + 9 * bandwidth, points)
    K = gaussian((t[:, None] - z) / bandwidth) / (np.sqrt(2 * np.pi) * bandwidth)
    p = 1 / (1 + np.exp(-t))
    residual = K @ (weight * a) - p * (K @ weight)
    return np.abs(residual).sum() * (t[1] - t[0]) / weight.sum()


def ks(h, a, weight):
    sums = [(weight * (a - h))[h <= x].sum() for x in np.unique(h)]
    return np.abs([0.0, *sums]).max() / weight.sum()


def auroc(h, a, weight):
    wins = (h[:, None] > h[None, :]) + 0.5 * (h[:, None] == h[None, :])
    hit, miss = weight * a, weight * (1 - a)
    with np.errstate(all="ignore"):
        return (wins * hit[:, None] * miss[None, :]).sum() / (hit.sum() * miss.sum())


def pav(h, a, weight):
    """Isotonic accuracy of each row: max-min formula over distinct confidences."""
    values = np.unique(h)
    W = np.array([weight[h == x].sum() for x in values])
    A = np.array([(weight * a)[h == x].sum() for x in values])
    W, A = np.r_[0, np.cumsum(W)], np.r_[0, np.cumsum(A)]
    k = len(values)
    fit = [
        max(
            min((A[j] - A[i]) / (W[j] - W[i]) for j in range(at + 1, k + 1))
            for i in range(at + 1)
        )
        for at in range(k)
    ]
    return np.array(fit)[np.searchsorted(values, h)]


def effective(weight, n):
    """Importance weights that add up to the effective number of rows; 1 without any."""
    w = np.ones(n) if weight is None else np.array(weight, float)
    return w * w.sum() / (w * w).sum()


def log_loss(model, scores, y, weight=None):
    """Mean log loss of a recalibrator that gives logits."""
    _, logits = model.recalibrate(scores)
    logs = log_softmax(logits.astype(np.float64), axis=1)
    return np.average(-logs[np.arange(len(y)), y], weights=weight)
