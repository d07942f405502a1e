"""From what was recorded to the rows of the tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.ledger.encoding import Sealed
from services.common.ledger.place import LedgerPlace, Peer
from services.common.ledger.row_recorder import RowRecorder
from services.common.ledger.stages import NAMES
from services.common.message import field_table
from services.common.message.amqp_0_9 import FORMAT
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.encode import encode
from services.mgmt.ledger.decode import decode
from services.mgmt.ledger.schema import TABLES
from services.rpc.ledger_pb2 import COPIED, DEAD_LETTERED, RECEIVED, SENT, SETTLED, TAKEN_OVER, Captured, LedgerBatch
from tests.support.ledger_schema import plain

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PLACE = LedgerPlace("/", "ex", "key", "q", 3, 7, "AMQP 0-9-1", "1.1", "app", "tag", "dlx", 2)
# Of three origins, so that rows are split.
UIDS = st.lists(
    st.builds(lambda origin, sequence: (origin << 39) + sequence, st.integers(1, 3), st.integers(1, 30)),
    unique=True,
    min_size=1,
)


def recorded(*rows: dict[str, Any]) -> LedgerBatch:
    sealed: list[Sealed] = []
    recorder = RowRecorder("queue", "queue-1-a", sealed.append)
    for row in rows:
        recorder.record(**row)
    recorder.seal()
    return LedgerBatch.FromString(sealed[0].payload)


def uids_of(row: dict[str, Any], column: str = "uids") -> list[int]:
    return [uid for one in row[column] for uid in range(one["first"], one["last"] + 1)]


@given(st.lists(UIDS, min_size=1))
def test_every_row_has_its_uids_one_row_for_each_origin(rows: list[list[int]]) -> None:
    """What was recorded is filed: rows of several origins are split, share their number and count their bytes once."""
    batch = recorded(*({"stage": SETTLED, "place": PLACE, "uids": uids, "size": 10} for uids in rows))
    filed = decode([batch]).stages.to_pylist()
    for number, uids in enumerate(rows, 1):
        mine = [row for row in filed if row["row"] == number]
        assert sorted(uid for row in mine for uid in uids_of(row)) == sorted(uids)
        assert sorted(row["first_uid"] >> 39 for row in mine) == sorted({uid >> 39 for uid in uids})
        assert sum(row["bytes"] for row in mine) == 10
        for row in mine:
            its = uids_of(row)
            assert its == sorted(its)
            assert (row["count"], row["first_uid"], row["last_uid"]) == (len(its), min(its), max(its))


@pytest.mark.parametrize("stage", [DEAD_LETTERED, COPIED])
@given(uids=UIDS)
def test_successors_follow_their_messages(stage: int, uids: list[int]) -> None:
    """Uid by uid, a message that was dead-lettered or copied finds what it went on as."""
    successors = range(9 << 39, (9 << 39) + len(uids))
    batch = recorded({"stage": stage, "place": PLACE, "uids": uids, "successors": successors})
    pairs = [
        pair
        for row in decode([batch]).stages.to_pylist()
        for pair in zip(uids_of(row), uids_of(row, "successors"), strict=True)
    ]
    assert pairs == list(zip(uids, successors, strict=True))


@given(st.lists(st.one_of(st.none(), UIDS), min_size=1))
def test_rows_of_partitions_have_no_messages(rows: list[list[int] | None]) -> None:
    """What befell a partition is filed wherever it stands among rows of messages: where, when, and no uids."""
    sealed: list[Sealed] = []
    recorder = RowRecorder("queue", "queue-1-a", sealed.append)
    for uids in rows:
        if uids is None:
            recorder.note(TAKEN_OVER, LedgerPlace(partition=3, epoch=7))
        else:
            recorder.record(SETTLED, PLACE, uids)
    recorder.seal()
    filed = decode([LedgerBatch.FromString(sealed[0].payload)]).stages.to_pylist()
    for number, uids in enumerate(rows, 1):
        mine = [row for row in filed if row["row"] == number]
        assert sorted(uid for row in mine for uid in uids_of(row)) == sorted(uids or ())
        if uids is None:
            (row,) = mine
            assert (row["stage"], row["partition"], row["epoch"]) == ("taken_over", 3, 7)
            assert (row["count"], row["first_uid"], row["last_uid"], row["queue"]) == (0, None, None, "")


def test_a_row_says_where_it_was_written() -> None:
    """Every field of the place, outcome and reason arrive in their columns."""
    batch = recorded({"stage": SETTLED, "place": PLACE, "uids": [5], "outcome": "rejected", "reason": "why"})
    table = decode([batch]).stages
    (row,) = table.to_pylist()
    assert {name: row[name] for name in LedgerPlace._fields[:-1]} == dict(
        zip(LedgerPlace._fields, PLACE[:-1], strict=False)
    )
    assert (row["stage"], row["service"], row["instance"]) == ("settled", "queue", "queue-1-a")
    assert (row["outcome"], row["reason"], row["successors"]) == ("rejected", "why", [])
    assert table.cast(plain(TABLES["stages"])).schema == plain(TABLES["stages"])


def test_peers_are_a_table_of_their_own() -> None:
    """User and address of a connection are filed beside the rows, with the instance that says so."""
    place = PLACE._replace(peer=Peer("alice", "10.0.0.1:5000"))
    table = decode([recorded({"stage": SETTLED, "place": place, "uids": [5]})]).connections
    (row,) = table.to_pylist()
    assert row.pop("time").timestamp() > 0
    assert row == {
        "service": "queue", "instance": "queue-1-a", "virtual_host": "/", "protocol": "AMQP 0-9-1",
        "connection": "1.1", "client": "app", "user": "alice", "peer": "10.0.0.1:5000",
    }  # fmt: skip
    assert table.schema == TABLES["connections"]
    assert not len(decode([recorded({"stage": SETTLED, "place": PLACE, "uids": [5]})]).connections)


def test_captured_messages_come_without_rows() -> None:
    """A batch of captured messages has no rows; each is filed with its place, properties and body."""
    place = {"virtual_host": "/", "exchange": "ex", "routing_key": "key", "queue": "q", "connection": "5.1"}
    told = {"uid": 7, "rule": "r", "format": "amqp-0-9", "properties": b"\0\0", "body": b"\xff", "size": 9}
    captured = Captured(time_us=5, stage=SENT, place={**place, "client": "c", "consumer": "t"}, **told)
    found = decode([LedgerBatch(service="gateway", instance="gateway-1", first_row=3, captured=[captured])])
    assert not len(found.stages)
    (row,) = found.payloads.to_pylist()
    assert row.pop("time") == datetime.fromtimestamp(5e-6, UTC)
    by = {"service": "gateway", "instance": "gateway-1", "stage": "sent"}
    assert row == {**by, **place, **told, "client": "c", "consumer": "t"}


def test_all_stages_have_names() -> None:
    """The names are those of the contract, in its order."""
    assert NAMES[RECEIVED] == "received"
    assert NAMES[SETTLED] == "settled"


def identified(properties: list[bytes], uids: list[int]) -> list[dict[str, Any]]:
    batch = recorded({"stage": RECEIVED, "place": PLACE, "uids": uids})
    batch.times_us[0] = 17
    batch.identified.add(format="amqp-0-9", uids=uids, properties=[FORMAT.identifying(each) for each in properties])
    return decode([batch]).ids.to_pylist()


def properties(message_id: bytes = b"", correlation_id: bytes = b"", headers: dict[str, Any] | None = None) -> bytes:
    flags = 0x80 * bool(message_id) | 0x400 * bool(correlation_id) | 0x2000 * (headers is not None)
    parts = [flags.to_bytes(2, "big")]
    if headers is not None:
        parts.append(field_table.encode(headers))
    parts += [bytes((len(each),)) + each for each in (correlation_id, message_id) if each]
    return b"".join(parts)


def test_messages_are_found_by_what_names_them() -> None:
    """Message id, correlation id and the id of the application's trace are filed, for each message."""
    named = properties(b"m", b"c", {"traceparent": TRACE})
    rows = {(row["kind"], row["id"]): row["first_uid"] for row in identified([named, properties(b"n")], [5, 6])}
    assert rows == {
        ("message_id", "m"): 5,
        ("correlation_id", "c"): 5,
        ("trace_id", "0af7651916cd43dd8448eb211c80319c"): 5,
        ("message_id", "n"): 6,
    }


def test_an_id_that_is_not_utf_8() -> None:
    """Is filed with what is not replaced, and the message's other ids as ever."""
    rows = identified([properties(b"m", b"c\xff", {"traceparent": TRACE})], [5])
    assert {row["kind"]: row["id"] for row in rows} == {
        "message_id": "m",
        "correlation_id": "c\ufffd",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
    }


def test_one_id_of_many_messages_is_filed_in_ranges() -> None:
    """Properties that all messages share say their ids once for each range."""
    rows = identified([properties(b"m")], [5, 6, 7, 9])
    assert [(row["id"], row["first_uid"], row["last_uid"]) for row in rows] == [("m", 5, 7), ("m", 9, 9)]


@pytest.mark.parametrize("name", ["message_id", "correlation_id"])
def test_long_properties_are_told_in_part(name: str) -> None:
    """Of properties with long headers only what identifies the message travels, and it is found all the same."""
    long = properties(**{name: b"id"}, headers={"x": "y" * 5000, "traceparent": TRACE})
    assert len(FORMAT.identifying(long)) < 120
    assert {row["kind"] for row in identified([long], [1])} == {name, "trace_id"}


@pytest.mark.parametrize("header", ["", "x" * 3000, "00-" + "0" * 32 + "-0000000000000000-01", b"\xff\xfe", 7])
def test_hostile_trace_headers_name_nothing(header: object) -> None:
    """Anything that is no valid traceparent is no id, and does no harm."""
    assert [row["kind"] for row in identified([properties(b"m", headers={"traceparent": header})], [1])] == [
        "message_id"
    ]


def test_properties_without_names_are_not_told() -> None:
    """Nothing travels for messages that nothing names."""
    assert FORMAT.identifying(properties()) == b""
    assert FORMAT.identifying(properties(headers={"a": 1})) == b""


def test_a_batch_that_contradicts_itself_is_refused() -> None:
    """Columns that do not match are an error, not rows."""
    for batch in (
        LedgerBatch(stages=[1], ranges=[2], firsts=[1], lengths=[1], times_us=[1]),
        LedgerBatch(stages=[99], ranges=[1], firsts=[1], lengths=[1], times_us=[1], place=[4]),
    ):
        with pytest.raises((ValueError, LookupError)):
            decode([batch])


def test_an_id_that_is_too_long_to_be_asked_for() -> None:
    """Is not on record, and the message's other ids are; of a full length is."""
    ids = [("x" * 1025, "short"), ("\N{PILE OF POO}" * 1024, "y" * 5000)]
    batch = recorded({"stage": RECEIVED, "place": PLACE, "uids": [5, 6]})
    properties = [
        encode(v.Described(v.ULong(0x73), [message_id, None, None, None, None, other])) for message_id, other in ids
    ]
    batch.identified.add(format="amqp-1-0", uids=[5, 6], properties=properties)
    rows = sorted((row["first_uid"], row["id"]) for row in decode([batch]).ids.to_pylist())
    assert rows == [(5, "short"), (6, ids[1][0])]
