"""Whether connected users may stay: asked of a directory, which is a real slapd."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from services.common.authentication.authenticator import Authenticator
from services.common.authentication.claims import Credentials
from services.common.authentication.kinds.ldap_directory import _leave as leave
from services.common.authentication.kinds.ldap_directory import ldap3  # with its warnings left out
from services.common.authentication.principal import Principal
from services.common.errors import AccessRefused
from services.gateway.connections.asked_again import AskedAgain
from tests.support.certificates import Authority
from tests.support.signing_in import providing
from tests.support.slapd import ADMIN, ADMIN_PASSWORD, SUFFIX, Slapd, running_slapd

HERE = "127.0.0.1"
PEOPLE, GROUPS = f"ou=people,{SUFFIX}", f"ou=groups,{SUFFIX}"
SEARCHER = {"bind_dn": ADMIN, "bind_password": ADMIN_PASSWORD}
TEMPLATE = {"user_dn": f"uid={{user}},{PEOPLE}"}
SEARCH = {"search_base": PEOPLE}


@pytest.fixture
def slapd(tmp_path: Path) -> Iterator[Slapd]:
    with running_slapd(tmp_path, Authority(tmp_path)) as running:
        yield running


class Connected:
    """Users that have signed in, and connections that have ended, on a clock of the test's."""

    def __init__(self, authenticator: Authenticator) -> None:
        self.now = 0.0
        self.authenticator = authenticator
        self.principals: list[Principal] = []
        self.ended: list[str] = []
        authenticator.close_user = self._end
        self.asked_again = AskedAgain(authenticator, lambda: self.principals, lambda: self.now)

    def _end(self, _provider: str, name: str, reason: str) -> None:
        self.ended.append(reason)
        self.principals = [each for each in self.principals if each.name != name]

    async def sign_in(self, user: str, provider: str = "staff") -> None:
        claim = Credentials(user, f"{user}'s")
        self.principals.append(await self.authenticator.sign_in(provider, claim, HERE))

    async def later(self, seconds: float) -> list[str]:
        """Whose connections have ended by then."""
        self.now += seconds
        await self.asked_again.look()
        return self.ended


@asynccontextmanager
async def at(slapd: Slapd, **options: Any) -> AsyncIterator[Connected]:
    told = {"type": "ldap", "url": slapd.tls_url, "authorities": str(slapd.authorities), **options}
    async with providing(staff=told, two={"type": "composite", "providers": ["staff"]}) as authenticator:
        connected = Connected(authenticator)
        await connected.sign_in("alice")
        await connected.sign_in("bob")
        assert await connected.later(0) == []
        yield connected


@contextmanager
def administrator(slapd: Slapd) -> Iterator[ldap3.Connection]:
    """The administrator of the directory."""
    server = ldap3.Server(slapd.url, get_info=ldap3.NONE)
    connection = ldap3.Connection(server, ADMIN, ADMIN_PASSWORD, auto_bind=True, raise_exceptions=True)
    yield connection
    leave(connection)


def delete_bob(slapd: Slapd) -> None:
    with administrator(slapd) as directory:
        directory.delete(f"uid=bob,{PEOPLE}")


@pytest.mark.parametrize("how", [{**TEMPLATE, **SEARCHER}, {**SEARCH, **SEARCHER}, SEARCH, {**SEARCH, "name": "dn"}])
async def test_who_is_gone_from_the_directory(slapd: Slapd, how: dict[str, Any]) -> None:
    """Loses connections at the end of the time for which an answer counts, and does not come in by it once more."""
    async with at(slapd, **how, cache_seconds=60) as connected:
        delete_bob(slapd)
        assert await connected.later(59) == []
        bob = connected.principals[-1].name
        assert await connected.later(2) == [f"user '{bob}' is deleted"]
        with pytest.raises(AccessRefused):
            await connected.sign_in("bob")
        assert [each.name.partition(",")[0] for each in connected.principals] in (["alice"], ["uid=alice"])
        assert len(await connected.later(61)) == 1


async def test_by_way_of_a_composite(slapd: Slapd) -> None:
    """The same: what that remembers is forgotten too."""
    async with at(slapd, **SEARCH, **SEARCHER) as connected:
        await connected.sign_in("bob", "two")
        delete_bob(slapd)
        assert await connected.later(61) == ["user 'bob' is deleted"]
        with pytest.raises(AccessRefused):
            await connected.sign_in("bob", "two")


async def test_who_is_in_other_groups(slapd: Slapd) -> None:
    """Loses connections, and has the new ones when it comes in again; others stay."""
    async with at(slapd, **TEMPLATE, **SEARCHER, group_base=GROUPS, member_of="employeeType") as connected:
        assert await connected.later(61) == []
        with administrator(slapd) as directory:
            directory.modify(f"cn=staff,{GROUPS}", {"member": [(ldap3.MODIFY_DELETE, [f"uid=bob,{PEOPLE}"])]})
        assert await connected.later(61) == ["user 'bob' was changed"]
        await connected.sign_in("bob")
        assert connected.principals[-1].groups == frozenset()
        assert len(await connected.later(61)) == 1


async def test_a_directory_that_is_away(slapd: Slapd) -> None:
    """Ends no connection; users that are gone when it answers again lose theirs then."""
    async with at(slapd, **SEARCH, **SEARCHER) as connected:
        delete_bob(slapd)
        slapd.stop()
        assert await connected.later(61) == []
        slapd.start()
        assert await connected.later(1) == ["user 'bob' is deleted"]


async def test_nobody_who_cannot_be_seen_is_taken_for_gone(slapd: Slapd) -> None:
    """Where only the user itself can read its entry, absence says nothing: it is not asked for."""
    async with at(slapd, **TEMPLATE) as connected:
        assert not any(each.again for each in connected.principals)
        delete_bob(slapd)
        assert await connected.later(1000) == []
