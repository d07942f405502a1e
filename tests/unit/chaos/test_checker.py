"""The checker of chaos runs finds what was planted, and nothing else."""

from __future__ import annotations

import pytest

from tests.support.chaos.account import (
    CUT,
    KILL,
    PAUSE,
    POWER_OFF,
    Account,
    Connection,
    Delivery,
    Disturbance,
    Message,
    MessageId,
    Writing,
)
from tests.support.chaos.checker import LATE_SECONDS, Verdict, check

GATEWAY = "gateway-1"


@pytest.fixture
def account() -> Account:
    """Ten messages of one producer to each of two queues, confirmed and delivered in order."""
    account = Account()
    for name in ("producer-0.1", "consumer-0.1"):
        account.connections[name] = Connection(name, GATEWAY, opened=0.0)
    for number in range(1, 21):
        message = publish(account, number, queue=f"q{number % 2}")
        message.confirmed = message.published + 0.01
        deliver(account, message, message.published + 0.02)
    return account


def publish(account: Account, number: int, queue: str = "q0", producer: str = "producer-0.1") -> Message:
    return account.published(MessageId(producer, queue, number), float(number), float(number))


def deliver(account: Account, message: Message, at: float, connection: str = "consumer-0.1", **told: bool) -> None:
    queue = message.id.queue
    delivery = Delivery(at, f"{connection}:{queue}", connection, queue, told.get("redelivered", False))
    assert account.delivered(message.id.to_body(100), delivery) == message.id


def message(account: Account, number: int) -> Message:
    return next(one for one in account.messages.values() if one.id.number == number)


def found(verdict: Verdict) -> dict[str, int]:
    return {kind: len(findings) for kind, findings in verdict.findings.items() if findings}


def test_all_is_well(account: Account) -> None:
    """An account without a fault has no finding, and nothing was redelivered."""
    verdict = check(account)
    assert verdict.ok
    assert not verdict.redelivered


@pytest.mark.parametrize("number", [1, 10, 20])
def test_loss(account: Account, number: int) -> None:
    """A confirmed message that was never delivered is lost, and it alone is named."""
    message(account, number).deliveries.clear()
    verdict = check(account)
    assert found(verdict) == {"lost": 1}
    assert f"#{number} of producer-0.1" in verdict.findings["lost"][0]


def test_unconfirmed(account: Account) -> None:
    """What was not confirmed may have arrived or not."""
    message(account, 3).confirmed = None
    message(account, 4).confirmed = None
    message(account, 4).deliveries.clear()
    assert check(account).ok


def test_refused(account: Account) -> None:
    """A message that was nacked or returned is a finding: nothing here is full, and every queue is there."""
    message(account, 5).confirmed = None
    message(account, 5).refused = "nacked"
    assert found(check(account)) == {"refused": 1}


@pytest.mark.parametrize("redelivered", [True, False])
def test_duplicate(account: Account, redelivered: bool) -> None:
    """A message that comes again to a consumer that lives is a finding, whatever it is called."""
    deliver(account, message(account, 6), 30.0, redelivered=redelivered)
    assert found(check(account)) == {"delivered again": 1}


@pytest.mark.parametrize("killed", [True, False])
def test_sockets_read_in_another_order(account: Account, killed: bool) -> None:
    """What a killed gateway sent at last may be read after it came again elsewhere, but not what a living one sent."""
    account.connections["consumer-1.1"] = Connection("consumer-1.1", "gateway-2", opened=0.0)
    one = publish(account, 21)
    deliver(account, one, 30.0, redelivered=True)
    deliver(account, one, 30.0, "consumer-1.1")
    if killed:
        account.disturbances.append(Disturbance(KILL, "gateway-2", 29.9))
    verdict = check(account)
    assert found(verdict) == ({} if killed else {"delivered again": 1})
    assert verdict.redelivered == ({"gateway kill": 1} if killed else {})


def test_duplicate_of_acknowledged(account: Account) -> None:
    """It is told when a message came again after its acknowledgement."""
    account.acknowledged.add(message(account, 6).id)
    deliver(account, message(account, 6), 30.0, redelivered=True)
    [finding] = check(account).findings["delivered again"]
    assert finding.endswith("acknowledged")


def test_every_duplicate_counts(account: Account) -> None:
    """One that comes three times is two redeliveries."""
    for at in (30.0, 31.0):
        deliver(account, message(account, 6), at, redelivered=True)
    assert found(check(account)) == {"delivered again": 2}


@pytest.mark.parametrize("kind", [KILL, CUT, POWER_OFF])
def test_redelivery_after_the_gateway(account: Account, kind: str) -> None:
    """What a consumer had may come again when its gateway was killed or cut off meanwhile."""
    account.disturbances.append(Disturbance(kind, GATEWAY, 25.0, 27.0))
    deliver(account, message(account, 6), 30.0, redelivered=True)
    verdict = check(account)
    assert verdict.ok
    assert verdict.redelivered == {f"gateway {kind}": 1}


@pytest.mark.parametrize(
    "disturbance",
    [
        Disturbance(KILL, "gateway-2", 25.0, 27.0),
        Disturbance(KILL, "queue-1", 25.0, 27.0),
        Disturbance(PAUSE, GATEWAY, 25.0, 27.0),
        Disturbance(KILL, GATEWAY, 1.0, 5.0),
        Disturbance(KILL, GATEWAY, 31.0, 32.0),
    ],
)
def test_no_excuse(account: Account, disturbance: Disturbance) -> None:
    """Another container, another disturbance or another time is no reason to deliver again."""
    account.disturbances.append(disturbance)
    deliver(account, message(account, 6), 30.0, redelivered=True)
    assert found(check(account)) == {"delivered again": 1}


def test_redelivery_after_the_connection(account: Account) -> None:
    """What a consumer had may come again when its connection has ended, and not before."""
    account.connections["consumer-0.1"].ended = 29.0
    account.connections["consumer-0.1"].by_client = True
    account.connections["consumer-0.2"] = Connection("consumer-0.2", "gateway-2", 28.0)
    deliver(account, message(account, 6), 30.0, "consumer-0.2", redelivered=True)
    assert check(account).redelivered == {"connection ended": 1}
    account.connections["consumer-0.1"].ended = 30.5
    assert found(check(account)) == {"delivered again": 1}


def test_reordered(account: Account) -> None:
    """First deliveries of one producer's messages to one consumer come in the order of publishing."""
    late, early = message(account, 8), message(account, 10)
    late.deliveries, early.deliveries = early.deliveries, late.deliveries
    assert found(check(account)) == {"reordered": 1}


@pytest.mark.parametrize(("began", "opened", "excused"), [(7.5, 0.0, True), (11.0, 0.0, False), (7.5, 10.6, False)])
def test_order_of_what_came_back(account: Account, began: float, opened: float, excused: bool) -> None:
    """What another consumer was to have comes late where a disturbance kept it from that one, if there was another."""
    account.connections["consumer-1.1"] = Connection("consumer-1.1", "gateway-2", opened)
    deliver(account, publish(account, 21, queue="q0"), 30.0, "consumer-1.1")
    late = message(account, 8)
    late.deliveries.clear()
    deliver(account, late, 10.5)
    account.disturbances.append(Disturbance(CUT, "queue-1", began, began + 1))
    assert found(check(account)) == ({} if excused else {"reordered": 1})


def test_order_of_redelivered(account: Account) -> None:
    """A message that had left its queue before comes late with good reason."""
    message(account, 8).deliveries.clear()
    deliver(account, message(account, 8), 30.0, redelivered=True)
    assert check(account).ok


def test_order_of_others(account: Account) -> None:
    """There is no order between queues, between producers, or between consumers."""
    account.connections["consumer-1.1"] = Connection("consumer-1.1", GATEWAY, 0.0)
    other = publish(account, 1, producer="producer-1.1")
    deliver(account, other, 40.0)
    message(account, 8).deliveries.clear()
    deliver(account, message(account, 8), 30.0, "consumer-1.1")
    assert check(account).ok


def test_strange(account: Account) -> None:
    """A delivery that nobody has published, or from another queue, is a finding."""
    delivery = Delivery(30.0, "consumer-0.1:q0", "consumer-0.1", "q0", redelivered=False)
    assert account.delivered(b"\xff", delivery) is None
    assert account.delivered(b"producer-0.1|q0|99", delivery) is None
    wrong = message(account, 7)
    wrong.deliveries[0] = wrong.deliveries[0]._replace(queue="q0")
    assert found(check(account)) == {"strange": 3}


def test_left_over(account: Account) -> None:
    """Messages that are still there when all are acknowledged are a finding for each queue."""
    account.left_over = {"q0": 0, "q1": 2}
    assert found(check(account)) == {"left over": 1}


def test_broken_connection(account: Account) -> None:
    """A connection may end with its gateway, or soon after it, or by its client; else it is a finding."""
    connection = account.connections["producer-0.1"]
    account.disturbances.append(Disturbance(PAUSE, GATEWAY, 30.0, 35.0))
    connection.ended = 35.0 + LATE_SECONDS
    assert check(account).ok
    connection.ended += 0.1
    assert found(check(account)) == {"broken connections": 1}
    connection.by_client = True
    assert check(account).ok


def test_stale_write() -> None:
    """A write under a lease by the writer of another member is a finding, however seldom."""
    account = Account(
        writings=[
            Writing(1, 1, "queue-a", 11, 500),
            Writing(1, 2, "queue-b", 12, 400),
            Writing(2, 1, "queue-b", 12, 300),
            Writing(2, 2, "", 12, 1),
            Writing(3, 4, "queue-a", 13, 1),
        ]
    )
    assert check(account).ok
    account.writings.append(Writing(1, 2, "queue-b", 11, 1))
    assert found(check(account)) == {"stale writes": 1}
