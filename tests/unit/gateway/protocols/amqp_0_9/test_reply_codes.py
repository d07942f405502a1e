from __future__ import annotations

import pytest

from services.common import errors
from services.common.authentication.refusal import TooManyFailures
from services.gateway.protocols.amqp_0_9.reply_codes import ends_connection, reply_code, reply_text


@pytest.mark.parametrize(
    ("error", "code", "hard"),
    [
        (errors.NotFound, 404, False),
        (TooManyFailures, 403, False),
        (errors.LinkStolen, 405, False),
        (errors.ResourceError, 506, True),
        (errors.NotAllowed, 530, True),
        (errors.Unavailable, 541, True),
        (errors.WrongPeer, 541, True),
        (errors.InDoubt, 541, True),
        (errors.Fenced, 541, True),
    ],
)
@pytest.mark.specification("amqp0-9-1.xml, 1.2")
def test_what_an_error_is_called(error: type[errors.BrokerError], code: int, hard: bool) -> None:
    """A kind of an error has its code, what this protocol has no word for is 541; 404 ends a channel, 506 all."""
    assert (reply_code(error("x")), ends_connection(error("x"))) == (code, hard)


def test_what_a_client_reads() -> None:
    """The code's name, then what went wrong."""
    assert reply_text(errors.NotFound("no queue 'x'")) == "NOT_FOUND - no queue 'x'"
