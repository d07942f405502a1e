"""Each promised copy is delivered, dead-lettered, expired, dropped by its queue's policy, or there in the end."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.choices import HOLDS, LAST_VALUE, is_ring
from tests.simulation.history import NEVER, Delivered, Sent, Transaction
from tests.simulation.judge.facts import Facts, Queue, Violation, told
from tests.simulation.judge.once import key_of as key_of_once
from tests.simulation.judge.once import stands_for
from tests.simulation.judge.ranked import key_of
from tests.simulation.judge.words import lives_for

_DEEPEST = 3  # dead letters of dead letters


def lost(facts: Facts) -> Iterator[Violation]:
    """Every message, in every queue that it certainly had to reach."""
    accounts = Accounts(facts)
    for sent in facts.history.sent.values():
        promise = promised(facts, sent)
        if not promise:
            continue
        for name in sorted(facts.routes(sent).must):
            queue = facts.queues[sent.host, name]
            if why := accounts.missing(sent, queue):
                yield Violation(
                    "nothing promised is lost", f"{told(sent)}, {promise}, is missing in queue {name}: {why}"
                )


def promised(facts: Facts, sent: Sent) -> str:
    """By what the broker answers for a message; "" if it does not."""
    if sent.returned is not None or sent.refused is not None:
        return ""
    if sent.confirmed is not None:
        return "confirmed"
    if sent.transaction:
        return "committed" if sent.transaction.outcome == "committed" else ""
    if sent.bound is None or facts.troubled(sent.channel.connection.gateway) or _given_up(facts, sent):
        return ""
    return "taken by a gateway that lives"


def _given_up(facts: Facts, sent: Sent) -> bool:
    """A client that closes without waiting for confirms does not hear that no router came for what it sent."""
    return sent.channel.connection.how == "clean" and facts.may_stay_unrouted(sent)


class Accounts:
    """What became of copies, as if nothing of a transaction had been done, if one is given."""

    def __init__(self, facts: Facts, without: Transaction | None = None) -> None:
        self._facts = facts
        self._without = without

    def missing(self, sent: Sent, queue: Queue, source: str = "", depth: int = 0) -> str:
        """Why a copy is taken for lost, "" when it is accounted for; `source` is where it was dead-lettered from."""
        copies = [each for each in self._delivered(sent, queue) if _is_from(each, source)]
        if any(each.settled_as in {"ack", "none"} and self._may_count(each) for each in copies) or self._excused(
            sent, queue
        ):
            return ""
        if any(each.draining for each in copies) or self._may_go_round(queue):
            return ""
        rejected = any(each.settled_as == "reject" and self._may_count(each) for each in copies)
        if rejected or self._may_die(sent, queue, copies):
            return self._missing_letters(sent, queue, source, depth)
        seen = ", ".join(f"{each.settled_as or 'held'} by {each.channel.connection.client}" for each in copies)
        return f"delivered before, {seen}" if seen else "never delivered"

    def _missing_letters(self, sent: Sent, queue: Queue, source: str, depth: int) -> str:
        routes = self._facts.letters(sent, queue)
        if routes is None or depth == _DEEPEST:
            return ""
        for name in sorted(routes.must - {queue.name, source}):
            target = self._facts.queues[sent.host, name]
            if "x-max-length" in target.arguments:
                continue
            if why := self.missing(sent, target, queue.name, depth + 1):
                return f"given up by the queue, but its dead letter is missing in {name}: {why}"
        return ""

    def _delivered(self, sent: Sent, queue: Queue) -> list[Delivered]:
        return self._facts.delivered(sent.host, queue.name, sent.id)

    def _may_count(self, delivered: Delivered) -> bool:
        """Whether its settlement may have been carried out."""
        its = delivered.transaction
        return its is None or (its.outcome in {"committed", "unknown", "open"} and its is not self._without)

    # -------------------------------------------------------------- what excuses

    def _excused(self, sent: Sent, queue: Queue) -> bool:
        return any(excuse(sent, queue) for excuse in (
            self._was_transient, self._was_purged, self._was_deleted, self._came_and_went, self._went_unheard,
            self._was_immediate, self._was_refused_in_silence, self._waits_for_its_time,
            self._was_replaced, self._was_known,
        ))  # fmt: skip

    def _was_transient(self, sent: Sent, queue: Queue) -> bool:
        durable = queue.durable and sent.persistent
        return not durable and (self._facts.owners_may_die or self._facts.topology_may_fade)

    def _was_purged(self, sent: Sent, queue: Queue) -> bool:
        purges = self._facts.asked("purge", queue.host, queue.name)
        return any(_until(each.answered, each.outcome) > sent.at for each in purges)

    def _was_deleted(self, sent: Sent, queue: Queue) -> bool:
        deletes = self._facts.asked("delete_queue", queue.host, queue.name)
        return any(_until(each.answered, each.outcome, each.attempts) > sent.at for each in deletes)

    def _came_and_went(self, sent: Sent, queue: Queue) -> bool:
        """A queue with an end of its own."""
        del sent
        facts, at = self._facts, (queue.host, queue.name)
        if queue.own:
            emptied = any(entry[:2] == at for entry in facts.history.counts)
            owners = [each.channel.connection for each in facts.asked("own", *at)]
            return not emptied or any(owner.how != "clean" or facts.troubled(owner.gateway) for owner in owners)
        return "x-expires" in queue.arguments or (queue.auto_delete and bool(facts.consumers.get(at)))

    def _went_unheard(self, sent: Sent, queue: Queue) -> bool:
        """Sent without acknowledgements, to a consumer or a basic.get: settled when sent, and its client was gone."""
        del sent
        consumers = self._facts.consumers.get((queue.host, queue.name), ())
        gets = self._facts.asked("get", queue.host, queue.name)
        return any(each.no_ack and not self._facts.browses(each) for each in consumers) or any(
            # A gateway that does not hear the answer asks again.
            each.arguments.get("no_ack") and (each.outcome != "ok" or self._facts.history.faults)
            for each in gets
        )

    def _was_immediate(self, sent: Sent, queue: Queue) -> bool:
        del queue
        return sent.immediate

    def _was_refused_in_silence(self, sent: Sent, queue: Queue) -> bool:
        """A full queue refuses; a publisher without confirms does not hear of it."""
        refuses = str(queue.arguments.get("x-overflow", "")).startswith("reject")
        return refuses and "x-max-length" in queue.arguments and sent.confirmed is None and sent.transaction is None

    def _waits_for_its_time(self, sent: Sent, queue: Queue) -> bool:
        return HOLDS in queue.arguments and sent.due is not None and self._facts.may_wait_longer

    def _was_replaced(self, sent: Sent, queue: Queue) -> bool:
        """By one of its key that may have come later: of a dead letter nobody knows when it came."""
        if LAST_VALUE not in queue.arguments or (key := key_of(sent)) is None:
            return False
        facts = self._facts
        letters = any("x-dead-letter-exchange" in each.arguments for each in facts.queues.values())
        return any(
            other is not sent
            and other.host == sent.host
            and key_of(other) == key
            and (letters or (queue.name in facts.routes(other).may and facts.book(other.host).bound(other) > sent.at))
            for other in facts.history.sent.values()
        )

    def _was_known(self, sent: Sent, queue: Queue) -> bool:
        """One with its key may have come before it."""
        if (key := key_of_once(sent, queue)) is None:
            return False
        facts, until = self._facts, self._counts_by(sent)
        return any(
            other is not sent
            and other.host == sent.host
            and key_of_once(other, queue) == key
            and stands_for(other, sent, queue)
            and other.at < until
            and queue.name in facts.routes(other).may
            for other in facts.history.sent.values()
        )

    def _counts_by(self, sent: Sent) -> int:
        """When its queues knew its key at the latest: of what is in a transaction, since its commit."""
        if (its := sent.transaction) is None:
            return self._facts.book(sent.host).bound(sent)
        return its.answered if its.outcome == "committed" and its.answered is not None else NEVER

    def _may_die(self, sent: Sent, queue: Queue, copies: list[Delivered]) -> bool:
        """Whether the queue may have given it up by itself."""
        facts, ttl = self._facts, lives_for(sent, queue)
        if ttl is not None and (
            sent.time + ttl / 1000 <= facts.history.clock_at_end or facts.faults("jump_clock", "suspend")
        ):
            return True
        if self._may_overflow(queue):
            return True
        return "x-delivery-limit" in queue.arguments and bool(
            copies or self._facts.consumers.get((queue.host, queue.name)) or self._facts.owners_may_die
        )

    def _may_go_round(self, queue: Queue) -> bool:
        """A ring drops what is oldest, as Broker-J does, also what somebody holds: none of it is a dead letter."""
        return is_ring(queue.arguments) and self._may_overflow(queue)

    def _may_overflow(self, queue: Queue) -> bool:
        """Copies that were sent to it are counted; dead letters of others are not."""
        length = queue.arguments.get("x-max-length")
        if length is None:
            return False
        return self._facts.copies[queue.host, queue.name] > int(str(length)) or self._facts.letters_may_come(queue)


def _is_from(delivered: Delivered, source: str) -> bool:
    return delivered.deaths[0][0] == source if delivered.deaths else not source


def _until(answered: int | None, outcome: str, attempts: int = 0) -> int:
    """By when something was carried out, if it was."""
    if outcome == "closed" and not attempts:
        return 0
    return answered if outcome == "ok" and answered is not None and not attempts else NEVER
