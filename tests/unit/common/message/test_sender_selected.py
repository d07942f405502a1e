"""Further routing keys in the headers CC and BCC, as RabbitMQ has them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import PreconditionFailed, SyntaxFault
from services.common.message import field_table, sender_selected
from services.common.message.amqp_0_9 import FORMAT
from tests.support import raw_amqp as raw
from tests.support.field_tables import sized


def _properties(headers: dict[str, Any]) -> bytes:
    return FORMAT.with_headers(b"\x00\x00", headers)


def test_keys_of_both_headers() -> None:
    """Those of CC come first, each once; BCC is not in what others see, and CC is."""
    properties = _properties({"a": 1, "CC": ["x", "y", "x"], "BCC": ["z", "y"], "b": 2})
    assert FORMAT.attributes(properties).copied
    keys, told = FORMAT.more_keys(properties)
    assert keys == ("x", "y", "z")
    assert FORMAT.headers(told) == {"a": 1, "CC": ["x", "y", "x"], "b": 2}


@pytest.mark.parametrize("keys", [["k"] * 501, [".".join("w" * 501)], [".".join("w" * 250), ".".join("v" * 251)]])
def test_keys_are_bounded(keys: list[str]) -> None:
    """Equal ones count once; all others by their words, which is what a topic exchange looks at."""
    distinct = [f"{key}{number}" for number, key in enumerate(keys)]
    with pytest.raises(PreconditionFailed, match="more than 500 words"):
        FORMAT.more_keys(_properties({"CC": distinct[:1], "BCC": distinct}))
    assert FORMAT.more_keys(_properties({"CC": ["k"] * 501}))[0] == ("k",)


def test_what_is_left_is_as_it_was() -> None:
    """Types that a decoder would lose stay, and a table of which nothing is left is an empty one, as in RabbitMQ."""
    before, after = raw.short("n") + b"b\x01", raw.short("u") + b"i\xff\xff\xff\xff"
    hidden = raw.short("BCC") + sized(b"A", sized(b"S", b"k"))
    assert sender_selected.read(sized(b"", before + hidden + after + hidden)) == (("k",), sized(b"", before + after))
    assert sender_selected.read(sized(b"", hidden)) == (("k",), raw.EMPTY)


def test_without_bcc_nothing_is_written_anew() -> None:
    """Properties that hold nothing to hide are the same object."""
    for headers in ({"CC": ["k"]}, {"inside": {"BCC": ["k"]}}, {"cc": ["k"]}, {}):
        properties = _properties(headers)
        assert FORMAT.more_keys(properties)[1] is properties


def test_what_is_no_text_is_passed_over() -> None:
    """As in RabbitMQ: of an array only long strings count, and of repeated headers the first."""
    mixed = sized(b"A", b"I\0\0\0\1" + sized(b"S", b"k") + b"V" + sized(b"A", sized(b"S", b"in")) + sized(b"x", b"b"))
    table = sized(b"", raw.short("CC") + mixed + raw.short("CC") + sized(b"A", sized(b"S", b"late")))
    assert sender_selected.read(table)[0] == ("k",)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("CC", sized(b"S", b"k"), "longstr"),
        ("BCC", b"I\0\0\0\1", "signedint"),
        ("CC", b"V", "void"),
        ("BCC", sized(b"F", b""), "table"),
        ("CC", b"t\1", "bool"),
    ],
)
def test_what_is_no_array_is_refused(name: str, value: bytes, kind: str) -> None:
    """In RabbitMQ's words: precondition_failed."""
    with pytest.raises(PreconditionFailed) as raised:
        sender_selected.read(sized(b"", raw.short(name) + value))
    assert raised.value.text == f'invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}'


def test_every_type_has_its_name() -> None:
    """No field that can be read is one that the error cannot name."""
    assert {ord(letter) for letter in sender_selected._TYPES} == field_table._DECODERS.keys() - {ord("A")}


def test_other_messages_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers without these names are searched, and no table in them is read."""
    for function in ("decode", "decode_at", "find", "entries", "value"):
        monkeypatch.setattr(field_table, function, None)
    properties = _properties({"n": 1, "text": "CC and BCC", "longer": {"deep": "y" * 5000}, "ACC": ["k"], "BCCs": "k"})
    assert not FORMAT.attributes(properties).copied
    assert not FORMAT.attributes(b"\x00\x00").copied
    assert not FORMAT.attributes(b"\x04\x00\x03\x02CC").copied  # a correlation id


_TABLES = st.dictionaries(
    st.sampled_from(["CC", "BCC", "cc", "\x02CC", "n", ""]),
    st.text(max_size=4) | st.lists(st.text(max_size=4) | st.integers(0, 9), max_size=3) | st.just({"CC": ["k"]}),
)


@given(_TABLES)
def test_the_search_misses_nothing(headers: dict[str, Any]) -> None:
    """Among any other properties: messages that the search skips have no such header."""
    properties = _properties(headers)
    if not FORMAT.attributes(properties).copied:
        assert not {"CC", "BCC"} & headers.keys()
        return
    wrong = [name for name in ("CC", "BCC") if name in headers and not isinstance(headers[name], list)]
    if wrong:
        with pytest.raises(PreconditionFailed):
            FORMAT.more_keys(properties)
        return
    keys, told = FORMAT.more_keys(properties)
    named = [*headers.get("CC", []), *headers.get("BCC", [])]
    assert list(keys) == list(dict.fromkeys(key for key in named if isinstance(key, str)))
    assert FORMAT.headers(told) == {name: value for name, value in headers.items() if name != "BCC"}


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(rest: bytes) -> None:
    """No bytes raise anything but the two errors that are documented."""
    for name in ("CC", "BCC"):
        try:
            sender_selected.read(sized(b"", raw.short(name) + rest))
        except (SyntaxFault, PreconditionFailed):
            continue
