"""For any input to a mechanism, in any number of steps, the result is a claim, a challenge or a fault of syntax."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common import plugins
from services.common.authentication.claims import Claim
from services.common.authentication.disguise import keys_of_nobody
from services.common.errors import SyntaxFault
from services.common.scram import Keys
from services.gateway.sasl import Challenge, mechanism_named

_TOKENS = [
    b"",
    b"\0",
    b"\1",
    b" ",
    b"=",
    b",",
    b"n",
    b"r",
    b"c",
    b"p",
    b"user=",
    b"auth=Bearer ",
    b"LOGIN",
    b"PASSWORD",
]
_SAID = st.one_of(st.binary(max_size=80), st.lists(st.sampled_from(_TOKENS), max_size=12).map(b"".join))


class Somewhere:
    """A directory without users."""

    certified = ""

    def keys_of(self, user: str, mechanism: str) -> Keys:
        return keys_of_nobody(b"secret", user, mechanism)


@pytest.mark.parametrize("name", plugins.names("sasl_mechanisms"))
@given(said=st.lists(_SAID, min_size=1, max_size=3))
def test_anything(name: str, said: list[bytes]) -> None:
    """Nothing else is raised, and no proof is accepted; what is secret in a claim is not in its repr."""
    mechanism = mechanism_named(name, Somewhere())
    for response in said:
        try:
            answer: Any = mechanism.respond(response)
        except SyntaxFault:
            return
        assert isinstance(answer, Claim | Challenge)
        assert not getattr(answer, "fits", False) or callable(answer.fits)
        secret = getattr(answer, "secret", "")
        assert len(secret) < 4 or repr(secret)[1:-1] not in repr(answer).replace(repr(answer.user)[1:-1], "")
