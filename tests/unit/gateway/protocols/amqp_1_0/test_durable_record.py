"""What is kept of links that outlive their connections."""

from __future__ import annotations

import pytest

from services.common.message import LONGEST_NAME, arguments
from services.gateway.protocols.amqp_1_0.durable_record import Record, outlives_connection, queue_of, record_in
from services.gateway.protocols.amqp_1_0.termini import Source


def test_names_are_of_one_link_each() -> None:
    """Whatever containers and links are called."""
    names = [("a", "b"), ("a_/b", ""), ("", "a_/b"), ("a_", "/b"), ("a/_", "b"), ("a" * 300, "b"), ("a" * 299, "ab")]
    assert len({queue_of(*each) for each in names}) == len(names)
    assert all(len(queue_of(*each)) <= LONGEST_NAME for each in names)
    assert queue_of("orders", "news") == "qpidsub_/orders_/news"


def test_a_record_is_read_as_it_was_kept() -> None:
    """Through the router, which keeps arguments as JSON."""
    record = Record("c", "l", "x/a.*", "a.*", "n > 1", not_own=True)
    assert record_in(arguments.load(arguments.dump(record.arguments))) == record


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"exclusive": "PRINCIPAL_CONTAINER", "x-durable-link": 1},
        {"exclusive": "PRINCIPAL_CONTAINER", "x-durable-link": {"container": "c"}},
        Record("c", "l", "x", "", "").arguments | {"exclusive": "NONE"},
    ],
)
def test_a_queue_of_somebody_else(said: dict[str, object]) -> None:
    """A client may declare a queue of such a name."""
    assert record_in(said) is None


@pytest.mark.parametrize(
    ("source", "stays"),
    [
        (None, True),
        (Source("x", expiry_policy="never"), True),
        (Source("x", durable=2), False),
        (Source(None, dynamic=True, expiry_policy="never"), False),
        (Source("x"), False),
    ],
)
def test_which_links_do(source: object, *, stays: bool) -> None:
    """Section 3.5.6: an end that never expires; without a source one is sought that was there before."""
    assert outlives_connection(source) is stays
