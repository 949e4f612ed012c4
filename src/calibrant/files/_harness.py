"""Files that harnesses for language models write, known by what is in them.

Each harness turns its own records into flat ones, one for each answer, and says which of
their columns is what. From there on they are read like any file of JSON.
"""

from __future__ import annotations

from typing import Any

from calibrant.files._harness_base import Harness
from calibrant.files._helm import HELM_REQUESTS, HELM_STATS
from calibrant.files._inspect_logs import INSPECT_LOG
from calibrant.files._lm_eval import LM_EVAL
from calibrant.files._token_logprobs import TOKEN_LOGPROBS

HARNESSES = (LM_EVAL, HELM_STATS, HELM_REQUESTS, INSPECT_LOG, TOKEN_LOGPROBS)
"""All that are known; a new one is a file of its own and a name here."""

HARNESS_NAMES = frozenset(harness.name for harness in HARNESSES)


def harness_of(first: Any) -> Harness | None:
    """The harness that writes files whose first object is this."""
    if not isinstance(first, dict):
        return None
    return next((harness for harness in HARNESSES if harness.knows(first)), None)
