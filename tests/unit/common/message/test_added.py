"""Annotations that receivers add to messages (AMQP 1.0, part 3, 3.4.5), in either format, and as others get them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import NotAllowed, ResourceError, SyntaxFault
from services.common.message import delayed, field_table, format_named
from services.common.message.amqp_0_9.identities import TRACE_NAMES
from services.common.message.amqp_1_0 import added, composite
from services.common.message.amqp_1_0.decode import decode, decode_at
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.sections import (
    APPLICATION_PROPERTIES,
    MESSAGE_ANNOTATIONS,
    Header,
    Properties,
    sections,
)
from services.common.message.amqp_1_0.values import Described, Symbol, UInt, ULong
from services.common.message.broker_names import BROKER_NAMES
from services.common.message.facts import Facts
from services.gateway.protocols.amqp_0_9 import counted
from services.gateway.protocols.amqp_0_9.foreign import native
from services.gateway.protocols.amqp_1_0.delivered import delivered
from services.queue.machine import dead_letter
from services.queue.machine.features import keys
from tests.support.messages import PROPERTIES

OLD, NEW = Facts("/", "", "q", "amqp-0-9"), Facts("/", "", "q", "amqp-1-0")
AMQP_0_9, AMQP_1_0 = format_named(OLD.format), format_named(NEW.format)

names = st.sampled_from(["x-opt-a", "x-opt-b", "x-c", "plain"]).map(Symbol)
values = st.one_of(
    st.text(max_size=9),
    st.booleans(),
    st.none(),
    st.binary(max_size=9),
    st.integers(0, 9).map(UInt),
    st.lists(st.text()),
)
maps = st.dictionaries(names, values, min_size=1, max_size=4)


def section(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))


def map_in(properties: bytes, code: int) -> dict[Any, Any]:
    """A section's map, empty where there is none."""
    found = {each.code: each.value for each in sections(properties)}
    value: dict[Any, Any] = decode_at(properties, found[code])[0] if code in found else {}
    return value


def received(facts: Facts, properties: bytes) -> dict[Any, Any]:
    """The message annotations that a receiver of AMQP 1.0 is sent."""
    return map_in(delivered(facts, properties, b"", attempts=0)[0], MESSAGE_ANNOTATIONS)


@given(own=maps, said=st.lists(maps, max_size=5), old=st.booleans())
def test_as_a_dictionary_does(own: dict[Any, Any], said: list[dict[Any, Any]], old: bool) -> None:
    """Section 3.4.5: they are merged into the message's own, key by key, in the order in which they are said."""
    facts, its = (OLD, AMQP_0_9) if old else (NEW, AMQP_1_0)
    expected: dict[Any, Any] = {} if old else dict(own)
    properties = PROPERTIES if old else section(MESSAGE_ANNOTATIONS, own)
    for each in said:
        properties = its.with_annotations(properties, added.written(each))
        expected.update(each)
    assert received(facts, properties) == expected


@given(first=maps, then=maps, last=maps)
def test_what_is_noted_is_the_same(first: dict[Any, Any], then: dict[Any, Any], last: dict[Any, Any]) -> None:
    """Said one after the other, or together: the journal has all of it in one note."""
    one, two, three = map(added.written, (first, then, last))
    for its in (AMQP_0_9, AMQP_1_0):
        apart = its.with_annotations(its.with_annotations(its.with_annotations(_empty(its), one), two), three)
        together = added.with_both(added.with_both(added.with_both(b"", one), two), three)
        facts = OLD if its is AMQP_0_9 else NEW
        assert received(facts, its.with_annotations(_empty(its), together)) == received(facts, apart)
        assert received(facts, its.with_annotations(apart, together)) == received(facts, apart)


def _empty(its: Any) -> bytes:
    return PROPERTIES if its is AMQP_0_9 else b""


def test_all_else_stays() -> None:
    """Of a message of AMQP 1.0 no other section changes, nor do its other annotations."""
    before = composite.write(Header(durable=True))
    behind = composite.write(Properties("id")) + section(APPLICATION_PROPERTIES, {"n": UInt(1)})
    annotations = section(MESSAGE_ANNOTATIONS, {Symbol("x-opt-a"): UInt(1), Symbol("x-opt-b"): "b"})
    said = added.written({Symbol("x-opt-a"): "news"})
    merged = section(MESSAGE_ANNOTATIONS, {Symbol("x-opt-a"): "news", Symbol("x-opt-b"): "b"})
    assert AMQP_1_0.with_annotations(before + annotations + behind, said) == before + merged + behind
    news = section(MESSAGE_ANNOTATIONS, {Symbol("x-opt-a"): "news"})
    assert AMQP_1_0.with_annotations(before + behind, said) == before + news + behind


def test_a_message_of_0_9_1() -> None:
    """Its headers stay as they were written, and are no annotations: it has these in a header of the broker's."""
    headers = field_table.encode({"x-theirs": 1, "n": 2})
    properties = b"\x20\x00" + headers
    said = added.written({Symbol("x-why"): "late", Symbol("x-theirs"): "other", Symbol("kept"): True})
    changed = AMQP_0_9.with_annotations(properties, said)
    assert changed[6 : 2 + len(headers)] == headers[4:]
    shown = dict(AMQP_0_9.headers(changed))
    assert decode(shown.pop(added.HEADER))[0] == {"x-why": "late", "x-theirs": "other", "kept": True}
    assert shown == {"x-theirs": 1, "n": 2, "x-why": "late"}
    its = delivered(OLD, changed, b"", attempts=0)[0]
    assert map_in(its, MESSAGE_ANNOTATIONS) == {"x-why": "late", "x-theirs": "other", "kept": True}
    assert map_in(its, APPLICATION_PROPERTIES) == {"x-theirs": 1, "n": 2}
    again = AMQP_0_9.with_annotations(changed, added.written({Symbol("x-why"): "later"}))
    assert AMQP_0_9.headers(again)["x-why"] == "later"
    assert AMQP_0_9.headers(again)["x-theirs"] == 1


def test_what_receivers_of_0_9_1_have() -> None:
    """Of a message of AMQP 1.0 those annotations are headers whose names begin with "x-", as of any such message."""
    said = added.written({Symbol("x-why"): "late", Symbol("kept"): True})
    [properties], _ = native([NEW], [AMQP_1_0.with_annotations(b"", said)], [section(0x75, b"")])
    assert AMQP_0_9.headers(properties) == {"x-why": "late"}


def test_what_no_field_can_have() -> None:
    """A name that is longer than those of headers is not among these, and is an annotation all the same."""
    said = {Symbol("x-" + "n" * 300): 1, Symbol("x-big"): 1 << 62}
    properties = AMQP_0_9.with_annotations(PROPERTIES, added.written(said))
    assert received(OLD, properties) == said
    assert set(AMQP_0_9.headers(properties)) == {added.HEADER, "x-big"}


@pytest.mark.parametrize("value", [1, "text", b"", b"\x45", encode([1, 2]), encode([{}, 1])])
def test_a_publishers_header_of_that_name(value: object) -> None:
    """What does not look like ours is a header like any other."""
    properties = AMQP_0_9.with_headers(PROPERTIES, {added.HEADER: value})
    its = delivered(OLD, properties, b"", attempts=0)[0]
    assert map_in(its, APPLICATION_PROPERTIES) == {added.HEADER: value}
    changed = AMQP_0_9.with_annotations(properties, added.written({Symbol("x-why"): "late"}))
    assert received(OLD, changed) == {"x-why": "late"}


def test_headers_that_cannot_be_read() -> None:
    """They stay: somebody may read them who knows more types."""
    unreadable = b"\x20\x00" + b"\x00\x00\x00\x03\x01a?"
    with pytest.raises(ResourceError, match="nothing can be added"):
        AMQP_0_9.with_annotations(unreadable, added.written({Symbol("a"): 1}))


def nulls(count: int) -> list[None]:
    """Many values in few bytes."""
    return [None] * count


def test_a_publishers_many_headers() -> None:
    """None of them is lost, however many there are: where they are too many to be read at once nothing is added."""
    properties = AMQP_0_9.with_headers(PROPERTIES, {"own": 1, "CC": ["k"], "big": nulls(4080)})
    for number in range(20):
        try:
            properties = AMQP_0_9.with_annotations(properties, added.written({Symbol(f"x-{number}"): "y"}))
        except ResourceError as error:
            assert "more than 4096" in error.text  # noqa: PT017 - one of them, at some time
            break
    else:
        pytest.fail("never too many")
    headers = AMQP_0_9.headers(properties)
    assert (headers["own"], headers["CC"], len(headers["big"])) == (1, ["k"], 4080)
    assert headers["x-0"] == "y"


@pytest.mark.parametrize("its", [AMQP_0_9, AMQP_1_0])
@pytest.mark.parametrize("numbers", [True, False])
def test_what_cannot_be_read_back(its: Any, numbers: bool) -> None:
    """A message gathers nothing that nobody could read any more, nor does the journal's note of it."""
    properties, noted, taken = _empty(its), b"", list[int]()
    for number in range(10):
        many: dict[Any, Any] = {ULong(20 * number + at): 1 for at in range(20)}
        said = added.written(many if numbers else {Symbol(f"k{number}"): nulls(200)})
        try:
            news = its.with_annotations(properties, said)
            properties, noted = news, added.with_both(noted, said)
        except ResourceError as error:
            assert "may gather" in error.text  # noqa: PT017 - most of them
        else:
            taken.append(number)
    assert taken == [0]
    assert len(received(OLD if its is AMQP_0_9 else NEW, properties)) == (20 if numbers else 1)
    with pytest.raises(ResourceError, match="may gather"):
        added.with_both(noted, said)


def test_too_many_at_once() -> None:
    """Of one outcome: its client hears it at once."""
    for said in ({Symbol("a"): nulls(added.MOST_VALUES)}, {ULong(at): 1 for at in range(added.MOST_NUMBERS + 1)}):
        with pytest.raises(ResourceError, match="may gather"):
            added.written(said)
    assert added.written({Symbol("a"): nulls(added.MOST_VALUES - 3)})


@pytest.mark.parametrize("number", [65, 2000])
def test_a_publishers_numbers(number: int) -> None:
    """Those of which nobody can read so many: they stay."""
    properties = section(MESSAGE_ANNOTATIONS, {ULong(at): 1 for at in range(number)})
    with pytest.raises(ResourceError):
        AMQP_1_0.with_annotations(properties, added.written({Symbol("a"): 1}))


BROKERS_OWN = {
    dead_letter._DEATHS,
    keys.HEADER,
    counted._ACQUIRED,
    counted._FAILED,
    delayed._DELAY,
    delayed._NOT_BEFORE,
    delayed._DELIVERY_TIME,
    added.HEADER,
    *(name.decode() for name in TRACE_NAMES),
}


@pytest.mark.parametrize("name", sorted(BROKERS_OWN | BROKER_NAMES))
def test_names_of_the_brokers(name: str) -> None:
    """Who may only receive does not say what the broker tells, or goes by."""
    with pytest.raises(NotAllowed, match=name):
        added.written({Symbol("x-opt-fine"): 1, Symbol(name): None})


def test_forged() -> None:
    """What a publisher of 0-9-1 writes there is no annotation that AMQP 1.0 has not, and hides no header from it."""
    forged = {1.5: 1, b"b": 1, True: 1, Symbol("x-death"): 5, Symbol("x-why"): "late", ULong(7): 1, "text": 1}
    raw = encode([forged, ["n", "x-other", "x-death", "x-hopline-annotations", 1]])
    properties = AMQP_0_9.with_headers(PROPERTIES, {added.HEADER: raw, "n": 1, "x-other": "2", "x-death": [{"a": "b"}]})
    its = delivered(OLD, properties, b"", attempts=0)[0]
    assert map_in(its, MESSAGE_ANNOTATIONS) == {"x-why": "late", 7: 1, "x-death": [{"a": "b"}]}
    assert map_in(its, APPLICATION_PROPERTIES) == {"n": 1, "x-other": "2"}


def test_names() -> None:
    """Section 3.2.10: symbols, or numbers that are reserved; some clients call symbols strings."""
    assert decode(added.written({"a": 1, ULong(7): 2})) == {Symbol("a"): 1, ULong(7): 2}
    assert type(next(iter(decode(added.written({"a": 1}))))) is Symbol
    assert added.written({}) == b""
    for key in (b"a", True, UInt(1), "é"):
        with pytest.raises(SyntaxFault):
            added.written({key: 1})


@pytest.mark.parametrize("its", [AMQP_0_9, AMQP_1_0])
def test_too_much(its: Any) -> None:
    """So much may be gathered; a name that is there may have another value yet, which is no longer."""
    with pytest.raises(ResourceError):
        added.written({Symbol("a"): "x" * added.MOST})
    full = its.with_annotations(_empty(its), added.written({Symbol("a"): "x" * (added.MOST - 100)}))
    with pytest.raises(ResourceError, match=f"may gather {added.MOST}"):
        its.with_annotations(full, added.written({Symbol("b"): "x" * 100}))
    assert its.with_annotations(full, added.written({Symbol("a"): "y" * (added.MOST - 100)}))


def test_a_publisher_may_say_more() -> None:
    """What a message came with is no fault of who receives it: only more than that is."""
    large = section(MESSAGE_ANNOTATIONS, {Symbol("a"): "x" * 2 * added.MOST})
    with pytest.raises(ResourceError):
        AMQP_1_0.with_annotations(large, added.written({Symbol("b"): 1}))
    assert received(NEW, AMQP_1_0.with_annotations(large, added.written({Symbol("a"): 1}))) == {"a": 1}


@given(raw=st.one_of(st.binary(max_size=60), maps.map(lambda said: encode([said, ["x-c", 1, None]]))), said=maps)
def test_whatever_stands_there(raw: bytes, said: dict[Any, Any]) -> None:
    """A publisher of 0-9-1 may have written anything into that header: the message is delivered, and annotated."""
    properties = AMQP_0_9.with_headers(PROPERTIES, {added.HEADER: raw, "n": 1})
    assert map_in(delivered(OLD, properties, b"", attempts=0)[0], APPLICATION_PROPERTIES)["n"] == 1
    assert received(OLD, AMQP_0_9.with_annotations(properties, added.written(said))).items() >= said.items()


@given(raw=st.binary(max_size=60), said=maps)
def test_annotations_that_cannot_be_read(raw: bytes, said: dict[Any, Any]) -> None:
    """They stay as they are, as nobody knows what to add to; else those that are said are there besides."""
    section_of = b"\x00\x53\x72" + raw
    try:
        sections(section_of)
    except SyntaxFault:
        return  # nobody could have published it
    try:
        annotated = AMQP_1_0.with_annotations(section_of, added.written(said))
    except ResourceError as error:
        assert "nothing can be added" in error.text  # noqa: PT017 - it depends on what stands there
    else:
        assert received(NEW, annotated).items() >= said.items()
