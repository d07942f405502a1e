"""What is remembered of properties."""

from __future__ import annotations

from services.common.message.remembered import LONGEST, remembered


def test_small_ones() -> None:
    """What producers repeat is made once, what is large each time it is asked for."""
    made: list[bytes] = []

    def make(mark: int, properties: bytes) -> bytes:
        made.append(properties)
        return bytes((mark,)) + properties

    known = remembered(make)
    for properties in (b"a" * LONGEST, b"a" * LONGEST, b"b" * (LONGEST + 1), b"b" * (LONGEST + 1)):
        assert known(7, properties) == b"\x07" + properties
    assert list(map(len, made)) == [LONGEST, LONGEST + 1, LONGEST + 1]
