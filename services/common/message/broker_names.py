"""Names of headers, and of annotations, by which the broker tells something, or goes by what a publisher says.

Who only receives a message must not say them of it: a message would be another's duplicate, be held back, or lose its
way, by the word of one who may not publish. What a queue goes by besides is in its arguments.
"""

from __future__ import annotations

from typing import Final

BROKER_NAMES: Final = frozenset(
    {
        "x-acquired-count",
        "x-death",
        "x-deduplication-header",
        "x-delay",
        "x-delivery-count",
        "x-first-death-exchange",
        "x-first-death-queue",
        "x-first-death-reason",
        "x-hopline-annotations",
        "x-opt-delivery-time",
        "x-qpid-not-valid-before",
        "traceparent",
        "tracestate",
    }
)
