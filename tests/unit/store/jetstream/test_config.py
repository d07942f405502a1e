"""A stream that others have made, or edit, is used only while it keeps all that it has confirmed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from nats.js.api import (
    DiscardPolicy,
    PersistMode,
    RetentionPolicy,
    StorageType,
    StreamSource,
    SubjectTransform,
)

from services.store.providers.jetstream import JetStreamProvider
from services.store.providers.jetstream_config import fault, wanted
from services.store.providers.jetstream_link import JetStreamLink
from services.store.providers.standing import Away
from tests.support.written_groups import alive, commit, group

WANTED = wanted("S", "hopline.store.S.>")
LARGEST = 128 << 10


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"subjects": ["other.>"]}, "its subjects are others"),
        ({"storage": StorageType.MEMORY}, "its storage are others"),
        ({"discard": DiscardPolicy.OLD}, "its discard are others"),
        ({"retention": RetentionPolicy.WORK_QUEUE}, "its retention are others"),
        ({"allow_direct": False}, "its allow_direct are others"),
        ({"max_age": 60.0}, "by max_age"),
        ({"max_msgs": 1}, "by max_msgs"),
        ({"max_msgs_per_subject": 1}, "by max_msgs_per_subject"),
        ({"no_ack": True}, "it has no_ack"),
        ({"sealed": True}, "it has sealed"),
        ({"deny_purge": True}, "it has deny_purge"),
        ({"mirror": StreamSource("other")}, "it has mirror"),
        ({"sources": [StreamSource("other")]}, "it has sources"),
        ({"subject_transform": SubjectTransform("a", "b")}, "it has subject_transform"),
        ({"persist_mode": PersistMode.ASYNC}, "confirms what is not on disk"),
        ({"max_msg_size": LARGEST - 1}, f"its max_msg_size is {LARGEST - 1}, and must be {LARGEST} at least"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_what_a_store_cannot_have(edit: dict[str, Any], words: str) -> None:
    """It is named."""
    assert words in fault(WANTED.evolve(**edit), WANTED, LARGEST)


@pytest.mark.parametrize(
    "edit",
    [{}, {"num_replicas": 3}, {"max_bytes": 1 << 30}, {"max_msg_size": LARGEST}, {"deny_delete": True}],
    ids=str,
)
def test_what_it_can(edit: dict[str, Any]) -> None:
    """Copies, room, and what takes nothing away are the operator's."""
    assert not fault(WANTED.evolve(**edit), WANTED, LARGEST)


async def edit(provider: JetStreamProvider, max_age: float) -> None:
    """As `nats stream edit` does."""
    link = await JetStreamLink.connect(provider._writer._url)
    found = await link._jetstream.stream_info(link._stream)
    await link._jetstream.update_stream(found.config.evolve(max_age=max_age))
    await link.close()


async def told(provider: JetStreamProvider) -> None:
    """The stream was edited."""
    async with asyncio.timeout(20):
        while "it lets go of messages, by max_age" not in provider.trouble():
            await asyncio.sleep(0.01)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks often."""
    for name, seconds in (("_LOOK_SECONDS", 0.01), ("_PING_SECONDS", 0.0), ("_BUSY_SECONDS", 0.1)):
        monkeypatch.setattr(f"services.store.providers.jetstream_writer.{name}", seconds)


async def test_edited_while_it_runs(looks: None, provider: JetStreamProvider) -> None:
    """It is found out without a commit, and shown; nothing is confirmed until it is undone."""
    await provider.commit(group(1))
    await edit(provider, 3600.0)
    await told(provider)
    with pytest.raises(Away, match="by max_age") as refused:
        await provider.commit(group(2))
    assert "nats stream edit" in refused.value.do
    await edit(provider, 0)
    await commit(provider, group(2))
    assert list(await alive(provider)) == [1, 2]
    assert not provider.trouble()


async def test_edited_under_commits(looks: None, provider: JetStreamProvider) -> None:
    """Many of them do not put that off for ever."""

    async def many(first: int) -> None:
        for number in range(first, first + 100_000):
            await provider.commit(group(number))

    writing = asyncio.gather(many(1), many(200_000), return_exceptions=True)
    await asyncio.sleep(0.05)
    await edit(provider, 3600.0)
    await told(provider)
    assert all(isinstance(failure, Away) for failure in await writing)
