"""Transfers that are read at once, beside the reader of anything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import SyntaxFault
from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0.decode import decode_at
from services.gateway.protocols.amqp_1_0.performatives import Transfer
from services.gateway.protocols.amqp_1_0.states import Accepted
from services.gateway.protocols.amqp_1_0.transfer_reader import transfer_in

UINT = st.integers(0, (1 << 32) - 1)
FLAG = st.booleans()
TRANSFERS = st.builds(
    Transfer,
    UINT,
    UINT | st.none(),
    st.binary(max_size=300) | st.none(),
    st.sampled_from([None, 0, 1]),
    st.none() | FLAG,
    FLAG,
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, Accepted()]),
    FLAG,
    FLAG,
    FLAG,
)


def slowly(body: bytes) -> tuple[Transfer, int] | None:
    try:
        described, end = decode_at(body, 0)
        found = composite.of(described)  # type: ignore[arg-type]
    except (SyntaxFault, AttributeError):
        return None
    return (found, end) if isinstance(found, Transfer) else None


def at_once(body: bytes) -> tuple[Transfer, int] | None:
    try:
        return transfer_in(body)
    except SyntaxFault:
        return None


@given(TRANSFERS, st.binary(max_size=9))
def test_the_same(transfer: Transfer, payload: bytes) -> None:
    """What is read at once is what it says; what is not, the other reader has."""
    body = composite.write(transfer) + payload
    assert at_once(body) in (None, slowly(body))


def test_usual_ones() -> None:
    """A transfer with ids and tags of few bytes is read at once."""
    body = composite.write(Transfer(3, 7, b"\0\0\0\7", 0)) + b"payload"
    assert transfer_in(body) == (Transfer(3, 7, b"\0\0\0\7", 0), len(body) - len(b"payload"))


@given(TRANSFERS, st.integers(0, 30), st.binary(min_size=1, max_size=3))
def test_wrong_ones(transfer: Transfer, at: int, other: bytes) -> None:
    """Bytes that were changed mean the same to both, or nothing to one of them."""
    body = composite.write(transfer)
    body = body[:at] + other + body[at + len(other) :]
    assert at_once(body) in (None, slowly(body))
