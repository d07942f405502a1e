from __future__ import annotations

import pytest

from tests.support.written_history import Written

LOST = "nothing promised is lost"
AGAIN = "acknowledged is never seen again"
HELD = "what one holds is nobody else's"
ALONE = "exclusive is exclusive"
SINGLE = "single active is one"
ROUTED = "nothing is delivered but where it was routed"


# ------------------------------------------------------------------ lost


def test_lost(told: Written) -> None:
    """A confirmed message that is never seen is lost."""
    told.publish("m", "q")
    assert told.broken() == {LOST}


def test_there_in_the_end(told: Written) -> None:
    """One that is there in the end is not."""
    told.drain(told.publish("m", "q"), "q")
    assert told.broken() == set()


@pytest.mark.parametrize("known", [True, False])
def test_acknowledged(told: Written, *, known: bool) -> None:
    """One that a client acknowledged is done with, whether or not the broker was heard to know."""
    told.deliver(told.publish("m", "q"), "q", "ack", known=known)
    assert told.broken() == set()


@pytest.mark.parametrize("how", ["", "requeue"])
def test_held_and_lost(told: Written, how: str) -> None:
    """What was delivered and not settled, or given back, has to be there again."""
    told.deliver(told.publish("m", "q"), "q", how)
    assert told.broken() == {LOST}


def test_unconfirmed(told: Written) -> None:
    """Nothing is promised for what was neither confirmed nor certainly taken."""
    told.publish("m", "q", confirmed=False)
    assert told.broken() == set()


def test_taken(told: Written) -> None:
    """What a gateway took that lives on is promised without a confirm; of one that was killed it is not."""
    told.publish("m", "q", confirmed=False).bound = told.history.tick()
    assert told.broken() == {LOST}
    told.fault("kill", "gateway-1")
    assert told.broken() == set()


def test_each_queue(told: Written) -> None:
    """A copy in one queue does not stand for that in another."""
    told.queue("r")
    told.change("exchange", exchange="x", type="fanout")
    for queue in "qr":
        told.change("bind", source="x", to=queue)
    told.drain(told.publish("m", "", exchange="x"), "q")
    assert [(v.rule, "queue r" in v.text) for v in told.violations()] == [(LOST, True)]


@pytest.mark.parametrize(
    ("fault", "broken"), [(("move", "0"), {LOST}), (("kill", "gateway-2"), {LOST}), (("kill", "queue-1"), set())]
)
def test_transient(told: Written, fault: tuple[str, ...], broken: set[str]) -> None:
    """A transient message goes with an owner that dies, and only then."""
    told.publish("m", "q", persistent=False)
    told.fault(*fault)
    assert told.broken() == broken


def test_persistent_survives(told: Written) -> None:
    """A persistent one in a durable queue does not go with it; in a transient queue it does."""
    told.queue("t", durable=False)
    told.publish("m", "q")
    told.publish("n", "t")
    told.fault("kill", "queue-1")
    assert [v.text.split()[2] for v in told.violations()] == ["m"]


def test_purged(told: Written) -> None:
    """What was there before a purge may be gone; what came after it may not."""
    told.publish("m", "q")
    told.change("purge", queue="q")
    assert told.broken() == set()
    told.publish("n", "q")
    assert told.broken() == {LOST}


def test_expired(told: Written) -> None:
    """A message may be gone when its time has passed, not sooner."""
    told.publish("m", "q", ttl=5000)
    told.time = 4.0
    assert told.broken() == {LOST}
    told.time = 6.0
    assert told.broken() == set()


def test_dead_letter_missing() -> None:
    """What was rejected, or has expired, has to be where its queue's dead letters go."""
    told = Written()
    told.queue("dead")
    told.change("exchange", exchange="dlx", type="fanout")
    told.change("bind", source="dlx", to="dead")
    told.queue("q", dead_letter_exchange="dlx")
    sent = told.publish("m", "q")
    told.deliver(sent, "q", "reject")
    assert told.broken() == {LOST}
    told.drain(sent, "dead", deaths=(("q", "rejected", 1),))
    assert told.broken() == set()


def test_dropped() -> None:
    """A queue may drop what is too much for it, and no more."""
    told = Written()
    told.queue("q", max_length=1)
    told.publish("m", "q")
    assert told.broken() == {LOST}
    told.drain(told.publish("n", "q"), "q")
    assert told.broken() == set()


# ------------------------------------------------------------------ seen


def test_seen_again(told: Written) -> None:
    """What was acknowledged, and a later answer on the channel came, is not there in the end."""
    sent = told.publish("m", "q")
    told.deliver(sent, "q", "ack")
    told.drain(sent, "q", redelivered=True)
    assert told.broken() == {AGAIN}


def test_purged_for_good(told: Written) -> None:
    """What waited when its queue was purged does not come after the answer, unless a consumer had it meanwhile."""
    sent = told.publish("m", "q")
    told.change("purge", queue="q")
    told.drain(sent, "q")
    assert told.broken() == {"purged is never seen again"}
    told.consumer("q").asked = sent.at
    assert told.broken() == set()


def test_purged_without_an_answer(told: Written) -> None:
    """It is not known whether it was."""
    sent = told.publish("m", "q")
    told.change("purge", answered=False, queue="q")
    told.drain(sent, "q")
    assert told.broken() == set()


def test_seen_again_on_a_channel_that_the_broker_closes(told: Written) -> None:
    """It was on its way there when the broker closed that channel, gave it to another, and heard that it is done."""
    sent = told.publish("m", "q")
    told.deliver(sent, "q", "none", no_ack=True)
    again = told.deliver(sent, "q", channel=told.one, redelivered=True)
    assert told.broken() == {AGAIN}
    again.channel.ending, again.channel.code = told.history.tick(), 403
    assert told.broken() == set()


@pytest.mark.parametrize("fault", [("cut", "gateway-2", "queue-1"), ("kill", "gateway-2")])
def test_seen_again_rightly(told: Written, fault: tuple[str, ...]) -> None:
    """Unless the gateway that took the acknowledgement died, or could not reach the next owner for a while."""
    sent = told.publish("m", "q")
    told.deliver(sent, "q", "ack")
    told.drain(sent, "q", redelivered=True)
    told.fault(*fault)
    assert told.broken() == set()


def test_unknown_acknowledgement(told: Written) -> None:
    """An acknowledgement without a later answer may be lost with its connection."""
    sent = told.publish("m", "q")
    told.deliver(sent, "q", "ack", known=False)
    told.drain(sent, "q", redelivered=True)
    assert told.broken() == set()


def test_twice(told: Written) -> None:
    """A copy that is there twice in the end was enqueued twice."""
    sent = told.publish("m", "q")
    told.drain(sent, "q")
    told.drain(sent, "q")
    assert "nothing is there twice" in told.broken()


def test_held_by_two(told: Written) -> None:
    """What one client holds is not delivered to another."""
    sent = told.publish("m", "q")
    told.fault("kill", "queue-1")
    told.deliver(sent, "q")
    told.deliver(sent, "q", "ack", channel=told.one)
    assert told.broken() == {HELD}


@pytest.mark.parametrize(("seconds", "broken"), [(1.1, set()), (5.0, {HELD})])
def test_held_by_two_for_a_pause(told: Written, seconds: float, broken: set[str]) -> None:
    """A gateway that stood still passes on what the former owner had sent it; what comes later is no such thing."""
    sent = told.publish("m", "q")
    told.fault("pause", "gateway-1", seconds=1.0)
    told.fault("kill", "queue-1")
    told.time = 0.5
    told.deliver(sent, "q")
    told.time = seconds
    told.deliver(sent, "q", "ack", channel=told.one)
    assert told.broken() == broken


def test_held_by_a_client_that_left(told: Written) -> None:
    """Once a client has asked for the end of its channel, others may have what it held."""
    sent = told.publish("m", "q")
    told.deliver(sent, "q")
    told.two.leaving = told.history.tick()
    told.deliver(sent, "q", "ack", channel=told.one, redelivered=True)
    assert told.broken() == set()


def test_invented(told: Written) -> None:
    """Nothing is delivered that was never published."""
    sent = told.publish("m", "q")
    told.drain(sent, "q")
    del told.history.sent["m"]
    assert told.broken() == {"nothing is invented"}


def test_changed(told: Written) -> None:
    """Bodies arrive as they were sent."""
    told.drain(told.publish("m", "q"), "q", intact=False)
    assert told.broken() == {"nothing is changed"}


def test_misrouted(told: Written) -> None:
    """Nothing is delivered from a queue that no binding leads to."""
    told.queue("r")
    sent = told.publish("m", "q")
    told.drain(sent, "q")
    told.drain(sent, "r")
    assert told.broken() == {ROUTED}


def test_from_before(told: Written) -> None:
    """What was in a queue that was deleted is not in the next one of its name."""
    sent = told.publish("m", "q")
    told.change("delete_queue", queue="q")
    told.queue("q")
    told.drain(sent, "q")
    assert told.broken() == {ROUTED}


# ------------------------------------------------------------------ transactions


def test_committed(told: Written) -> None:
    """What was committed is promised."""
    told.commit(told.publish("m", "q", confirmed=False))
    assert told.broken() == {LOST}


@pytest.mark.parametrize("outcome", ["rolled_back", "refused"])
def test_rolled_back(told: Written, outcome: str) -> None:
    """What was not committed is never seen."""
    sent = told.publish("m", "q", confirmed=False)
    told.commit(sent, outcome=outcome)
    told.drain(sent, "q")
    assert told.broken() == {ROUTED}


# ------------------------------------------------------------------ the rest


def test_exclusive(told: Written) -> None:
    """No other is let in beside an exclusive consumer."""
    told.consumer("q", exclusive=True)
    told.consumer("q", told.one)
    assert told.broken() == {ALONE}


def test_exclusive_after(told: Written) -> None:
    """After its end another is."""
    told.consumer("q", exclusive=True).ending = told.history.tick()
    told.consumer("q", told.one)
    assert told.broken() == set()


@pytest.mark.parametrize(
    ("faults", "broken"),
    [
        ((("move", "0"),), {SINGLE}),
        ((("kill", "queue-1"),), {SINGLE}),
        ((("kill", "queue-1"), ("kill", "store-1")), set()),
        ((("cut", "gateway-1", "queue-1"),), set()),
    ],
)
def test_single_active_from_owner_to_owner(faults: tuple[tuple[str, ...], ...], broken: set[str]) -> None:
    """The consumer that was served stays active, whether or not it is the oldest, unless an owner cannot know."""
    told = Written()
    told.queue("q", single_active_consumer=True)
    young, old = told.consumer("q", told.one), told.consumer("q")
    for fault in faults:
        told.fault(*fault)
    for name, consumer in (("m", old), ("n", young)):
        told.deliver(told.publish(name, "q"), "q", "ack", consumer=consumer)
    assert told.broken() == broken
    old.ending = told.history.deliveries[0].at + 1
    assert told.broken() == set()


def test_counts(told: Written) -> None:
    """A queue gives what it says that it has."""
    told.history.counts = [("/", "q", 2, 2, 0)]
    assert told.broken() == set()
    told.history.counts = [("/", "q", 2, 1, 0)]
    assert told.broken() == {"counts are true"}


def test_durable_queue_gone(told: Written) -> None:
    """A durable queue stays, unless it was deleted."""
    told.history.counts = [("/", "q", -1, 0, 0)]
    assert told.broken() == {"durable queues stay"}
    told.change("delete_queue", queue="q")
    assert told.broken() == set()


def test_unreturned(told: Written) -> None:
    """A mandatory message that reaches no queue comes back."""
    sent = told.publish("m", "nowhere", mandatory=True)
    assert told.broken() == {"unroutable mandatory messages return"}
    sent.returned, sent.return_code = sent.at, 312
    assert told.broken() == set()


def test_memory(told: Written) -> None:
    """Nothing is accounted for when nothing is there."""
    told.history.accounts = {"queue-1": 0, "queue-2": 17}
    assert told.broken() == {"memory returns to zero"}


def test_stuck(told: Written) -> None:
    """Every request that waits is answered."""
    told.history.stuck = ["c1 waits"]
    assert told.broken() == {"everything is answered"}


@pytest.mark.parametrize(("gone", "broken"), [(False, {"what comes again did come"}), (True, set())])
def test_redelivered_for_no_reason(told: Written, *, gone: bool, broken: set[str]) -> None:
    """What is said to come again was on its way to somebody before, where nothing fails."""
    sent = told.publish("m", "q")
    if gone:
        told.consumer("q").ending = told.history.tick()
    told.drain(sent, "q", redelivered=True)
    assert told.broken() == broken


@pytest.mark.parametrize(
    ("code", "after", "broken"),
    [(404, 0.1, set()), (404, 9.0, {"what comes again did come"}), (0, 0.1, {"what comes again did come"})],
)
def test_redelivered_before_it_was_seen(told: Written, *, code: int, after: float, broken: set[str]) -> None:
    """A channel that the broker closes gives back what is on its way to a client, which sees it, and the end, later."""
    channel = told.channel("three", "gateway-1")
    consumer = told.consumer("q", channel)
    sent = told.publish("m", "q")
    told.drain(sent, "q", redelivered=True)
    told.time += after
    told.deliver(sent, "q", consumer=consumer, channel=channel)
    channel.ending, channel.code = told.history.tick(), code
    assert told.broken() == broken


@pytest.mark.parametrize(("first", "broken"), [(False, {"no-local"}), (True, set())])
def test_no_local(told: Written, *, first: bool, broken: set[str]) -> None:
    """A consumer does not get what its own connection has published since it is there."""
    sent = told.publish("m", "q", channel=told.two) if first else None
    consumer = told.consumer("q", no_local=True)
    told.deliver(sent or told.publish("m", "q", channel=told.two), "q", "ack", consumer=consumer)
    told.deliver(told.publish("n", "q"), "q", "ack", consumer=consumer)
    assert told.broken() == broken
