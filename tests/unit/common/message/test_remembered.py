"""What is remembered of properties."""

from __future__ import annotations

from services.common.message.remembered import remembered


def test_small_ones() -> None:
    """What producers repeat is made once, what is large each time it is asked for."""
    made: list[bytes] = []

    def make(mark: int, properties: bytes) -> bytes:
        made.append(properties)
        return bytes((mark,)) + properties

    known = remembered(make)
    for properties in (b"a" * 1024, b"a" * 1024, b"b" * 1025, b"b" * 1025):
        assert known(7, properties) == b"\x07" + properties
    assert list(map(len, made)) == [1024, 1025, 1025]
