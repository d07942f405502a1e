"""What may be said of a copy, by the truth; what is `unknown` has to have a gap to blame besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.fates.truth import ACKED, CONFIRMED, IN_DOUBT, REFUSED, REJECTED, RETURNED, ROLLED_BACK

if TYPE_CHECKING:
    from tests.support.fates.truth import Copy, Publication, Queue, Truth

UNKNOWN, LOST_TRANSIENT = "unknown", "lost (transient)"
NEVER = "not_enqueued"
_CLEAR_SECONDS = 3.0  # until what a process does is told, with room for a slow machine


def allowed(truth: Truth, copy: Copy) -> set[str]:
    """Fates of which one has to be said."""
    name, queue = copy
    message = truth.messages[name]
    if not queue:
        return _of_message(message)
    found = _of_copy(truth, message, truth.queues[queue], copy)
    return found if is_clear(truth, copy) else found | {UNKNOWN}


def is_clear(truth: Truth, copy: Copy) -> bool:
    """Whether no process died about when something happened to it: the record has to say everything."""
    message = truth.messages[copy[0]]
    times = [message.told_at, *truth.acts(copy).values()]
    if message.outcome != CONFIRMED or truth.queues[copy[1]].arguments or message.kind.expiration:
        return False
    if truth.queues[copy[1]].consumed and ACKED not in truth.acts(copy):
        return False
    return not any(abs(death.at - at) < _CLEAR_SECONDS for death in truth.deaths for at in times)


def _of_message(message: Publication) -> set[str]:
    if message.outcome == RETURNED:
        return {"returned", UNKNOWN}
    if message.kind.targets:
        return {message.outcome, NEVER, UNKNOWN} & {REFUSED, ROLLED_BACK, NEVER, UNKNOWN}
    return {"dropped", "returned", NEVER, UNKNOWN} if message.outcome == IN_DOUBT else {"dropped", UNKNOWN}


def _of_copy(truth: Truth, message: Publication, queue: Queue, copy: Copy) -> set[str]:
    found = _by_consumers(truth, queue, copy) | _by_itself(message, queue)
    is_letter = copy[1] not in message.kind.targets
    if is_letter and truth.deaths:
        # A queue process died amid sending it on, and the next one does so again: the second is a duplicate.
        found.add("dropped")
    if copy in truth.left:
        return {"waiting"} | (found if is_letter else set())
    if not message.kind.persistent and any(death.what.startswith("queue") for death in truth.deaths):
        found.add(LOST_TRANSIENT)
    if message.outcome == REFUSED:
        return {REFUSED, "dropped"}  # the queue says so too
    if message.outcome == ROLLED_BACK:
        return {ROLLED_BACK}
    if message.outcome == IN_DOUBT:
        return found | {NEVER, REFUSED, ROLLED_BACK} | ({"dropped"} if queue.refuses else set())
    return found


def _by_consumers(truth: Truth, queue: Queue, copy: Copy) -> set[str]:
    acts, found = truth.acts(copy), set()
    if ACKED in acts:
        found.add("settled")
    if REJECTED in acts:
        found |= {"dead_lettered" if queue.dead else "dropped", "rejected"}  # the first word may be the last told
    return found


def _by_itself(message: Publication, queue: Queue) -> set[str]:
    found = set()
    if message.kind.expiration:
        found |= {"dead_lettered", "expired"} if queue.dead else {"expired"}
    if queue.drops:
        found.add("dropped")
    return found
