from __future__ import annotations

import pytest

from services.common.authentication.claims import Anonymous as Somebody
from services.common.authentication.claims import Credentials
from services.common.errors import SyntaxFault
from services.common.message import field_table
from services.common.runtime import CannotStart
from services.common.scram import Keys
from services.gateway.sasl import offered, usable
from services.gateway.sasl.amqplain import AmqPlain
from services.gateway.sasl.anonymous import Anonymous
from services.gateway.sasl.plain import Plain


class Nobody:
    """A directory that is never asked."""

    def keys_of(self, user: str, mechanism: str) -> Keys:
        raise AssertionError


NOBODY = Nobody()


@pytest.mark.specification("RFC 4616, section 2")
def test_plain_reads_name_and_password() -> None:
    """PLAIN is [authzid] NUL authcid NUL password."""
    assert Plain(NOBODY).respond(b"\0guest\0p\xc3\xa4ss") == Credentials("guest", "päss")
    assert Plain(NOBODY).respond(b"\0\0token") == Credentials("", "token"), "a token says who it is"


@pytest.mark.parametrize("response", [b"", b"guest", b"\0guest", b"\0a\0b\0c", b"\0\xff\0x", b"root\0a\0x"])
def test_plain_refuses_what_it_cannot_read(response: bytes) -> None:
    """A malformed response, or one on behalf of another user, is a fault of syntax."""
    with pytest.raises(SyntaxFault):
        Plain(NOBODY).respond(response)


def test_amqplain_reads_login_and_password() -> None:
    """AMQPLAIN is the inside of a field table with LOGIN and PASSWORD."""
    response = field_table.encode({"LOGIN": "guest", "PASSWORD": "secret"})[4:]
    assert AmqPlain(NOBODY).respond(response) == Credentials("guest", "secret")


@pytest.mark.parametrize("response", [b"", b"\5LOGIN", field_table.encode({"LOGIN": "guest"})[4:], b"\xff" * 20])
def test_amqplain_refuses_what_it_cannot_read(response: bytes) -> None:
    """A table that is cut short, or lacks one of the two, is a fault of syntax."""
    with pytest.raises(SyntaxFault):
        AmqPlain(NOBODY).respond(response)


def test_what_is_offered_is_what_the_operator_names() -> None:
    """In that order; one that is not installed is named, with those that are, before any client can connect."""
    assert offered(("PLAIN", "AMQPLAIN")) == ["PLAIN", "AMQPLAIN"]
    assert offered(("AMQPLAIN",)) == ["AMQPLAIN"]
    with pytest.raises(CannotStart, match=r"there is no PLIAN; there are AMQPLAIN.*, PLAIN, SCRAM-SHA-1, "):
        offered(("PLAIN", "PLIAN"))


def test_anonymous_is_offered_with_its_user() -> None:
    """As the last one, or where the operator puts it; and not where no user is set for it."""
    assert offered(("PLAIN",), "guest") == ["PLAIN", "ANONYMOUS"]
    assert offered(("ANONYMOUS", "PLAIN"), "guest") == ["ANONYMOUS", "PLAIN"]
    with pytest.raises(CannotStart, match="ANONYMOUS needs HOPLINE_ANONYMOUS_USER"):
        offered(("ANONYMOUS", "PLAIN"))


@pytest.mark.specification("RFC 4505, section 2")
@pytest.mark.parametrize("trace", ["", "sirhc", "crème@example.com", "é" * 255])
def test_anonymous_says_what_it_likes(trace: str) -> None:
    """Nothing, or trace information of 255 characters at most."""
    assert Anonymous(NOBODY).respond(trace.encode()) == Somebody(trace)


@pytest.mark.specification("RFC 4505, section 2")
@pytest.mark.parametrize("response", [b"\xff", b"a\nb", b"\0guest\0guest", b"x" * 256])
def test_anonymous_refuses_what_it_cannot_read(response: bytes) -> None:
    """What is no text, has control characters, or is too long, is a fault of syntax."""
    with pytest.raises(SyntaxFault):
        Anonymous(NOBODY).respond(response)


@pytest.mark.parametrize(
    ("private", "certified", "names"),
    [
        (True, True, ("PLAIN", "AMQPLAIN", "SCRAM-SHA-256", "EXTERNAL", "ANONYMOUS")),
        (False, True, ("SCRAM-SHA-256", "EXTERNAL", "ANONYMOUS")),
        (True, False, ("PLAIN", "AMQPLAIN", "SCRAM-SHA-256", "ANONYMOUS")),
        (False, False, ("SCRAM-SHA-256", "ANONYMOUS")),
    ],
)
def test_what_a_connection_may_use(private: bool, certified: bool, names: tuple[str, ...]) -> None:
    """Passwords are offered where the connection is secure, EXTERNAL to clients with a certificate; the order stays."""
    every = ("PLAIN", "AMQPLAIN", "SCRAM-SHA-256", "EXTERNAL", "ANONYMOUS")
    assert usable(every, private=private, certified=certified) == names
