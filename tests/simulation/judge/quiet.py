"""When everything is quiet: every request was answered, counts are true, durable queues are there, memory is free."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.choices import LATE, STRATEGY
from tests.simulation.history import NEVER
from tests.simulation.judge.facts import Facts, Violation, told

_NO_ROUTE = 312
_OURS = ("internal error", "Method not found", "fault of ours")


def stuck(facts: Facts) -> Iterator[Violation]:
    """After healing nothing waits for ever."""
    for what in facts.history.stuck:
        yield Violation("everything is answered", what)


def blamed(facts: Facts) -> Iterator[Violation]:
    """No client is told of a fault of the broker's own."""
    history = facts.history
    ends = [each.text for each in (*history.channels, *history.connections)]
    for text in [*ends, *history.texts]:
        if any(ours in text for ours in _OURS):
            yield Violation("no client meets a fault of ours", text)
    for complaint in history.complaints:
        yield Violation("no service meets a fault of its own", complaint)


def breached(facts: Facts) -> Iterator[Violation]:
    """The broker speaks as the specification says: within credit and windows, of what there is."""
    for what in facts.history.breaches:
        yield Violation("the protocol is kept", what)


def miscounted(facts: Facts) -> Iterator[Violation]:
    """What a queue says that it has, it gives; afterwards it has nothing."""
    moving = (
        facts.may_wait_longer
        or any(step.get("ttl") is not None for step in facts.plan.steps)
        or any({"x-message-ttl", "x-delivery-limit"} & queue.arguments.keys() for queue in facts.queues.values())
    )
    for host, name, said, got, left in facts.history.counts:
        if said < 0:
            if _must_be_there(facts, host, name):
                yield Violation("durable queues stay", f"queue {name} is gone")
        elif not moving and not facts.queues[host, name].own and (got != said or left):
            yield Violation("counts are true", f"queue {name} said {said}, gave {got}, and then said {left}")


def _must_be_there(facts: Facts, host: str, name: str) -> bool:
    queue = facts.queues.get((host, name))
    if queue is None or not queue.durable or queue.auto_delete or "x-expires" in queue.arguments:
        return False
    declared = [each for each in facts.asked("queue", host, name) if each.outcome == "ok"]
    deleted = facts.asked("delete_queue", host, name)
    if not declared:
        return False
    last = max(each.answered or 0 for each in declared)
    return all((NEVER if each.attempts or each.outcome != "ok" else each.answered or NEVER) < last for each in deleted)


def _has_no_way(facts: Facts) -> bool:
    """Whether dead letters may wait for ever: in a shorter plan that does not end with what they wait for."""
    waits = any(STRATEGY in queue.arguments for queue in facts.queues.values())
    ways = (each for each in facts.history.asked if each.what == "bind" and each.outcome == "ok")
    return waits and not any(each.arguments["source"] == LATE for each in ways)


def _has_no_room(facts: Facts) -> bool:
    """Whether dead letters may go to a queue that refuses what is too much: it may take none of them, ever."""
    named = {
        (queue.host, str(queue.arguments.get("x-dead-letter-routing-key")))
        for queue in facts.queues.values()
        if queue.arguments.get("x-dead-letter-exchange") == ""
    }
    found = (facts.queues[at].arguments for at in named & facts.queues.keys())
    return any(str(each.get("x-overflow")).startswith("reject") for each in found)


def unreturned(facts: Facts) -> Iterator[Violation]:
    """mandatory: what reaches no queue comes back, before it is confirmed; what reaches one does not."""
    for sent in facts.history.sent.values():
        routes = facts.routes(sent)
        if sent.returned is None:
            due = sent.mandatory and sent.confirmed is not None and not routes.may and not routes.certainly_unknown
            if due:
                yield Violation("unroutable mandatory messages return", f"{told(sent)} was confirmed and not returned")
        elif sent.return_code == _NO_ROUTE:
            if queues := _kept(facts, sent.host, facts.lasting(sent.host, routes.must)):
                yield Violation("routable messages do not return", f"{told(sent)} was returned: {queues}")
        elif not (sent.mandatory or sent.immediate):
            yield Violation("only who asks gets returns", f"{told(sent)} was returned")


def _kept(facts: Facts, host: str, names: list[str]) -> list[str]:
    return [name for name in names if facts.queues[host, name].durable or not facts.topology_may_fade]


def unfreed(facts: Facts) -> Iterator[Violation]:
    """With every queue empty, no memory is accounted for."""
    if facts.history.stuck or facts.may_wait_longer or _has_no_way(facts) or _has_no_room(facts):
        return
    for process, used in facts.history.accounts.items():
        if used:
            yield Violation("memory returns to zero", f"{process} accounts for {used} bytes with all queues empty")
