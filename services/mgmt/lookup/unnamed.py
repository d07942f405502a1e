"""Ends that do not name their queue: it was deleted while nobody owned its partition, and the next owner knows its
partition only. Pure; the same rule as that of the audit (`spark.unnamed`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from services.common.trace import Step, is_let_go

ENDS_COPY = {"settled", "expired", "dead_lettered", "dropped"}
_PLACED = {"routed", "enqueued", "recovered"}


def with_queues(steps: Sequence[Step]) -> tuple[list[Step], set[tuple[str, str]]]:
    """The steps, such ends with the queue that they mean: of a message's copies there the one that has not ended, that
    its owner did not let go, and that no owner since tells of; where they are several, and the owner has dropped as
    many, each end another. And the places of those copies any of which may have ended, where it has dropped fewer.
    """
    ends: defaultdict[tuple[str, int | None, int | None], list[int]] = defaultdict(list)
    for number, step in enumerate(steps):
        if is_unnamed(step):
            ends[step.virtual_host, step.partition, step.epoch].append(number)
    named = list(steps)
    in_doubt: set[tuple[str, str]] = set()
    for numbers in ends.values():
        left = _left(steps[numbers[0]], steps)
        if len(left) > len(numbers):
            in_doubt |= {(steps[numbers[0]].virtual_host, queue) for queue in left}
            continue
        for number, queue in zip(numbers, sorted(left), strict=False):
            named[number] = steps[number].model_copy(update={"queue": queue})
    return named, in_doubt


def is_unnamed(step: Step) -> bool:
    """Whether it is such an end."""
    return step.stage == "dropped" and not step.queue and step.partition is not None


def _left(end: Step, steps: Sequence[Step]) -> set[str]:
    place = end.virtual_host, end.partition
    there = [step for step in steps if step.queue and (step.virtual_host, step.partition) == place]
    others = {step.queue for step in there if _is_elsewhere(step, end) or _was_let_go(step, there)}
    return {step.queue for step in there if step.stage in _PLACED} - others


def _is_elsewhere(step: Step, end: Step) -> bool:
    """Whether its copy had another end, or was still there when the partition had its next owner."""
    ended = step.stage in ENDS_COPY and not is_let_go(step)
    return bool(step.epoch) and (ended or (step.epoch or 0) >= (end.epoch or 0))


def _was_let_go(step: Step, there: Sequence[Step]) -> bool:
    """Whether its copy went with the partition, since it was not on disk, and did not come again."""
    if not is_let_go(step):
        return False
    placed = (other.epoch or 0 for other in there if other.queue == step.queue and other.stage in _PLACED)
    return (step.epoch or 0) >= max(placed, default=0)
