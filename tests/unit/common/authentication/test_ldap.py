"""Users of a directory, which is a real slapd."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import structlog

from services.common.authentication import provider
from services.common.authentication.answers import Answers
from services.common.authentication.authenticator import Authenticator
from services.common.authentication.claims import Anonymous, Credentials, Token
from services.common.authentication.described import Described, options_of
from services.common.errors import AccessRefused, SyntaxFault, Unavailable
from services.common.users import User, hash_password
from services.rpc import store_pb2
from tests.support.certificates import Authority
from tests.support.signing_in import INTERNAL, provider_records, providing, user_record, watch
from tests.support.slapd import ADMIN, ADMIN_PASSWORD, SUFFIX, Slapd, running_slapd

HERE = "127.0.0.1"
PEOPLE, GROUPS = f"ou=people,{SUFFIX}", f"ou=groups,{SUFFIX}"
BIND = {"user_dn": f"uid={{user}},{PEOPLE}"}
SEARCH = {"search_base": PEOPLE, "bind_dn": ADMIN, "bind_password": ADMIN_PASSWORD}


@pytest.fixture(scope="module")
def slapd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    with running_slapd(tmp_path_factory.mktemp("slapd"), Authority(tmp_path_factory.mktemp("tls"))) as running:
        yield running


@asynccontextmanager
async def at(slapd: Slapd, **options: Any) -> AsyncIterator[Authenticator]:
    """A provider `staff` of that directory, over TLS unless the options say otherwise."""
    told = {"type": "ldap", "url": slapd.tls_url, "authorities": str(slapd.authorities), **options}
    async with providing(staff=told) as authenticator:
        yield authenticator


@pytest.mark.parametrize("how", [BIND, SEARCH, {"search_base": PEOPLE}])
async def test_a_user_with_the_password_is_let_in(slapd: Slapd, how: dict[str, Any]) -> None:
    """Bound by a template, or found by a search, with bind_dn or anonymously; wrong passwords and names are refused."""
    async with at(slapd, **how) as authenticator:
        principal = await authenticator.sign_in("staff", Credentials("alice", "alice's"), HERE)
        assert (principal.name, principal.provider) == ("alice", "staff")
        for name, password in (("alice", "bob's"), ("alice", ""), ("nobody", "alice's"), ("", ""), ("", "alice's")):
            with pytest.raises(AccessRefused, match="check user name and password"):
                await authenticator.sign_in("staff", Credentials(name, password), HERE)


@pytest.mark.parametrize("how", [BIND, SEARCH, {"search_base": PEOPLE}])
@pytest.mark.parametrize("said", ["ALICE", "Alice ", " alice", "\uff41lice"])
async def test_a_name_is_as_the_directory_spells_it(slapd: Slapd, how: dict[str, Any], said: str) -> None:
    """The directory ignores case: a rule that denies alice something cannot be evaded by signing in as ALICE."""
    for options, name in ({}, "alice"), ({"name": "dn"}, f"uid=alice,{PEOPLE}"):
        async with at(slapd, **how, **options) as authenticator:
            try:
                principal = await authenticator.sign_in("staff", Credentials(said, "alice's"), HERE)
            except AccessRefused:
                assert said.strip() != said  # which some directories take for another name
                continue
            assert principal.name == name


async def test_a_name_that_is_found_otherwise(slapd: Slapd) -> None:
    """Of several attributes that may be the name, the one that was said counts; where it is part of one, what was."""
    by_both = {**SEARCH, "search_filter": "(|(uid={user})(cn={user}))"}
    for filter_, said, name in (
        (by_both["search_filter"], "alice", "alice"),
        (by_both["search_filter"], "Alice", "Alice"),
        ("(&(employeeType=clerk)(uid={user}))", "aLiCe", "alice"),
        ("(uid=a{user})", "LICE", "LICE"),
    ):
        async with at(slapd, **{**SEARCH, "search_filter": filter_}) as authenticator:
            assert (await authenticator.sign_in("staff", Credentials(said, "alice's"), HERE)).name == name


async def test_what_is_no_password_is_refused(slapd: Slapd) -> None:
    """An empty name is refused, though directories bind it as anonymous; so is a token."""
    async with at(slapd, **BIND) as authenticator:
        for claim in (Anonymous("alice"), Token("alice", "alice's")):
            with pytest.raises(AccessRefused):
                await authenticator.sign_in("staff", claim, HERE)


@pytest.mark.parametrize("how", [BIND, SEARCH])
@pytest.mark.parametrize("name", ["*", "al*", "alice)(uid=*", "alice,ou=people", f"alice,{PEOPLE}", "ali\0ce", "\\"])
async def test_names_are_no_filters(slapd: Slapd, how: dict[str, Any], name: str) -> None:
    """What means something in a filter, or a distinguished name, is a letter of a name."""
    async with at(slapd, **how) as authenticator:
        with pytest.raises(AccessRefused):
            await authenticator.sign_in("staff", Credentials(name, "alice's"), HERE)


@pytest.mark.parametrize("how", [BIND, SEARCH])
async def test_odd_names_are_found(slapd: Slapd, how: dict[str, Any]) -> None:
    """A user may have such a name."""
    async with at(slapd, **how) as authenticator:
        assert (await authenticator.sign_in("staff", Credentials("o,dd", "odd's"), HERE)).name == "o,dd"


async def test_two_of_one_name_are_no_user(slapd: Slapd) -> None:
    """Whose password would it be?"""
    async with at(slapd, **SEARCH) as authenticator:
        with pytest.raises(AccessRefused):
            await authenticator.sign_in("staff", Credentials("twin", "twin's"), HERE)


@pytest.mark.parametrize("how", [BIND, SEARCH])
async def test_groups(slapd: Slapd, how: dict[str, Any]) -> None:
    """Those that name the user, and those that the user's entry names; members of some have tags."""
    options = {"group_base": GROUPS, "member_of": "employeeType", "tags": {"administrator": ("operators",)}}
    async with at(slapd, **how, **options) as authenticator:
        alice = await authenticator.sign_in("staff", Credentials("alice", "alice's"), HERE)
        bob = await authenticator.sign_in("staff", Credentials("bob", "bob's"), HERE)
    assert (alice.groups, alice.tags) == ({"operators", "staff", "clerk"}, {"administrator"})
    assert (bob.groups, bob.tags) == ({"staff"}, frozenset())


async def test_the_name_may_be_the_distinguished_one(slapd: Slapd) -> None:
    """Where the options say so."""
    async with at(slapd, **SEARCH, name="dn") as authenticator:
        principal = await authenticator.sign_in("staff", Credentials("alice", "alice's"), HERE)
    assert principal.name == f"uid=alice,{PEOPLE}"


async def test_start_tls(slapd: Slapd) -> None:
    """What begins as plain LDAP goes on with TLS."""
    async with at(slapd, **BIND, url=slapd.url, start_tls=True) as authenticator:
        assert (await authenticator.sign_in("staff", Credentials("alice", "alice's"), HERE)).name == "alice"


@pytest.mark.parametrize("start_tls", [True, False])
async def test_a_certificate_of_another_server_is_an_error(slapd: Slapd, tmp_path: Any, start_tls: bool) -> None:
    """Passwords go to no other server."""
    others = Authority(tmp_path, "Others").path
    url = slapd.url if start_tls else slapd.tls_url
    async with at(slapd, **BIND, url=url, start_tls=start_tls, authorities=str(others)) as authenticator:
        with pytest.raises(Unavailable, match="'staff' does not answer"):
            await authenticator.sign_in("staff", Credentials("alice", "alice's"), HERE)


async def test_a_wrong_password_of_the_search(slapd: Slapd) -> None:
    """That is an error, and does not count as a wrong password."""
    async with at(slapd, **{**SEARCH, "bind_password": "wrong"}) as authenticator:
        with structlog.testing.capture_logs() as logged, pytest.raises(Unavailable, match="does not answer"):
            await authenticator.sign_in("staff", Credentials("alice", "alice's"), HERE)
    line, _ = logged  # and that a client could not sign in
    assert "bind_dn is refused" in line["reason"]


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({}, "either user_dn or search_base"),
        ({**BIND, **SEARCH}, "either user_dn or search_base"),
        ({"user_dn": PEOPLE}, "{user} is wanted"),
        ({**BIND, "url": "ldap://localhost"}, "ldaps://, start_tls, or unencrypted"),
        ({**BIND, "url": "http://localhost"}, "url"),
        ({**BIND, "timeout": 0}, "timeout"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], wrong: str) -> None:
    """Are named."""
    with pytest.raises(SyntaxFault, match=wrong):
        options_of(Described(type="ldap", options={"url": "ldaps://localhost", **options}))


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a server that accepts connections, and says nothing."""
    with socket.create_server((HERE, 0)) as server:
        yield f"ldap://{HERE}:{server.getsockname()[1]}"


async def test_one_that_does_not_answer_is_an_error(slapd: Slapd, silent: str) -> None:
    """After its timeout the sign-in fails; others succeed meanwhile, however many wait, and the event loop goes on."""
    alice = user_record(User(name="alice", password_hash=hash_password("on record")))
    async with at(slapd, **BIND, url=silent, unencrypted=True, timeout=2.5) as authenticator:
        await authenticator.follow(watch(store_pb2.Records(records=[alice])))

        def asks(number: int) -> asyncio.Task[Any]:
            return asyncio.create_task(authenticator.sign_in("staff", Credentials(f"user {number}", "alice's"), HERE))

        crowd = [asks(number) for number in range(30)]
        await asyncio.sleep(0.05)
        on_record = await authenticator.sign_in(INTERNAL, Credentials("alice", "on record"), HERE)
        assert (on_record.provider, [each for each in crowd if each.done()]) == (INTERNAL, [])
        await asyncio.wait(crowd, return_when=asyncio.FIRST_COMPLETED)
        later = asks(30)
        await asyncio.wait([later])
        assert all(each.done() for each in crowd)  # none of them waited for another
        answers = await asyncio.gather(*crowd, later, return_exceptions=True)
        assert {type(answer) for answer in answers} == {Unavailable}
        assert threading.active_count() < 20


async def test_one_that_does_not_answer_counts_against_no_client(slapd: Slapd, silent: str) -> None:
    """As soon as it answers, users are let in that tried meanwhile."""
    unanswered = {"url": silent, "unencrypted": True, "timeout": 0.05}
    async with at(slapd, **BIND, **unanswered) as authenticator:
        for _ in range(30):
            with pytest.raises(Unavailable):
                await authenticator.sign_in("staff", Credentials("alice", "alice's"), HERE)
        told = {"type": "ldap", "url": slapd.tls_url, "authorities": str(slapd.authorities), **BIND}
        await authenticator.follow(watch(store_pb2.Records(records=provider_records(staff=told))))
        assert (await authenticator.sign_in("staff", Credentials("alice", "alice's"), HERE)).name == "alice"


async def test_wrong_passwords_are_soon_not_asked_for(slapd: Slapd) -> None:
    """The guard is before every provider."""
    async with at(slapd, **BIND) as authenticator:
        for _ in range(15):
            with pytest.raises(AccessRefused):
                await authenticator.sign_in("staff", Credentials("alice", "wrong"), HERE)
        with pytest.raises(AccessRefused, match="too many"):
            await authenticator.sign_in("staff", Credentials("alice", "alice's"), HERE)
        assert (await authenticator.sign_in("staff", Credentials("alice", "alice's"), "192.0.2.7")).name == "alice"


async def test_what_was_answered_is_remembered(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For as long as the options say: the directory may be away then. Another password is not in the answer."""
    now = [0.0]
    monkeypatch.setattr(provider, "Answers", partial(Answers, clock=lambda: now[0]))
    with running_slapd(tmp_path, Authority(tmp_path)) as slapd:
        async with at(slapd, **BIND, cache_seconds=60) as authenticator:
            await authenticator.sign_in("staff", Credentials("alice", "alice's"), HERE)
            slapd.stop()
            assert (await authenticator.sign_in("staff", Credentials("alice", "alice's"), HERE)).name == "alice"
            with pytest.raises(Unavailable):
                await authenticator.sign_in("staff", Credentials("alice", "another"), HERE)
            now[0] = 61
            with pytest.raises(Unavailable):
                await authenticator.sign_in("staff", Credentials("alice", "alice's"), HERE)
            slapd.start()
            assert (await authenticator.sign_in("staff", Credentials("alice", "alice's"), HERE)).name == "alice"
