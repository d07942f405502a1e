"""AMQP 1.0, part 3, section 3.4.5: the outcome modified, as the engine reads it."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.message.amqp_1_0 import added
from services.common.message.amqp_1_0.composite import Composite
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.values import Symbol, UInt, ULong
from services.gateway import outcomes
from services.gateway.outcomes import FAILED, UNSENT
from services.gateway.protocols.amqp_1_0.performatives import Detach, Disposition
from services.gateway.protocols.amqp_1_0.states import Modified
from services.gateway.protocols.amqp_1_0.transactional import Discharge, TransactionalState
from tests.conformance.amqp_1_0.test_transactions import with_deliveries
from tests.support.amqp_1_0_playbook import Playbook, receiving, settled

MUCH = Modified(message_annotations={Symbol("a"): "x" * added.MOST})

MANY = Modified(message_annotations={ULong(number): 1 for number in range(added.MOST_NUMBERS + 1)})


def with_sent(*bodies: bytes) -> Playbook:
    """A receiver that was sent these."""
    book = Playbook()
    book.deliver(book.receiver(), 1, *bodies)
    book.answers()
    return book


@pytest.mark.parametrize("failed", [True, False])
@pytest.mark.parametrize("here", [True, False, None])
def test_what_it_says(failed: bool, here: bool | None) -> None:
    """Its three fields go to the broker; who does not say undeliverable-here does not mean it."""
    state = Modified(failed, here, {Symbol("x-opt-a"): UInt(1)})
    [(first, last, outcome)] = settled(with_sent(b"a", b"b").says(0, Disposition(True, 0, 1, True, state)))
    assert (first, last) == (1, 2)
    assert outcome == outcomes.Modified(failed, bool(here), encode({Symbol("x-opt-a"): UInt(1)}))


@pytest.mark.parametrize(
    ("said", "names"),
    [({"a": 1}, [Symbol("a")]), ({Symbol("a"): 1, ULong(2): 1}, [Symbol("a"), ULong(2)]), ({}, []), (None, [])],
)
def test_names(said: Any, names: list[Any]) -> None:
    """Section 3.2.10: keys are symbols, or numbers that are reserved. Some clients write symbols as strings."""
    book = with_sent(b"a")
    [(_, _, outcome)] = settled(book.says(0, Disposition(True, 0, None, True, Modified(message_annotations=said))))
    assert isinstance(outcome, outcomes.Modified)
    assert outcome.annotations == (encode(dict.fromkeys(names, 1)) if names else b"")


@pytest.mark.parametrize(
    ("state", "condition"),
    [
        (MUCH, "amqp:resource-limit-exceeded"),
        (MANY, "amqp:resource-limit-exceeded"),
        (Modified(message_annotations={UInt(1): 1}), "amqp:decode-error"),
        (Modified(message_annotations={Symbol("x-death"): None}), "amqp:not-allowed"),
    ],
)
def test_what_cannot_be_kept(state: Composite, condition: str) -> None:
    """The link ends with the reason, what it had is an attempt, and nothing else ends."""
    book = with_sent(b"a", b"b")
    asked = book.says(0, Disposition(True, 0, 0, True, state))
    assert [outcome for *_, outcome in settled(asked)] in ([FAILED], [FAILED, UNSENT])
    assert settled(asked)[0][:2] == (1, 2)
    [detach] = book.answers()
    assert (detach.closed, detach.error.condition) == (True, condition)
    assert book.does(0, Detach(0, True)) == []
    assert len(book.does(0, receiving("q"))) == 1


def test_of_what_is_settled() -> None:
    """Section 2.6.12: whatever is said of a delivery that is not unsettled any more is no fault."""
    book = with_sent(b"a")
    book.says(0, Disposition(True, 0, None, True, Modified()))
    assert book.does(0, Disposition(True, 0, None, True, MUCH)) == []


def test_in_a_transaction() -> None:
    """Part 4, section 4.4.2: it cannot be committed without what was said in it."""
    book, _, txn = with_deliveries(b"a")
    asked = book.says(0, Disposition(True, 0, None, True, TransactionalState(txn, MUCH)))
    assert [(first, last, outcome) for first, last, outcome in settled(asked)] == [(1, 1, FAILED)]
    book.answers()
    [rejected] = book.control(Discharge(txn, False))
    assert rejected.state.error.condition in {"amqp:transaction:rollback", "amqp:resource-limit-exceeded"}
