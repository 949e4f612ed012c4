"""Hypothesis strategies: rows of confidence, hit and weight with ties and edges."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

EDGES = (0.0, 1.0, 0.5, 0.2, 0.6, 1 / 3, 1 - 1e-9, 1e-12)


def fewer(part):
    """A property that is slow has so many times fewer examples, in every profile."""
    return settings(max_examples=settings.default.max_examples // part)


@st.composite
def pairs(draw, *, least=1, most=40, soft=True, weighted=True, edges=EDGES):
    """(h, a, w): confidences with ties and edges, hard or soft hits, weights."""
    n = draw(st.integers(least, most))
    # Rounded: values a few units in the last place apart count as one.
    anywhere = st.floats(0.001, 0.999).map(lambda x: round(x, 6))
    place = st.one_of(st.sampled_from(edges), anywhere) if edges else anywhere
    h = draw(st.lists(place, min_size=n, max_size=n))
    hits = st.sampled_from([0.0, 1.0])
    if soft and draw(st.booleans()):
        hits = st.one_of(hits, st.floats(0, 1).map(lambda x: round(x, 6)))
    a = draw(st.lists(hits, min_size=n, max_size=n))
    w = np.ones(n)
    if weighted and draw(st.booleans()):
        w = np.array(draw(st.lists(st.floats(0.25, 4), min_size=n, max_size=n)))
    return np.array(h), np.array(a), w


@st.composite
def problems(draw, least=2, most=30, classes=(2, 5)):
    """(logits, labels): a small multi-class problem, exact ties included."""
    n, k = draw(st.integers(least, most)), draw(st.integers(*classes))
    anywhere = st.floats(-30, 30).map(lambda x: round(x, 4))  # ties, but no near-ties
    entry = st.one_of(anywhere, st.sampled_from([0.0, 1.0, -100.0]))
    z = draw(st.lists(st.lists(entry, min_size=k, max_size=k), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    return np.array(z), np.array(y)
