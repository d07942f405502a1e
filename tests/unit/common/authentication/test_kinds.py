"""Providers: files, certificates, anonymous, and several in order."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from structlog.testing import capture_logs

from services.common.authentication.claims import Anonymous, Certified, Credentials, Digest
from services.common.authentication.kinds import file_lines
from services.common.authentication.principal import Principal
from services.common.errors import AccessRefused, Unavailable
from services.common.users import User, hash_password
from services.rpc import store_pb2
from tests.support.programs import until
from tests.support.signing_in import INTERNAL, provider_records, providing, user_record, watch

HERE = "127.0.0.1"


def line(format_: str, password: str) -> str:
    """What a file has of a password."""
    md5 = base64.b64encode(hashlib.md5(password.encode()).digest()).decode()
    hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
    return {"plain": password, "base64-md5": md5, "hashes": hashed}[format_]


def write(path: Path, text: str) -> None:
    """Whole, as editors do it, and never of the same moment as before."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


@pytest.mark.parametrize("format_", ["plain", "base64-md5", "hashes"])
async def test_users_of_a_file(tmp_path: Path, format_: str) -> None:
    """As Broker-J and htpasswd write them, with groups; an unknown user, or another password, is refused."""
    users, groups = tmp_path / "users", tmp_path / "groups"
    users.write_text(f"# users\nalice:{line(format_, 'äh: so')}\n\nbob:{line(format_, 'bob')}\n")
    groups.write_text("# groups\nstaff.users=alice, bob\nbosses.users=alice\n")
    told = {"type": "file", "path": str(users), "format": format_, "groups_path": str(groups)}
    async with providing(here={**told, "tags": {"administrator": ["bosses"]}}) as authenticator:
        alice = await authenticator.sign_in("here", Credentials("alice", "äh: so"), HERE)
        assert alice == Principal("alice", "here", frozenset({"staff", "bosses"}), frozenset({"administrator"}))
        assert (await authenticator.sign_in("here", Credentials("bob", "bob"), HERE)).groups == {"staff"}
        for name, password in (
            ("alice", "bob"),
            ("carol", ""),
            ("", ""),
            ("alice", ""),
            ("bob", line(format_, "bob") + " "),
        ):
            with pytest.raises(AccessRefused, match="check user name and password"):
                await authenticator.sign_in("here", Credentials(name, password), HERE)


def digest(mechanism: str, user: str, password: str) -> Digest:
    """As a client of CRAM-MD5 makes it."""
    key = hashlib.md5(password.encode()).hexdigest() if mechanism == "CRAM-MD5-HEX" else password
    return Digest(user, mechanism, b"<1@x>", hmac.new(key.encode(), b"<1@x>", "md5").hexdigest())


@pytest.mark.parametrize(
    ("format_", "mechanism", "there"),
    [
        ("plain", "CRAM-MD5", True),
        ("plain", "CRAM-MD5-HEX", True),
        ("base64-md5", "CRAM-MD5", False),
        ("base64-md5", "CRAM-MD5-HEX", True),
        ("hashes", "CRAM-MD5-HEX", False),
    ],
)
async def test_digests_of_passwords_of_a_file(tmp_path: Path, format_: str, mechanism: str, there: bool) -> None:
    """Where the file has what they are made of."""
    users = tmp_path / "users"
    users.write_text(f"alice:{line(format_, 'secret')}\n")
    async with providing(here={"type": "file", "path": str(users), "format": format_}) as authenticator:
        assert (mechanism in authenticator.provider("here").mechanisms) == there
        good, bad = digest(mechanism, "alice", "secret"), digest(mechanism, "alice", "wrong")
        if there:
            assert (await authenticator.sign_in("here", good, HERE)).name == "alice"
        for claim in (bad, digest(mechanism, "nobody", ""), *([] if there else [good])):
            with pytest.raises(AccessRefused):
                await authenticator.sign_in("here", claim, HERE)


async def test_a_file_that_changes(tmp_path: Path) -> None:
    """Counts at once; users that are gone or changed lose their connections, and remembered answers."""
    users = tmp_path / "users"
    users.write_text("alice:one\nbob:bob\ncarol:carol\n")
    async with providing(here={"type": "file", "path": str(users), "format": "plain"}) as authenticator:
        ended: list[tuple[str, ...]] = []
        authenticator.close_user = lambda *about: ended.append(about)
        for name, password in (("alice", "one"), ("bob", "bob")):
            await authenticator.sign_in("here", Credentials(name, password), HERE)
        write(users, "alice:another\ncarol:carol\n")
        await until(lambda: len(ended) == 2)
        assert ended == [("here", "alice", "user 'alice' was changed"), ("here", "bob", "user 'bob' is deleted")]
        assert (await authenticator.sign_in("here", Credentials("alice", "another"), HERE)).name == "alice"
        for name, password in (("alice", "one"), ("bob", "bob")):
            with pytest.raises(AccessRefused):
                await authenticator.sign_in("here", Credentials(name, password), HERE)


WRONG = ["alice\n", ":x\n", "alice:\n", "alice:a\nalice:b\n", b"alice:a\n\xff:x\n"]


@pytest.mark.parametrize("text", WRONG)
async def test_a_line_that_is_wrong(tmp_path: Path, text: Any) -> None:
    """Shuts no user out: the file's former content counts until it is right; log and health name the line, once."""
    users, told = tmp_path / "users", text if isinstance(text, bytes) else text.encode()
    users.write_text("alice:secret\nbob:bob\n")
    async with providing(here={"type": "file", "path": str(users), "format": "plain"}) as authenticator:
        ended: list[tuple[str, ...]] = []
        authenticator.close_user = lambda *about: ended.append(about)
        await authenticator.sign_in("here", Credentials("alice", "secret"), HERE)
        with capture_logs() as logged:
            users.write_bytes(told)
            os.utime(users, (1, 1))
            for _ in range(3):
                assert (await authenticator.sign_in("here", Credentials("bob", "bob"), HERE)).name == "bob"
        [line] = [each for each in logged if each["log_level"] == "error"]
        where = f"{users}, line {len(told.splitlines())}: "
        assert where in line["reason"]
        assert where in authenticator.troubles()["here"]
        write(users, "alice:secret\n")
        await until(lambda: bool(ended))
        assert ended == [("here", "bob", "user 'bob' is deleted")]
        assert authenticator.troubles() == {}


async def test_a_line_that_is_wrong_and_taken_back(tmp_path: Path) -> None:
    """Is forgotten, also where the file is the same as before it."""
    users, former = tmp_path / "users", tmp_path / "former"
    users.write_text("alice:secret\n")
    async with providing(here={"type": "file", "path": str(users), "format": "plain"}) as authenticator:
        await authenticator.sign_in("here", Credentials("alice", "secret"), HERE)
        users.rename(former)
        users.write_text("wrong")
        await authenticator.sign_in("here", Credentials("alice", "secret"), HERE)
        await until(lambda: bool(authenticator.troubles()))
        former.rename(users)
        await until(lambda: not authenticator.troubles())


@pytest.mark.parametrize("text", WRONG)
async def test_a_line_that_is_wrong_from_the_beginning(tmp_path: Path, text: Any) -> None:
    """Lets no user in until it is right: there is no former content."""
    users = tmp_path / "users"
    users.write_bytes(text if isinstance(text, bytes) else text.encode())
    async with providing(here={"type": "file", "path": str(users), "format": "plain"}) as authenticator:
        with pytest.raises(Unavailable):
            await authenticator.sign_in("here", Credentials("alice", "a"), HERE)
        write(users, "alice:secret\n")
        assert (await authenticator.sign_in("here", Credentials("alice", "secret"), HERE)).name == "alice"


async def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Lets no user in, not even former ones, and their connections end."""
    users = tmp_path / "users"
    users.write_text("alice:secret\n")
    async with providing(here={"type": "file", "path": str(users), "format": "plain"}) as authenticator:
        ended: list[tuple[str, ...]] = []
        authenticator.close_user = lambda *about: ended.append(about)
        await authenticator.sign_in("here", Credentials("alice", "secret"), HERE)
        users.unlink()
        with pytest.raises(Unavailable):
            await authenticator.sign_in("here", Credentials("alice", "wrong"), HERE)
        with pytest.raises(Unavailable):
            await authenticator.sign_in("here", Credentials("alice", "secret"), HERE)
        assert ended == [("here", "alice", "user 'alice' is deleted")]


@pytest.mark.parametrize(
    "told", [None, {"type": "ldap", "url": "ldap://127.0.0.1:9", "unencrypted": True, "user_dn": "{user}"}]
)
async def test_a_provider_that_is_away_in_the_log(told: Any) -> None:
    """However many sign in by it, there is a line of each kind in some seconds, though there be none at all."""
    async with providing(**({"away": told} if told else {})) as authenticator:
        with capture_logs() as logged:
            for number in range(20):
                with pytest.raises(Unavailable):
                    await authenticator.sign_in("away", Credentials(f"user-{number}", "x"), HERE)
        assert len(logged) == 2
        assert {each["provider"] for each in logged} == {"away"}


async def test_the_user_that_a_certificate_names() -> None:
    """Is let in, on record or not; no other client is."""
    async with providing(external={"type": "external", "groups": ["machines"]}) as authenticator:
        assert await authenticator.sign_in("external", Certified("CN=robot"), HERE) == Principal(
            "CN=robot", "external", frozenset({"machines"})
        )
        for claim in (Certified(""), Anonymous(""), Credentials("CN=robot", "x")):
            with pytest.raises(AccessRefused):
                await authenticator.sign_in("external", claim, HERE)


async def test_any_client() -> None:
    """Has a name that the options give, and no password is one."""
    async with providing(all={"type": "anonymous", "user": "somebody"}) as authenticator:
        assert (await authenticator.sign_in("all", Anonymous("x"), HERE)).name == "somebody"
        assert (await authenticator.sign_in("anonymous", Anonymous("x"), HERE)).name == "ANONYMOUS"
        with pytest.raises(AccessRefused):
            await authenticator.sign_in("all", Credentials("root", "x"), HERE)


async def test_several_in_order(tmp_path: Path) -> None:
    """The first that knows a user accepts it; mechanisms are those of all, and those that one brings."""
    users = tmp_path / "users"
    users.write_text("alice:of the file\nbob:bob\n")
    told = {
        "both": {"type": "composite", "providers": ["here", INTERNAL, "external"], "tags": {"x": []}},
        "here": {"type": "file", "path": str(users), "format": "plain"},
        "two": {"type": "composite", "providers": [INTERNAL, "here"]},
    }
    alice = User(name="alice", password_hash=hash_password("on record"), tags=("monitoring",), loopback_only=True)
    async with providing(**told) as authenticator:
        await authenticator.follow(watch(store_pb2.Records(records=[user_record(alice)])))
        both, two = authenticator.provider("both"), authenticator.provider("two")
        assert two.mechanisms == {"PLAIN", "AMQPLAIN", "CRAM-MD5", "CRAM-MD5-HEX"}
        assert (both.mechanisms, both.brings) == ({"EXTERNAL"}, ("EXTERNAL",))
        of_file = await authenticator.sign_in("both", Credentials("alice", "of the file"), HERE)
        on_record = await authenticator.sign_in("both", Credentials("alice", "on record"), HERE)
        assert (of_file.provider, on_record.provider) == ("here", INTERNAL)
        assert (on_record.tags, on_record.loopback_only) == ({"monitoring"}, True)
        with pytest.raises(AccessRefused, match="only connect from this machine"):
            await authenticator.sign_in("both", Credentials("alice", "on record"), "192.0.2.7")
        assert (await authenticator.sign_in("both", Certified("CN=robot"), HERE)).provider == "external"
        with pytest.raises(AccessRefused):
            await authenticator.sign_in("both", Credentials("alice", "of nobody"), HERE)


async def test_one_of_several_is_away(tmp_path: Path) -> None:
    """That is an error, and the next is not asked, which might accept a refused user; unless the options say so."""
    users = tmp_path / "users"
    users.write_text("bob:bob\n")
    told: dict[str, Any] = {
        "strict": {"type": "composite", "providers": ["away", "here"]},
        "lenient": {"type": "composite", "providers": ["away", "here"], "pass_over": ["away"]},
        "here": {"type": "file", "path": str(users), "format": "plain"},
        "away": {"type": "ldap", "url": "ldap://127.0.0.1:9", "unencrypted": True, "user_dn": "uid={user}"},
    }
    async with providing(**told) as authenticator:
        with pytest.raises(Unavailable, match="'away'"):
            await authenticator.sign_in("strict", Credentials("bob", "bob"), HERE)
        assert (await authenticator.sign_in("lenient", Credentials("bob", "bob"), HERE)).provider == "here"


async def test_what_one_of_several_answered_is_not_remembered_beyond_it(tmp_path: Path) -> None:
    """A password that was changed on record is not good by way of a composite either, however long that remembers."""
    told = {"two": {"type": "composite", "providers": [INTERNAL], "cache_seconds": 3600}}
    first, second = (User(name="alice", password_hash=hash_password(word)) for word in ("one", "two"))
    async with providing(**told) as authenticator:
        await authenticator.follow(watch(store_pb2.Records(records=[user_record(first)])))
        await authenticator.sign_in("two", Credentials("alice", "one"), HERE)
        await authenticator.follow(watch(store_pb2.Records(records=[user_record(second)])))
        with pytest.raises(AccessRefused):
            await authenticator.sign_in("two", Credentials("alice", "one"), HERE)
        assert (await authenticator.sign_in("two", Credentials("alice", "two"), HERE)).name == "alice"


async def test_wrong_passwords_count_once_for_several(tmp_path: Path) -> None:
    """However many were asked."""
    told = {"two": {"type": "composite", "providers": [INTERNAL, "here", "here2"]}}
    for name in ("here", "here2"):
        (tmp_path / name).write_text("bob:bob\n")
        told[name] = {"type": "file", "path": str(tmp_path / name), "format": "plain"}
    async with providing(**told) as authenticator:
        for _ in range(9):
            with pytest.raises(AccessRefused, match="check user name"):
                await authenticator.sign_in("two", Credentials("bob", "wrong"), HERE)
        assert (await authenticator.sign_in("two", Credentials("bob", "bob"), HERE)).name == "bob"


@pytest.mark.parametrize("name", ["nowhere", "ldap", "circle", "nested", "misspelt"])
async def test_providers_that_cannot_be_used(name: str) -> None:
    """Let no client in: with an unknown name, without needed options, of an unknown kind."""
    told: dict[str, Any] = {
        "circle": {"type": "composite", "providers": ["circle"]},
        "nested": {"type": "composite", "providers": ["circle"]},
        "misspelt": {"type": "ldpa"},
    }
    async with providing(**told) as authenticator:
        with pytest.raises(Unavailable):
            await authenticator.sign_in(name, Credentials("guest", "guest"), HERE)


async def test_a_provider_that_changes_ends_its_connections() -> None:
    """Changed, removed; the others' stay. What it remembered is gone."""
    told = {"one": {"type": "anonymous"}, "two": {"type": "anonymous"}}
    async with providing(**told) as authenticator:
        for name in told:
            await authenticator.sign_in(name, Anonymous(""), HERE)
        ended: list[tuple[str, str]] = []
        authenticator.close_provider = lambda *about: ended.append(about)
        changed = provider_records(one={"type": "anonymous", "user": "x"}, two={"type": "anonymous"})
        await authenticator.follow(watch(store_pb2.Records(records=changed)))
        assert ended == [("one", "authentication provider 'one' was changed")]
        assert (await authenticator.sign_in("one", Anonymous(""), HERE)).name == "x"
        await authenticator.follow(watch(store_pb2.Records(snapshot=True, last=True, records=changed[1:])))
        assert ended[1:] == [("one", "authentication provider 'one' is removed")]
        with pytest.raises(Unavailable):
            await authenticator.sign_in("one", Anonymous(""), HERE)
    await asyncio.sleep(0)


async def test_an_unknown_name_takes_as_long_as_others_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For unknown names another line's hash is checked: a cheap one would reveal which users are in the file."""
    looked: list[str] = []
    monkeypatch.setattr(file_lines.credentials, "fits", lambda kept, *_: looked.append(kept) or False)
    users = tmp_path / "users"
    users.write_text("anna:$2y$05$of-anna\n")
    async with providing(staff={"type": "file", "path": str(users)}) as authenticator:
        for name in ("anna", "nobody"):
            with pytest.raises(AccessRefused):
                await authenticator.sign_in("staff", Credentials(name, "wrong"), HERE)
    assert looked == ["$2y$05$of-anna"] * 2


async def test_where_there_is_no_other_user(tmp_path: Path) -> None:
    """A gateway listens: users of a provider may sign in, though no user is on record."""
    async with providing(here={"type": "file", "path": str(tmp_path / "users"), "format": "plain"}) as authenticator:
        await asyncio.wait_for(authenticator.until_some_user(), 1)
