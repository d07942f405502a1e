"""Header fields that are remembered: what a peer says is what hpack reads, whatever was said before."""

from __future__ import annotations

from hpack import Decoder, Encoder, NeverIndexedHeaderTuple
from hypothesis import given
from hypothesis import strategies as st

from services.common.http2 import field_block
from services.common.http2.field_block import FieldBlocks
from services.common.http2.frames import Flag
from services.common.http2.sending import Sending
from services.common.http2.settings import OURS, Setting

_FIELD = st.tuples(st.sampled_from([":path", "a", "b"]), st.sampled_from(["/", "1", "2" * 40]))
_FIELDS = st.lists(_FIELD, min_size=1, max_size=4)
_STEP = st.tuples(st.sampled_from(["ours", "kept", "literal", "resize"]), _FIELDS, st.sampled_from([0, 60, 4096]))


@given(st.lists(st.lists(_STEP, max_size=12), min_size=1, max_size=3))
def test_beside_hpack(connections: list[list[tuple[str, list[tuple[str, str]], int]]]) -> None:
    """Over several connections that share what is remembered, with tables that fill, shrink and empty."""
    for steps in connections:
        encoder, sending = Encoder(), Sending()
        blocks, oracle = FieldBlocks(), Decoder(OURS[Setting.MAX_HEADER_LIST_SIZE])
        for how, fields, size in steps:
            if how == "resize":
                encoder.header_table_size = size
            if how == "ours":
                sending.fields(1, fields, end=False)
                (frame,), sending.out = sending.out, []
                raw = bytes(frame)[9:]
            else:
                raw = encoder.encode(
                    [NeverIndexedHeaderTuple(*each) for each in fields] if how == "literal" else fields
                )
            blocks.begin(1, ended=False)
            block = blocks.add(raw, Flag.END_HEADERS)
            assert block
            assert block.fields == [tuple(each) for each in oracle.decode(raw)] == fields


def test_long_ones_are_not_remembered() -> None:
    """Any process may connect, and say something new each time."""
    field_block._known.clear()
    blocks = FieldBlocks()
    for number in range(3000):
        blocks.begin(1, ended=False)
        fields = [NeverIndexedHeaderTuple("a", f"{number}" + "x" * 800 * (number % 2))]
        assert blocks.add(Encoder().encode(fields, huffman=False) * (1 + number % 2), Flag.END_HEADERS)
    assert 0 < len(field_block._known) <= 1000
    assert max(map(len, field_block._known)) <= 1000
