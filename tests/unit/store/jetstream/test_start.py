"""What is wrong with the servers is said in a line at the start; what is secret of them is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from nats.js.api import StreamConfig

from services.common.errors import InternalError
from services.store.provider import Changes
from services.store.providers.jetstream import JetStreamProvider
from services.store.providers.jetstream_link import JetStreamLink
from services.store.providers.jetstream_url import parse
from tests.support.certificates import Authority
from tests.support.jetstream import Servers, alone
from tests.support.nats_jwt import Operator
from tests.support.written_groups import alive, group
from tests.support.written_stream import reopened

SECRET = "tell-nobody"


async def refused(url: str) -> str:
    """Why it cannot be opened: one line."""
    provider = JetStreamProvider(Path(), url)
    with pytest.raises(InternalError) as error:
        await provider.open()
    await provider.close()
    text = error.value.text
    assert "\n" not in text
    assert SECRET not in text
    return text


def with_user(url: str, user: str) -> str:
    return url.replace("nats://", f"nats://{user}@")


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait for long."""
    monkeypatch.setattr("services.store.providers.jetstream_link._CONNECT_SECONDS", 3.0)
    monkeypatch.setattr("services.store.providers.jetstream_writer._STARTING_SECONDS", 0.5)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Servers]:
    """They want a password."""
    with alone(f'authorization {{ users: [{{ user: hopline, password: "{SECRET}" }}] }}') as running:
        yield running


def test_without_a_url() -> None:
    """It is said what is missing."""
    with pytest.raises(InternalError, match="wants HOPLINE_STORE_URL=nats://host/stream"):
        JetStreamProvider(Path())


async def test_nobody_listens(hasty: None) -> None:
    """It is said where, and that nothing answers there."""
    text = await refused(f"nats://hopline:{SECRET}@127.0.0.1:1/x")
    assert text == "cannot use nats://hopline@127.0.0.1:1/x: connection refused: does it run?"


async def test_no_such_machine(hasty: None) -> None:
    """An unknown host name is reported as such."""
    assert "cannot use nats://nowhere.invalid:4222/x: " in await refused("nats://nowhere.invalid/x")


async def test_one_of_several(url: str) -> None:
    """A URL may have several: whichever is there serves."""
    provider = await reopened(url.replace("127.0.0.1", "127.0.0.1:1,127.0.0.1"))
    await provider.commit(Changes(origin=3))
    assert await provider.last_origin() == 3
    await provider.close()


async def test_a_password_from_a_file(guarded: Servers, tmp_path: Path) -> None:
    """The right one lets in; a wrong one, or none, is refused at once."""
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text(f"{SECRET}\n")
    wrong.write_text("guess")
    provider = await reopened(with_user(guarded.url("S", f"?passfile={right}"), "hopline"))
    await provider.commit(group(1))
    await provider.close()
    for url in (
        with_user(guarded.url("S", f"?passfile={wrong}"), "hopline"),
        with_user(guarded.url("S"), f"hopline:{SECRET}s"),
        guarded.url("S"),
    ):
        assert "it refuses these credentials" in await refused(url)
    missing = with_user(guarded.url("S", "?passfile=/nowhere/secret"), "hopline")
    assert "No such file or directory: '/nowhere/secret'" in await refused(missing)


async def test_a_file_that_is_no_text(url: str, tmp_path: Path) -> None:
    """It is said, and nothing of what is in it."""
    path = tmp_path / "binary"
    path.write_bytes(b"\xff" + SECRET.encode())
    for option in ("passfile", "tokenfile"):
        text = await refused(with_user(f"{url}?{option}={path}", "hopline"))
        assert "one of the files that HOPLINE_STORE_URL names is no text" in text


async def test_what_a_user_may_not(hasty: None) -> None:
    """Each kind of refusal is named, and is not reported as a missing answer."""
    may = '"$JS.API.>", "hopline.store-writer.>", "_INBOX.>"'
    with alone(
        f"authorization {{ users: [{{ user: u, password: p, permissions: {{ publish: [{may}] }} }}] }}"
    ) as servers:
        assert 'permissions violation for publish to "hopline.store.' in await refused(with_user(servers.url(), "u:p"))


async def test_credentials_in_a_file(tmp_path: Path, hasty: None) -> None:
    """As operators give them out; those of another operator are refused."""
    ours, others = Operator(), Operator()
    with alone(ours.configuration) as servers:
        provider = await reopened(servers.url("S", f"?creds={ours.user(tmp_path / 'ours')}"))
        await provider.commit(group(1))
        await provider.close()
        text = await refused(servers.url("S", f"?creds={others.user(tmp_path / 'others')}"))
        assert "it refuses these credentials" in text


async def test_tls(tmp_path: Path, hasty: None) -> None:
    """With the certificate that proves the server, and the store's own where they want one."""
    authority, others = Authority(tmp_path), Authority(tmp_path, "Others")
    server, client = authority.sign("server", ["localhost"]), authority.sign("store")
    files = f'cert_file: "{server}", key_file: "{server}", ca_file: "{authority.path}"'
    with alone(f"tls {{ {files}, verify: true }}") as servers:
        url = servers.url("S").replace("127.0.0.1", "localhost")
        right, wrong = f"{url}?tls_ca={authority.path}", f"{url}?tls_ca={others.path}"
        provider = await reopened(f"{right}&tls_cert={client}")
        await provider.commit(group(1))
        await provider.close()
        assert "its certificate is not accepted" in await refused(f"{wrong}&tls_cert={client}")
        for without in (right, url):
            await refused(without)


async def test_without_jetstream(hasty: None) -> None:
    """Servers that keep nothing are not used."""
    with alone() as servers:
        servers.each[0].kill()
        path = servers.each[0]._file
        path.write_text("\n".join(line for line in path.read_text().splitlines() if "jetstream" not in line))
        servers.start()
        assert "it has no JetStream, or not for this user" in await refused(servers.url())


async def test_replicas_without_a_cluster(nats: Servers) -> None:
    """More copies than there are servers are refused in the words of the server."""
    assert "replicas > 1 not supported in non-clustered mode" in await refused(nats.url("", "?replicas=3"))


async def test_a_server_that_is_too_old(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said which would do."""
    monkeypatch.setattr("services.store.providers.jetstream_link._OLDEST", (99, 1))
    assert "is too old, 99.1 is the first that does" in await refused(url)


async def test_a_stream_of_others(nats: Servers, url: str) -> None:
    """One that has other subjects is not written to."""
    link = await JetStreamLink.connect(parse(url))
    await link._jetstream.add_stream(StreamConfig(name=parse(url).stream, subjects=[f"other{parse(url).stream}.>"]))
    await link.close()
    assert "the stream is not one of a store" in await refused(url)


async def test_a_stream_that_was_emptied(url: str) -> None:
    """A deleted store is not taken for a new one."""
    provider = await reopened(url)
    await provider.commit(group(1))
    await provider.close()
    link = await JetStreamLink.connect(parse(url))
    await link.purge(f"{link.prefix}.>")
    await link.close()
    assert "the stream had a store, and has none any more: were its messages deleted?" in await refused(url)


async def test_two_in_one_place(nats: Servers) -> None:
    """Streams of different names are different stores."""
    one, two = await reopened(nats.url("orders")), await reopened(nats.url("ORDERS-2"))
    await one.commit(group(1))
    await two.commit(group(2))
    assert (list(await alive(one)), list(await alive(two))) == ([1], [2])
    await one.close()
    await two.close()
