"""The two halves of a store: each is known by the other, and none is taken for a whole one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.common.config import Settings
from services.common.errors import InternalError
from services.store.choice import Choice, choose, with_configuration
from services.store.engine import Engine
from services.store.folder import DataFolder
from services.store.moving.mark import KEY, KIND, Mark, mark_in
from services.store.provider import Changes
from services.store.providers.apart import Apart
from services.store.providers.sqlite import SQLiteProvider
from tests.support.apart import QUEUE, Crash, fail, made, refused, reopened, two
from tests.support.store_house import TTL_MS, Ticking


@pytest.mark.parametrize("half", ["messages", "configuration"])
async def test_a_crash_while_they_are_joined(tmp_path: Path, half: str) -> None:
    """The next start goes on with the mark that is missing."""
    provider = await reopened(tmp_path)
    fail(getattr(provider, half))
    with pytest.raises(Crash):
        await provider.begin_incarnation()
    await provider.close()
    again = await reopened(tmp_path)
    assert await again.begin_incarnation() == 1
    marks = [mark_in(await each.provider.records()) for each in (again.messages, again.configuration)]
    assert [mark.holds for mark in marks if mark] == ["messages", "configuration"]
    assert len({mark.pair for mark in marks if mark}) == 1
    await again.close()


async def test_nothing_is_written_by_opening(tmp_path: Path) -> None:
    """Two that were opened by mistake are as empty as before."""
    provider = await reopened(tmp_path)
    assert await provider.messages.provider.records() == await provider.configuration.provider.records() == []
    await provider.close()


@pytest.mark.parametrize(("folder", "holds"), [(".", "messages"), ("configuration", "configuration")])
async def test_a_half_is_not_served(tmp_path: Path, folder: str, holds: str) -> None:
    """Without the setting the store does not start on it, and says which."""
    provider = await reopened(tmp_path)
    await provider.begin_incarnation()
    await provider.close()
    with pytest.raises(InternalError, match=f"only the {holds} of a store.*HOPLINE_STORE_CONFIGURATION_URL"):
        await Engine(SQLiteProvider(tmp_path / folder), TTL_MS, Ticking(), lambda _: None).start()


async def test_a_former_release_refuses_a_half(tmp_path: Path) -> None:
    """It reads of the mark what it knows: that the store is not whole."""
    provider = await reopened(tmp_path)
    await provider.begin_incarnation()
    for half in (provider.messages, provider.configuration):
        (row,) = await half.provider.records()
        assert (row.kind, row.key) == (KIND, KEY)
        assert "elsewhere (HOPLINE_STORE_CONFIGURATION_URL)" in json.loads(row.value)["source"]
    await provider.close()


async def test_a_whole_store_is_no_half(tmp_path: Path) -> None:
    """Where the setting is added to one that has run, it says what to do."""
    await made(tmp_path, SQLiteProvider)
    assert "has a whole store" in (said := await refused(tmp_path))
    assert "hopline store copy" in said


async def test_two_of_two_stores(tmp_path: Path) -> None:
    """Are named, and where each belongs."""
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        DataFolder(folder).make()
    await made(one, two)
    await made(other, two)
    (other / "configuration").rename(tmp_path / "aside")
    (one / "configuration").rename(other / "configuration")
    said = await refused(other)
    assert "are of two stores" in said
    assert f"sqlite:{one}" in said
    assert f"sqlite:{other}/configuration" in said


async def test_exchanged(tmp_path: Path) -> None:
    """Configuration where messages are to be is named."""
    await made(tmp_path, two)
    (tmp_path / "configuration" / "hopline.db").rename(tmp_path / "aside")
    (tmp_path / "hopline.db").rename(tmp_path / "configuration" / "hopline.db")
    (tmp_path / "aside").rename(tmp_path / "hopline.db")
    assert "is to be for the messages, and has the configuration of a store" in await refused(tmp_path)


@pytest.mark.parametrize(("lost", "kept"), [(".", "configuration"), ("configuration", "messages")])
async def test_one_of_them_is_lost(tmp_path: Path, lost: str, kept: str) -> None:
    """A store does not start with an empty one in its place: it would show queues without messages, or none."""
    await made(tmp_path, two)
    (tmp_path / lost / "hopline.db").unlink()
    said = await refused(tmp_path)
    assert f"the {kept} in sqlite:" in said
    assert "has nothing of it" in said
    assert "backup" in said


async def test_a_store_that_was_not_opened_can_be_closed(tmp_path: Path) -> None:
    """As whoever starts it does when one half is refused before the other was opened."""
    await two(tmp_path).close()


async def test_messages_in_memory(tmp_path: Path) -> None:
    """Configuration outlives the process; each start has other messages, and nothing is missed."""
    chosen = with_configuration(Choice("memory"), "sqlite:", "it")
    await made(tmp_path, chosen.make)
    again = chosen.make(tmp_path)
    await again.open()
    assert (await again.records(), await again.leases()) == ([QUEUE], [])
    await again.begin_incarnation()
    await again.close()
    await made(tmp_path, chosen.make)


async def test_configuration_beside_memory_is_not_served(tmp_path: Path) -> None:
    """By itself, nor with messages elsewhere, and it is said where they were."""
    await made(tmp_path, with_configuration(Choice("memory"), "sqlite:", "it").make)
    with pytest.raises(InternalError, match="only the configuration of a store, and the rest is in memory:"):
        await Engine(SQLiteProvider(tmp_path / "configuration"), TTL_MS, Ticking(), lambda _: None).start()
    assert "belongs to what was in memory:" in await refused(tmp_path)


async def test_memory_beside_what_has_messages(tmp_path: Path) -> None:
    """A whole store is no configuration, nor is one whose messages are elsewhere: they would have no queues."""
    beside = with_configuration(Choice("memory"), "sqlite:", "it")
    whole, joined = tmp_path / "whole", tmp_path / "joined"
    for folder in (whole, joined):
        DataFolder(folder).make()
    DataFolder(whole / "configuration").make()
    await made(whole / "configuration", SQLiteProvider)
    await made(joined, two)
    with pytest.raises(InternalError, match="has a whole store"):
        await beside.make(whole).open()
    with pytest.raises(InternalError, match=r"belongs to what was in sqlite:.*, and memory:.* has nothing of it"):
        await beside.make(joined).open()


async def test_the_mark_of_a_move_is_that_of_both(apart: Any) -> None:
    """It is written and read as in any provider, beside the mark of each half."""
    mark = Mark(source="a file", pieces=3)
    await apart.commit(Changes(records={(KIND, KEY): mark.row()}))
    assert mark_in(await apart.records()) == mark
    held = mark_in(await apart.configuration.provider.records())
    assert held is not None
    assert held.holds == "configuration"
    await apart.commit(Changes(records={(KIND, KEY): None}))
    assert await apart.records() == []


_PG = "postgresql://hopline:tell-nobody@db.example/hopline"


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"store_configuration_url": _PG}, "postgres+sqlite"),
        ({"store_configuration_url": "sqlite:", "store_url": "nats://n1/S"}, "sqlite+jetstream"),
        ({"store_configuration_url": "nats://n1/C", "store_url": "nats://n1/S"}, "jetstream+jetstream"),
        ({"store_configuration_url": "sqlite:", "store_provider": "memory"}, "sqlite+memory"),
    ],
)
def test_by_settings(settings: dict[str, Any], shown: str, tmp_path: Path) -> None:
    """Any two; nothing of what may be a secret is shown."""
    chosen = choose(Settings(**settings))
    assert chosen.shown == shown
    assert isinstance(chosen.make(tmp_path), Apart)
    assert "tell-nobody" not in chosen.place(tmp_path)


@pytest.mark.parametrize("url", ["mysql://root:tell-nobody@db/x", "sqlite://somewhere", "memory:"])
def test_no_url_of_a_configuration(url: str) -> None:
    """It is said which setting, and which there are."""
    with pytest.raises(InternalError, match=r"HOPLINE_STORE_CONFIGURATION_URL is no URL.*or sqlite:") as found:
        choose(Settings(store_configuration_url=url))
    assert "tell-nobody" not in found.value.text


def test_both_in_one_place() -> None:
    """That is no two."""
    with pytest.raises(InternalError, match="HOPLINE_STORE_CONFIGURATION_URL is where the messages are"):
        choose(Settings(store_configuration_url=_PG, store_url=_PG))
