"""Bodies that their publisher has kept do not go back to it; all others do, and all go to everybody else."""

from __future__ import annotations

import pytest

from services.common.budget import Budget
from services.queue.links import peers_bodies
from services.queue.links.peers_bodies import PeersBodies
from services.queue.machine.deliveries import Columns
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is forgotten soon."""
    monkeypatch.setattr(peers_bodies, "_SECONDS", 0.05)


def _named(link: RawLink) -> list[int]:
    """The uids of deliveries without a body."""
    return [frame.deliveries.uids[index] for frame in link.frames for index in frame.deliveries.kept]


def _forgotten(link: RawLink) -> list[int]:
    return [uid for frame in link.frames for uid in frame.forgotten]


async def test_named_where_it_is_there(house: House) -> None:
    """In their order among others, each once: nothing more is said of those that were delivered."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.publish(queue_id, [b"1", b"2"], kept=True)
    await link.publish(queue_id, [b"3"])
    await link.publish(queue_id, [b"4"], kept=True)
    await link.attach(queue_id)
    await link.until(lambda: len(link.uids) == 4)
    first, second, _, fourth = link.uids
    assert (_named(link), link.bodies) == ([first, second, fourth], [b"3"])
    assert not _forgotten(link)


async def test_what_comes_back_is_sent(house: House) -> None:
    """It was named once, and is not there any more when its consumer has given it back."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.attach(queue_id)
    await link.publish(queue_id, [b"1"], kept=True)
    await link.until(lambda: link.uids)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=link.uids)])
    await link.until(lambda: len(link.uids) == 2)
    assert (_named(link), link.bodies) == (link.uids[:1], [b"1"])


async def test_in_several_queues(house: House) -> None:
    """A message of which two queues deliver a copy to its publisher is named by one of them, and sent by the other."""
    queue_ids = [await house.declare("q"), await house.declare("r")]
    link = await house.link()
    for number, queue_id in enumerate(queue_ids, 1):
        await link.attach(queue_id, number)
    await link.publish(queue_ids, [b"1"], kept=True)
    await link.until(lambda: len(link.uids) == 2)
    assert (_named(link), link.bodies) == (link.uids[:1], [b"1"])


@pytest.mark.usefixtures("soon")
async def test_others_are_sent_everything(house: House) -> None:
    """A consumer elsewhere gets the body; its publisher hears that it will not be asked for it."""
    queue_id = await house.declare("q")
    publisher, other = await house.link(), await house.link(origin=2000)
    await other.attach(queue_id)
    await publisher.publish(queue_id, [b"1", b"2"], kept=True)
    await other.until(lambda: other.bodies == [b"1", b"2"])
    await publisher.until(lambda: _forgotten(publisher) == other.uids)
    assert not _named(other)
    assert not _forgotten(other)


@pytest.mark.usefixtures("soon")
async def test_what_waits_long_is_sent(house: House) -> None:
    """What no consumer takes for a while is forgotten, each once, and sent with its body when one comes."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.publish(queue_id, [b"1", b"2"], kept=True)
    await link.publish(queue_id, [b"3"], kept=True)
    await link.until(lambda: len(_forgotten(link)) == 3)
    await link.attach(queue_id)
    await link.until(lambda: len(link.uids) == 3)
    assert (_forgotten(link), _named(link), link.bodies) == (link.uids, [], [b"1", b"2", b"3"])


async def test_another_stream_knows_nothing(house: House) -> None:
    """Of the same publisher: what it kept ended with the stream on which it had said so."""
    queue_id = await house.declare("q")
    former = await house.link()
    await former.publish(queue_id, [b"1"], kept=True)
    await former.close()
    later = await house.link(number=2)
    await later.attach(queue_id)
    await later.until(lambda: later.uids)
    assert (_named(later), later.bodies) == ([], [b"1"])


@pytest.mark.usefixtures("soon")
async def test_all_links_share_the_room(house: House) -> None:
    """What does not fit is forgotten at once, and sent; what is over makes room for others' bodies."""
    queue_id = await house.declare("q")
    room = house.queues["queue-1"]._host.peers_bodies
    room.most = 3
    first, second = await house.link(), await house.link(origin=2000)
    await first.publish(queue_id, [b"1", b"2"], kept=True)
    await second.publish(queue_id, [b"3", b"4"], kept=True)
    assert (len(_forgotten(second)), room.used) == (2, 2)
    await first.until(lambda: len(_forgotten(first)) == 2)
    assert room.used == 0
    await second.publish(queue_id, [b"5", b"6"], kept=True)
    await second.attach(queue_id)
    await second.until(lambda: len(second.uids) == 6)
    assert (_named(second), second.bodies) == (second.uids[4:], [b"1", b"2", b"3", b"4"])
    assert room.used == 0


async def test_a_stream_that_ends_makes_room(house: House) -> None:
    """Whatever of its bodies no one has taken."""
    queue_id = await house.declare("q")
    room = house.queues["queue-1"]._host.peers_bodies
    link, other = await house.link(), await house.link(origin=2000)
    await link.publish(queue_id, [b"1", b"2"], kept=True)
    assert room.used == 2
    await link.close()
    await other.until(lambda: not room.used)


async def test_a_process_says_that_it_names_them(house: House) -> None:
    """In its first frame, and in no other."""
    queue_id = await house.declare("q")
    link = await house.link()
    for _ in range(2):
        await link.publish(queue_id, [b"1"])
    said = [frame.names_kept for frame in link.frames]
    assert said == [True] + [False] * (len(said) - 1)


async def test_deliveries_of_other_messages_stay_as_they_are() -> None:
    """However many there are: nothing is asked of each while bodies are kept that are none of theirs."""
    peers = PeersBodies(lambda _: None, Budget(100))
    peers.came(pb.PublishBatch(uids=[1], kept=True), [b"large"])
    piece, batch = Columns([2, 3], [], [], [b"2", b"3"], []), pb.DeliveryBatch()
    assert peers.named(piece, batch) is piece.bodies
    assert not batch.kept
    peers.close()


@pytest.mark.parametrize(("uids", "bodies"), [([2, 2], [b"b", b"c"]), ([1], [b"b"]), ([2, 3], [b"b"]), ([2], [])])
async def test_a_peer_that_contradicts_itself(uids: list[int], bodies: list[bytes]) -> None:
    """What it says to keep twice, or without a body, takes nothing of the room that is all peers', and is not named."""
    forgotten, room = list[int](), Budget(100)
    peers = PeersBodies(forgotten.extend, room)
    peers.came(pb.PublishBatch(uids=[1], kept=True), [b"large"])
    peers.came(pb.PublishBatch(uids=uids, kept=True), bodies)
    assert (forgotten, room.used) == (uids, 5)
    peers.close()
    peers.came(pb.PublishBatch(uids=[4], kept=True), [b"late"])
    assert room.used == 0
