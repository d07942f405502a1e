"""A client that guesses passwords keeps no other out; `verify_password` is counted, and takes no time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import structlog

from services.common.authentication.attempts import OF_ADDRESS, OF_USER_THERE
from services.common.authentication.claims import Claim, Credentials, Token
from services.common.authentication.guard import Guard
from services.common.authentication.kinds import internal as module
from services.common.authentication.kinds.internal import Internal
from services.common.authentication.principal import Principal
from services.common.authentication.provider import Options, Provider
from services.common.authentication.refusal import TooManyFailures
from services.common.errors import AccessRefused
from services.common.users import User
from tests.support.signing_in import authenticator_of

EVIL, HOME, WORK = "192.0.2.66", "198.51.100.1", "198.51.100.2"
USERS = {name: User(name=name, password_hash=f"hash of {name}") for name in ("alice", "bob", "carol")}


class Door:
    """A `Guard`, its clock, and whose passwords were hashed."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.hashed: list[str] = []
        self.guard = Guard(lambda: self.now)
        self.provider = Internal("internal", Options(), authenticator_of())
        self.provider.house.known.users |= USERS

    def verify(self, user: User | None, password: str, *_: object) -> bool:
        self.hashed.append(user.name if user else "")
        return user is not None and password == f"{user.name}'s"

    async def knock(self, name: str, password: str, address: str) -> str:
        """ "in", "refused", or "not tried"."""
        try:
            await self.guard.judge(self.provider, Credentials(name, password), address)
        except TooManyFailures:
            return "not tried"
        except AccessRefused:
            return "refused"
        return "in"

    async def attack(self, count: int, name: Callable[[int], str], address: str = EVIL) -> list[str]:
        return [await self.knock(name(number), f"guess {number}", address) for number in range(count)]


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Door:
    door = Door()
    monkeypatch.setattr(module, "verify_password", door.verify)
    return door


async def test_guesses_at_one_user_are_soon_not_tried(door: Door) -> None:
    """After so many wrong passwords for a user from an address, none is hashed, not even the right one."""
    answers = await door.attack(200, lambda _: "alice")
    assert answers == ["refused"] * OF_USER_THERE.burst + ["not tried"] * (200 - OF_USER_THERE.burst)
    assert len(door.hashed) == OF_USER_THERE.burst
    assert await door.knock("alice", "alice's", EVIL) == "not tried"


async def test_a_name_that_does_not_exist_is_answered_as_one_that_does(door: Door) -> None:
    """The number of tries does not reveal which names are users."""
    assert await door.attack(30, lambda _: "nobody") == await door.attack(30, lambda _: "alice", "192.0.2.67")


async def test_the_user_comes_in_from_elsewhere(door: Door) -> None:
    """Guesses at a user's password do not lock the user out of other addresses."""
    await door.attack(200, lambda _: "alice")
    assert await door.knock("alice", "alice's", HOME) == "in"


async def test_others_at_that_address_come_in(door: Door) -> None:
    """Behind one address, guesses at one user's password leave the others alone."""
    await door.attack(200, lambda _: "alice")
    assert await door.knock("bob", "bob's", EVIL) == "in"


async def test_guesses_at_many_users_are_soon_not_tried(door: Door) -> None:
    """From an address with too many failures only users that have signed in there before are let in."""
    assert await door.knock("bob", "bob's", EVIL) == "in"
    answers = await door.attack(200, str)
    assert answers.count("refused") == OF_ADDRESS.burst
    assert await door.knock("bob", "bob's", EVIL) == "in"
    assert await door.knock("carol", "carol's", EVIL) == "not tried"
    assert await door.knock("carol", "carol's", HOME) == "in"


async def test_a_known_user_is_not_guessed_at_for_ever(door: Door) -> None:
    """What lets a known user in when its address is refused counts wrong passwords too."""
    await door.knock("bob", "bob's", EVIL)
    await door.attack(50, str)
    await door.attack(50, lambda _: "bob")
    assert await door.knock("bob", "bob's", EVIL) == "not tried"


class Cloud(Provider):
    """Of tokens: whose each is, it says itself."""

    async def verify(self, claim: Claim) -> Principal:
        return Principal("mallory", self.name, expires=2e9)


async def test_a_name_that_is_said_with_a_token(door: Door) -> None:
    """Does not count as signed in before: a client with a token could use any name, and guess at its password."""
    house = authenticator_of()
    for name in ("alice", "bob"):
        await door.guard.judge(Cloud("cloud", Options(), house), Token(name, "a token"), EVIL)
    await door.attack(50, str)
    for name in ("alice", "bob"):
        with pytest.raises(TooManyFailures):
            door.guard.expect(name, EVIL)


async def test_time_heals(door: Door) -> None:
    """A user is let in again when there was quiet for a while."""
    await door.attack(200, lambda _: "alice")
    door.now += OF_USER_THERE.seconds
    assert await door.knock("alice", "alice's", EVIL) == "in"


async def test_an_ipv6_network_is_one_address(door: Door) -> None:
    """A client can choose the last 64 bits of its address."""
    answers = [await door.knock("alice", "wrong", f"2001:db8::{number:x}") for number in range(100)]
    assert answers.count("refused") == OF_USER_THERE.burst
    assert await door.knock("alice", "alice's", "2001:db8:0:1::1") == "in"


async def test_right_passwords_at_once_are_hashed_once(door: Door) -> None:
    """A storm of reconnects is let in, however many come, and however they are spread over users."""
    names = [*USERS] * 100
    answers = await asyncio.gather(*(door.knock(name, f"{name}'s", HOME) for name in names))
    assert answers == ["in"] * len(names)
    assert len(door.hashed) <= 2 * len(USERS)


async def test_addresses_take_turns(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand that wait at one address do not make one at another wait for all of them."""
    order: list[str] = []

    async def hash_slowly(_verify: object, user: User | None, password: str, *_: object) -> bool:
        await asyncio.sleep(0)
        order.append(password)
        return door.verify(user, password)

    monkeypatch.setattr(module.asyncio, "to_thread", hash_slowly)
    crowd = [asyncio.create_task(door.knock(f"user {number}", "wrong", EVIL)) for number in range(1000)]
    await asyncio.sleep(0)
    assert await door.knock("alice", "alice's", HOME) == "in"
    assert order.index("alice's") < 5
    answers = await asyncio.gather(*crowd)
    assert answers.count("refused") <= OF_ADDRESS.burst + 2
    assert set(answers) == {"refused", "not tried"}


async def test_a_crowd_of_addresses_does_not_keep_out_a_new_one(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hundreds of addresses try passwords, one that has not is before them: half of the slots are its own."""
    order: list[str] = []

    async def hash_slowly(_verify: object, user: User | None, password: str, *_: object) -> bool:
        await asyncio.sleep(0)
        order.append(password)
        return door.verify(user, password)

    evil = [f"192.0.2.{number}" for number in range(200)]
    for address in evil:
        await door.knock("nobody", "wrong", address)
    monkeypatch.setattr(module.asyncio, "to_thread", hash_slowly)
    crowd = [asyncio.create_task(door.knock("nobody", "wrong", address)) for address in evil]
    await asyncio.sleep(0)
    assert door.provider.slots._free == 1
    users = [asyncio.create_task(door.knock(name, f"{name}'s", HOME)) for name in USERS]
    assert await asyncio.gather(*users) == ["in"] * 3
    assert order.index("carol's") < 10
    assert len(order) < 15
    await asyncio.gather(*crowd)
    assert order.count("wrong") == len(evil)


async def test_a_client_that_leaves_has_a_slot_until_its_password_is_hashed(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections that go away while they wait take no slot; threads that hash for closed ones are no more than others,
    and what they find counts."""
    begun, end = 0, asyncio.Event()

    async def hash_long(*_: object) -> bool:
        nonlocal begun
        begun += 1
        await end.wait()
        return False

    with monkeypatch.context() as patched:
        patched.setattr(module.asyncio, "to_thread", hash_long)
        crowd = [asyncio.create_task(door.knock("alice", "wrong", EVIL)) for _ in range(100)]
        for each in crowd:
            await asyncio.sleep(0)
            each.cancel()
        waiting = asyncio.create_task(door.knock("bob", "wrong", WORK))
        await asyncio.sleep(0)
        assert begun == 2
        end.set()
        assert await waiting == "refused"
    assert (await asyncio.wait(crowd))[1] == set()
    assert all(each.cancelled() for each in crowd)
    assert await asyncio.gather(*(door.knock(name, f"{name}'s", HOME) for name in USERS)) == ["in"] * 3
    assert (await door.attack(20, lambda _: "alice")).count("refused") == OF_USER_THERE.burst - 2


async def test_the_log_says_it_once(door: Door) -> None:
    """One line when a user's tries from an address are used up, however many come after it and however slowly."""
    with structlog.testing.capture_logs() as logged:
        for _ in range(50):
            await door.attack(20, lambda _: "alice")
            door.now += OF_USER_THERE.seconds
    assert [(line["address"], line["user"]) for line in logged] == [(EVIL, "alice")]
