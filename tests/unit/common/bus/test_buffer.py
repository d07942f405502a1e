from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.common.bus.buffer import Buffer
from services.common.bus.facts import Gap


def test_oldest_goes_first() -> None:
    """A full buffer keeps the newest, and says which are gone."""
    buffer: Buffer[int] = Buffer(2)
    for item in range(1, 5):
        buffer.append(item)
    assert buffer.take(10) == (3, [3, 4], Gap(first=1, last=2, count=2))
    assert buffer.missed == 2


@given(st.lists(st.sampled_from(["append", "sent", "failed"]), max_size=200), st.integers(1, 5), st.integers(1, 5))
def test_every_item_is_accounted_for(steps: list[str], capacity: int, most: int) -> None:
    """With failures at any time, sequences that were sent and gaps that were told make one range, once."""
    buffer: Buffer[int] = Buffer(capacity)
    appended, account = 0, []
    for step in [*steps, "append", *["sent"] * 5]:
        if step == "append":
            appended += 1
            buffer.append(appended)
        elif buffer:
            batch = buffer.take(most)
            if step == "failed":
                buffer.failed(batch)
                continue
            if batch.gap:
                assert batch.gap.count == batch.gap.last - batch.gap.first + 1
                account += range(batch.gap.first, batch.gap.last + 1)
            assert batch.items[0] == batch.first
            account += batch.items
            buffer.sent(batch)
    assert account == list(range(1, appended + 1))


@given(st.integers(0, 20), st.integers(0, 20))
def test_items_that_come_while_a_batch_is_out(before: int, meanwhile: int) -> None:
    """What is pushed out while a batch is on its way is told with the next one."""
    buffer: Buffer[int] = Buffer(5)
    for item in range(1, before + 1):
        buffer.append(item)
    batch = buffer.take(3)
    for item in range(before + 1, before + meanwhile + 1):
        buffer.append(item)
    buffer.sent(batch)
    told = len(batch.items) + (batch.gap.count if batch.gap else 0)
    following = buffer.take(100)
    assert told + (following.gap.count if following.gap else 0) + len(following.items) == before + meanwhile
