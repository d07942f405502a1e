from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from services.common.authentication.claims import Digest
from services.common.errors import SyntaxFault
from services.gateway.sasl import Challenge
from services.gateway.sasl.cram_md5 import CramMd5, CramMd5Hex

NOBODY: Any = object()


@pytest.mark.specification("RFC 2195, section 2")
def test_the_rfcs_example() -> None:
    """tim's response to that challenge fits his password, and no other."""
    asked = b"<1896.697170952@postoffice.reston.mci.net>"
    said = Digest("tim", "CRAM-MD5", asked, "b913a602c7eda7a495b4e6e7334d3890")
    assert said.fits("tanstaaftanstaaf")
    assert not said.fits("tanstaaf")


@pytest.mark.parametrize("kind", [CramMd5, CramMd5Hex])
def test_an_exchange(kind: Any) -> None:
    """The broker asks something else each time; a name may have blanks; HEX has the MD5 in the password's place."""
    mechanism = kind(NOBODY)
    asked = mechanism.respond(b"")
    assert isinstance(asked, Challenge)
    assert asked != kind(NOBODY).respond(b"")
    password = b"secret" if kind is CramMd5 else hashlib.md5(b"secret").hexdigest().encode()
    digest = hmac.new(password, asked.data, "md5").hexdigest()
    claim = mechanism.respond(f"a b {digest.upper()}".encode())
    assert claim == Digest("a b", kind.name, asked.data, digest)
    assert claim.fits("secret")
    assert not claim.fits("wrong")


@pytest.mark.parametrize(
    "response", [b"", b"tim", b"tim x", b" " + b"0" * 32, b"tim " + b"g" * 32, b"\xff " + b"0" * 32]
)
def test_what_is_no_response(response: bytes) -> None:
    """Is a fault of syntax, as is an initial response."""
    mechanism = CramMd5(NOBODY)
    mechanism.respond(b"")
    with pytest.raises(SyntaxFault):
        mechanism.respond(response)
    with pytest.raises(SyntaxFault):
        CramMd5(NOBODY).respond(b"tim")
