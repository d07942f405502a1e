"""Tokens, of an issuer that is a process of its own."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.common.authentication.authenticator import Authenticator
from services.common.authentication.claims import Credentials, Token
from services.common.authentication.described import Described, options_of
from services.common.authentication.kinds import jwks
from services.common.authentication.principal import Principal
from services.common.errors import AccessRefused, SyntaxFault, Unavailable
from tests.support.certificates import Authority
from tests.support.issuer import Issuer, running_issuer
from tests.support.signing_in import providing

HERE = "127.0.0.1"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running_issuer() as running:
        yield running


@asynccontextmanager
async def trusting(issuer: Issuer, **options: Any) -> AsyncIterator[Authenticator]:
    """A provider `cloud` that takes the issuer's tokens."""
    told = {"type": "oauth2", "issuer": issuer.url, "audience": ["hopline"], "leeway": 0, **options}
    async with providing(cloud=told) as authenticator:
        yield authenticator


async def told(authenticator: Authenticator, token: str) -> Principal:
    return await authenticator.sign_in("cloud", Token("", token), HERE)


async def test_a_token_names_its_user(issuer: Issuer) -> None:
    """Its subject, groups and scopes, some of which give tags, and until when; with XOAUTH2 or as a password."""
    async with trusting(
        issuer, tags={"monitoring": ["hopline.observe"]}, groups_claims=["groups", "realm.roles"]
    ) as it:
        until = int(time.time()) + 60
        claims = {"groups": ["staff"], "realm": {"roles": ["boss"]}, "scope": "hopline.observe other", "exp": until}
        token = issuer.token(**claims)
        expected = Principal(
            "alice",
            "cloud",
            frozenset({"staff", "boss", "hopline.observe", "other"}),
            frozenset({"monitoring"}),
            expires=float(until),
        )
        assert await told(it, token) == expected
        assert await it.sign_in("cloud", Credentials("whoever", token), HERE) == expected


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
async def test_signatures(issuer: Issuer, algorithm: str) -> None:
    """Of the kinds that are allowed count."""
    issuer.rotate(algorithm)
    async with trusting(issuer) as authenticator:
        assert (await told(authenticator, issuer.token())).name == "alice"
    async with trusting(issuer, algorithms=["PS512"]) as authenticator:
        with pytest.raises(AccessRefused):
            await told(authenticator, issuer.token())


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://somebody.else"},
        {"iss": None},
        {"aud": "another"},
        {"aud": ["another", "third"]},
        {"aud": None},
        {"exp": 1},
        {"exp": None},
        {"nbf": 99_999_999_999},
        {"sub": None},
        {"sub": ""},
        {"sub": "x" * 256},
        {"scope": "other"},
        {"scope": None},
        {"headers_": {"kid": "another"}},
    ],
)
async def test_what_a_token_lacks(issuer: Issuer, claims: dict[str, Any]) -> None:
    """The right issuer, audience, time, name, scope and key have to be there."""
    async with trusting(issuer, required_scopes=["hopline"]) as authenticator:
        assert (await told(authenticator, issuer.token(scope="hopline"))).name == "alice"
        with pytest.raises(AccessRefused, match="login was refused"):
            await told(authenticator, issuer.token(**{"scope": "hopline", **claims}))


async def test_what_is_no_token(issuer: Issuer) -> None:
    """Forged, unsigned, signed with what is public, or nothing of the kind."""
    async with trusting(issuer) as authenticator:
        good = issuer.token()
        head, body, signature = good.split(".")
        claims = jwt.decode(good, options={"verify_signature": False})
        forged = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "root"}).encode()).rstrip(b"=").decode()
        kid = jwt.get_unverified_header(good)["kid"]
        unsigned = jwt.encode(claims, None, "none", headers={"kid": kid})
        hashed = jwt.encode(claims, "0" * 64, "HS256", headers={"kid": kid})
        for bad in (f"{head}.{forged}.{signature}", f"{head}.{body}.", unsigned, hashed, "", "a.b.c", "x" * 100_000):
            with pytest.raises(AccessRefused):
                await authenticator.sign_in("cloud", Token("", bad), f"192.0.2.{len(bad) % 200}")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.text(max_size=200),
        st.tuples(st.binary(max_size=60), st.binary(max_size=60)).map(
            lambda two: ".".join(base64.urlsafe_b64encode(each).decode().rstrip("=") for each in (*two, b"x"))
        ),
    )
)
def test_anything_may_come(bad: str) -> None:
    """Anything in place of a token is refused, or the issuer is away; there is no other outcome."""

    async def say() -> None:
        told = {
            "type": "oauth2",
            "issuer": "http://127.0.0.1:9",
            "audience": ["hopline"],
            "jwks_url": "http://127.0.0.1:9",
        }
        async with providing(cloud=told) as authenticator:
            with pytest.raises((AccessRefused, Unavailable)):
                await authenticator.sign_in("cloud", Token("", bad), HERE)

    asyncio.run(say())


async def test_a_new_key(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is asked for when a token names it; with a key that is withdrawn go the tokens that it has signed."""
    monkeypatch.setattr(jwks, "_AGAIN", 0.0)
    async with trusting(issuer) as authenticator:
        former = issuer.token()
        assert (await told(authenticator, former)).name == "alice"
        issuer.rotate("ES256")
        assert (await told(authenticator, issuer.token(sub="bob"))).name == "bob"
        with pytest.raises(AccessRefused):
            await told(authenticator, former)


async def test_keys_are_asked_for_seldom(issuer: Issuer) -> None:
    """Once for all that come at once, and not again for each key name that a client invents."""
    async with trusting(issuer) as authenticator:
        tokens = [issuer.token(sub=f"user {number}") for number in range(20)]
        await asyncio.gather(*(told(authenticator, token) for token in tokens))
        for number in range(10):
            with pytest.raises(AccessRefused):
                await told(authenticator, issuer.token(headers_={"kid": f"invented {number}"}))
        assert issuer.asked() == 1


async def test_an_issuer_that_does_not_answer(issuer: Issuer) -> None:
    """An error after its timeout, also for tokens that were good while it did, once its keys are too old."""
    async with trusting(issuer, timeout=2, keys_seconds=4, cache_seconds=0) as authenticator:
        issuer.be_silent()
        with pytest.raises(Unavailable, match="'cloud' does not answer"):
            await told(authenticator, issuer.token())
        issuer.be_silent(False)
        assert (await told(authenticator, issuer.token())).name == "alice"
        token = issuer.token()
        issuer.stop()
        assert (await told(authenticator, token)).name == "alice"
        await asyncio.sleep(4.1)
        with pytest.raises(Unavailable):
            await told(authenticator, token)


async def test_many_hear_together_that_an_issuer_does_not_answer(issuer: Issuer) -> None:
    """After its timeout, not after those of all who came before: a client would have given up."""
    async with trusting(issuer, timeout=0.5) as authenticator:
        tokens = [issuer.token(sub=f"user {number}") for number in range(20)]
        issuer.be_silent()
        async with asyncio.timeout(5):
            answers = await asyncio.gather(*(told(authenticator, each) for each in tokens), return_exceptions=True)
        assert {type(each) for each in answers} == {Unavailable}


async def test_what_is_remembered_expires_with_the_token(issuer: Issuer) -> None:
    """However long an answer is good for."""
    async with trusting(issuer) as authenticator:
        ends = time.time() + 5  # long enough for a slow machine to sign in
        token = issuer.token(exp=ends)
        assert (await told(authenticator, token)).name == "alice"
        await asyncio.sleep(ends + 1.1 - time.time())
        with pytest.raises(AccessRefused):
            await told(authenticator, token)


async def test_over_tls(tmp_path: Any) -> None:
    """By an authority that the options name; with another one no client is let in."""
    authority = Authority(tmp_path)
    with running_issuer(authority.sign("issuer", ["localhost"])) as issuer:
        async with trusting(issuer, authorities=str(authority.path)) as authenticator:
            assert (await told(authenticator, issuer.token())).name == "alice"
        async with trusting(issuer) as authenticator:
            with pytest.raises(Unavailable):
                await told(authenticator, issuer.token())


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"issuer": "http://example.org"}, "https://"),
        ({"issuer": "example"}, "https://"),
        ({"jwks_url": "file:///etc/passwd"}, "https://"),
        ({"algorithms": ["HS256"]}, "there is no HS256"),
        ({"algorithms": ["none"]}, "there is no none"),
        ({"audience": []}, "audience"),
        ({"no_such": 1}, "no_such"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], wrong: str) -> None:
    """Are named: keys that could be changed on their way, signatures that any client could make."""
    whole = {"issuer": "https://example.org", "audience": ["hopline"], **options}
    with pytest.raises(SyntaxFault, match=wrong):
        options_of(Described(type="oauth2", options=whole))
