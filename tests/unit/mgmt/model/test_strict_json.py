from __future__ import annotations

import pytest

from services.mgmt.model.strict_json import strict


def test_json() -> None:
    """Is read from bytes and from text, with a mark of the order of bytes or without, and whole pairs of surrogates."""
    for data in (b'{"a": [1, 2.5, null]}', '{"a": [1, 2.5, null]}', b'\xef\xbb\xbf{"a": [1, 2.5, null]}'):
        assert strict(data) == {"a": [1, 2.5, None]}
    assert strict(b'"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    "data",
    [
        b"NaN",
        b"-Infinity",
        b"1e400",
        b"-1e400",
        b'"\\ud800"',
        '"\\udfff"',
        b'"\xed\xa0\x80"',
        '"a"'.encode("utf-16"),
        b"",
    ],
)
def test_what_python_alone_would_read(data: bytes | str) -> None:
    """Is no JSON: no answer could repeat it."""
    with pytest.raises(ValueError, match=r".+"):
        strict(data)
