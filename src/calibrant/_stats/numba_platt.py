"""The numba twin of the fit in `platt`: node by node, over the cells it can see."""

from __future__ import annotations

import numpy as np

from calibrant._rows.numba_math import exact, exp, kernel, reordered, where

UNSEEN = 1e-24
"""Cells whose kernel weight is below this share of the largest do not count."""


@kernel
def climb(K, z, weight, hits, squared, nodes, rules, shift, slope):
    """Fit shift and slope of every node, in place; return leverage and variance.

    `rules` are the precision of the shift's prior and of the slope's (0: as the spread
    asks), the tolerance, the most steps and the longest step.
    """
    leverage, variance = np.empty(len(nodes)), np.empty(len(nodes))
    offset, w, a = np.empty(len(z)), np.empty(len(z)), np.empty(len(z))
    for node in range(len(nodes)):
        k = K[node]
        spread = _look_from(nodes[node], k, z, weight, hits, offset, w, a)
        steep = rules[1] if rules[1] > 0 else rules[0] * spread + 1e-6
        prior = rules[0], steep
        first, last = _seen(k)
        seen = z[first:last], offset[first:last], w[first:last], a[first:last]
        d0, d1 = _climb(seen, prior, rules, shift[node], slope[node])
        _, _, j00, j01, j11 = _sums(seen, d0, d1)
        for j in range(len(z)):
            w[j] = k[j] * k[j] * squared[j]
        _, _, q00, q01, q11 = _sums(seen, d0, d1)
        j00, j11 = j00 + prior[0], j11 + prior[1]
        determinant = j00 * j11 - j01 * j01
        c0, c1 = j11 / determinant, -j01 / determinant
        shift[node], slope[node], leverage[node] = d0, d1, c0
        variance[node] = c0 * c0 * q00 + 2 * c0 * c1 * q01 + c1 * c1 * q11
    return leverage, variance


@reordered
def _look_from(node, k, z, weight, hits, offset, w, a):
    """Fill in offsets, weights and hits as seen from a node; return their spread."""
    total, square = 0.0, 0.0
    for j in range(len(z)):
        offset[j], w[j], a[j] = z[j] - node, k[j] * weight[j], k[j] * hits[j]
        total += w[j]
        square += w[j] * offset[j] * offset[j]
    return square / total


@exact
def _seen(k):
    """The range of cells that count."""
    least = 0.0
    for j in range(len(k)):
        least = max(least, UNSEEN * k[j])
    first, last = 0, len(k)
    while first < last and k[first] <= least:
        first += 1
    while last > first and k[last - 1] <= least:
        last -= 1
    return first, last


@exact
def _climb(seen, prior, rules, d0, d1):
    """As `platt._climb`."""
    _, _, tolerance, most_steps, longest_step = rules
    last0, last1, rise = 0.0, 0.0, 0.0
    for _ in range(most_steps):
        g0, g1, j00, j01, j11 = _sums(seen, d0, d1)
        g0, g1 = g0 - d0 * prior[0], g1 - d1 * prior[1]
        if g0 * last0 + g1 * last1 < -0.5 * rise:  # too far: take half of it back
            last0, last1, rise = 0.5 * last0, 0.5 * last1, 0.5 * rise
            d0, d1 = d0 - last0, d1 - last1
            continue
        j00, j11 = j00 + prior[0], j11 + prior[1]
        determinant = j00 * j11 - j01 * j01
        s0 = (j11 * g0 - j01 * g1) / determinant
        s1 = (j00 * g1 - j01 * g0) / determinant
        length = max(abs(s0), abs(s1) * np.sqrt(prior[1] / prior[0]))
        cut = longest_step / max(length, longest_step)
        last0, last1 = s0 * cut, s1 * cut
        rise = g0 * last0 + g1 * last1
        d0, d1 = d0 + last0, d1 + last1
        if not length >= tolerance:
            break
    return d0, d1


@reordered
def _sums(seen, d0, d1):
    """Gradient and information of shift d0 and slope d1."""
    z, offset, w, a = seen
    g0, g1, j00, j01, j11 = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(len(z)):
        t = offset[j]
        eta = z[j] + (d0 + d1 * t)
        e = exp(-abs(eta))
        p = where(eta >= 0.0, 1.0, e) / (1.0 + e)
        expected = w[j] * p
        residual, information = a[j] - expected, expected * (1.0 - p)
        g0 += residual
        g1 += residual * t
        j00 += information
        j01 += information * t
        j11 += information * t * t
    return g0, g1, j00, j01, j11
