from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Column: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]
Short: TypeAlias = NDArray[np.int32]
Mask: TypeAlias = NDArray[np.bool_]
Real: TypeAlias = NDArray[Any]  # float32 or float64, the same for all of a call

def reduce(
    logits: int,
    tolerance: float,
    k: int,
    scores: Real,
    labels: Index,
    confidence: Column,
    log_odds: Column,
    hit: Column,
    brier: Column,
    log: Column,
    predicted: Short,
    offends: Mask,
    /,
) -> None: ...
def bend(
    beta: float,
    k: int,
    scores: Real,
    labels: Index,
    value: Column,
    slope: Column,
    curvature: Column,
    own: Column,
    /,
) -> None: ...
def replace(
    k: int, probs: Real, edges: Column, values: Real, absent: Index, out: Real, /
) -> None: ...
def tally(
    k: int,
    probs: Real,
    edges: Column,
    weight: Column | None,
    labels: Index,
    counts: Column,
    hits: Column,
    /,
) -> None: ...
def add_up(k: int, probs: Real, sums: Column, /) -> bool: ...
def follow(
    k: int,
    starts: Index,
    segments: Column,
    lowest: Real,
    flat: Real,
    probs: Real,
    out: Real,
    /,
) -> None: ...
def stretches(
    k: int,
    probs: Real,
    weights: Column,
    starts: Index,
    marks: Real,
    first: Real,
    below_weight: Column,
    below_low: Real,
    below_high: Real,
    weight: Column,
    low: Real,
    high: Real,
    /,
) -> None: ...
def residual(
    order: int, h: Column, hit: Column, weight: Column | None, moments: Column, /
) -> None: ...
def add_rows(
    cells: int,
    lost: tuple[Mask, ...],
    table: Column,
    low: Column | None,
    high: Column | None,
    place: Short,
    part: Column,
    weight: Column | None,
    h: Column,
    own: Column,
    hit: Column,
    log_odds: Column,
    /,
    *values: Column,
) -> None: ...
def add_pairs(
    width: int, table: Column, h: Column, hit: Column, loss: Column | None, /
) -> bool: ...
def add_top(
    width: int,
    bins: int,
    table: Column,
    within: Column,
    confidence: Column,
    log_odds: Column,
    hit: Column,
    brier: Column,
    log: Column,
    predicted: Short,
    /,
) -> None: ...
def add_batch(
    bins: int,
    table: Column,
    low: Column,
    high: Column,
    totals: Column,
    certain: Column,
    within: Column | None,
    keep: Mask,
    predicted: Index,
    h: Column,
    log_odds: Column,
    hit: Column,
    brier: Column,
    log: Column,
    work: Column,
    /,
) -> None: ...
def fit_platt(
    width: float,
    prior_shift: float,
    prior_slope: float,
    tolerance: float,
    steps: float,
    longest: float,
    rank: Column,
    z: Column,
    weight: Column,
    hits: Column,
    squared: Column,
    nodes: Column,
    at: Column,
    shift: Column,
    slope: Column,
    leverage: Column,
    variance: Column,
    /,
) -> None: ...
def sort(
    keys: Index, spare: Index, along: Index | None, spare_along: Index | None, /
) -> bool: ...
def poisson(
    seed: int, draws: int, means: Column, reaches: Index, counts: Column, /
) -> None: ...
def kernel_sums(
    power: int,
    taps: Column,
    number: Index,
    place: Index,
    table: Column,
    sums: Column,
    /,
) -> None: ...
def pairs(
    scale: float,
    taps: Column,
    number: Index,
    place: Index,
    importance: Column,
    r: Column,
    /,
    *columns: Column,
) -> None: ...
def events(
    n: Column, p: Column, uniform: NDArray[np.float32], out: Column, /
) -> None: ...
def quantile(freedom: float, value: float, p: float, start: float, /) -> float: ...
def left_out(
    prior: float,
    longest: float,
    largest: float,
    steps: float,
    eta: Column,
    leverage: Column,
    hit: Column,
    out: Column,
    /,
) -> None: ...
def add_cells(cells: int, cell: Index, table: Column, sums: Column, /) -> None: ...
def crossings(
    steps: int, bound: float, shape: Column, noise: Column, scale: Column, /
) -> None: ...
def node_weights(
    cells: int, polynomials: Column, moments: Column, weights: Column, /
) -> None: ...
def bells(
    bandwidth: float,
    reach: float,
    places: Column,
    nodes: Column,
    values: Column,
    sums: Column,
    /,
) -> None: ...
