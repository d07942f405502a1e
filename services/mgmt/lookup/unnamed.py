"""Ends that do not name their queue: it was deleted while nobody owned its partition, and the next owner knows its
partition only. Pure; the same rule as that of the audit (`spark.unnamed`).
"""

from __future__ import annotations

from collections.abc import Sequence

from services.common.trace import Step, is_let_go

ENDS_COPY = {"settled", "expired", "dead_lettered", "dropped"}
_PLACED = {"routed", "enqueued", "recovered"}


def with_queues(steps: Sequence[Step]) -> tuple[list[Step], set[tuple[str, str]]]:
    """The steps, such ends with the queue that they mean: of a message's copies there the one that has not ended, and
    that no owner since tells of. And the places of those copies any of which may have ended, where they are several.
    """
    named: list[Step] = []
    in_doubt: set[tuple[str, str]] = set()
    for step in steps:
        left = _left(step, steps) if is_unnamed(step) else set()
        if len(left) > 1:
            in_doubt |= {(step.virtual_host, queue) for queue in left}
        named.append(step.model_copy(update={"queue": next(iter(left))}) if len(left) == 1 else step)
    return named, in_doubt


def is_unnamed(step: Step) -> bool:
    """Whether it is such an end."""
    return step.stage == "dropped" and not step.queue and step.partition is not None


def _left(end: Step, steps: Sequence[Step]) -> set[str]:
    place = end.virtual_host, end.partition
    there = [step for step in steps if step.queue and (step.virtual_host, step.partition) == place]
    others = {step.queue for step in there if _is_elsewhere(step, end)}
    return {step.queue for step in there if step.stage in _PLACED} - others


def _is_elsewhere(step: Step, end: Step) -> bool:
    """Whether its copy had another end, or was still there when the partition had its next owner."""
    ended = step.stage in ENDS_COPY and not is_let_go(step)
    return bool(step.epoch) and (ended or (step.epoch or 0) >= (end.epoch or 0))
