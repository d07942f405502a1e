"""Heads of a WebSocket's request: whole ones pass with what is behind them, those that take long to parse do not."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.transport.web_head import MOST, Head, HeadRefused

ENDS = [b"\r\n\r\n", b"\n\n", b"\n\r\n"]


@given(st.sampled_from(ENDS), st.binary(max_size=40), st.lists(st.integers(0, 80), max_size=10))
def test_whole_in_any_pieces(end: bytes, behind: bytes, cuts: list[int]) -> None:
    """However it comes, the head is given once, and what is behind it as it comes."""
    sent = b"GET / HTTP/1.1\r\nHost: x" + end + behind
    head, heard, rest = Head(), b"", b""
    places = [0, *sorted(cuts), len(sent)]
    for begin, stop in pairwise(places):
        whole, more = head.take(sent[begin:stop])
        heard, rest = heard + whole, rest + more
    assert (heard, rest) == (sent[: -len(behind) or None], behind)


@pytest.mark.parametrize("space", [b" ", b"\t", b" \t"])
def test_spaces_in_a_row(space: bytes) -> None:
    """The parser would take the square of them."""
    with pytest.raises(HeadRefused, match="spaces in a row"):
        Head().take(b"GET / HTTP/1.1\r\nX:" + space * 5000 + b"\0\r\n\r\n")


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
def test_a_long_one(end: bytes) -> None:
    """A name of a host takes the square of its length, too: whole or not, a head ends early."""
    with pytest.raises(HeadRefused, match="more than 16384 bytes"):
        Head().take(b"GET / HTTP/1.1\r\nHost: xn--" + b"9" * MOST + end)


def test_what_comes_after_a_long_read() -> None:
    """Frames that come with the head are not counted to it."""
    assert Head().take(b"GET / HTTP/1.1\r\n\r\n" + bytes(MOST)) == (b"GET / HTTP/1.1\r\n\r\n", bytes(MOST))
