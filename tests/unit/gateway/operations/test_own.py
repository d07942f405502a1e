"""What a connection publishes while a consumer of its own does not want that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.gateway import vocabulary as v
from services.gateway.operations import own
from tests.support.messages import facts, kind, published
from tests.support.published import Client, ScriptedRouter


@given(st.lists(st.integers(0, 2)), st.sets(st.integers(0, 2)))
def test_each_by_itself(columns: list[int], queues: set[int]) -> None:
    """Each is what it was but for that, and equal ones are one object, though they were several."""
    its = [facts(priority=each) for each in columns]
    told = own.told(its, "1.1")
    assert [each._replace(publisher="") for each in told] == its
    assert {each.publisher for each in told} <= {"1.1"}
    targets = [tuple(range(each + 1)) for each in columns]
    spared = own.spared(targets, queues)
    assert [set(each) for each in spared] == [set(each) - queues for each in targets]
    for column in (told, spared):
        assert len(set(map(id, column))) <= len(set(columns))


async def test_messages_with_their_publisher() -> None:
    """The publisher of a message, where its connection asks for that; else none."""
    client = Client()
    await client.does(published([b"a"], kind()))
    client.tells_publisher = True
    await client.does(published([b"b", b"c"], kind(), kind("", "other")))
    assert [each.publisher for messages in client.handed.messages for each in messages.facts] == ["", "1.1", "1.1"]


async def test_messages_without_their_publisher() -> None:
    """A queue that is there for such a consumer alone: what would have gone there only has no queue, and comes back."""
    client = Client(ScriptedRouter({"both": (1, 2), "own": (2,)}))
    client.spares = frozenset({2})
    kinds = [kind("", key, mandatory=True) for key in ("both", "own")]
    await client.does(v.Publish(1, kinds, [b"\x00\x00"] * 2, [b"a", b"b"]))
    assert [list(each.targets) for each in client.handed.messages] == [[(1,)]]
    [returned] = client.back
    assert [returned.publish.bodies[index] for index in returned.indexes] == [b"b"]
