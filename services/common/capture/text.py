"""Whether the beginning of a body is text."""

from __future__ import annotations

import codecs


def text_of(body: bytes, *, whole: bool) -> str | None:
    """In UTF-8; a character that was cut is left out. None for bytes that are no text."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(body, final=whole)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
