"""Whether a row group's column of ids can have an id, by the bytes of its pages: without a footer, and without Arrow.

Ids of most applications are random, so that in every file there is one row group that can have an id, and hardly any
has it. To open each file and to decode that row group takes three times as long as to look for the bytes, and of its
pages, which are sorted, one can have it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise

from services.mgmt.lookup.raw_pages import (
    DATA,
    DICTIONARY,
    IN_DICTIONARY,
    PLAIN,
    Chunk,
    Page,
    decompressed,
    ends_of,
    is_sound,
    pages_of,
)


def that_may_have(path: str, chunks: Sequence[Chunk], text: str) -> list[bool]:
    """Of each chunk of a file, whether it can have the text; also where it is damaged, or written in another way."""
    wanted = text.encode(errors="surrogatepass")
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return [True] * len(chunks)  # who reads it says why
    try:
        return [_may_have(file, chunk, wanted) for chunk in chunks]
    finally:
        os.close(file)


def _may_have(file: int, chunk: Chunk, wanted: bytes) -> bool:
    try:
        return _are_in(list(pages_of(os.pread(file, chunk.size, chunk.begin))), wanted, chunk.codec)
    except Exception:  # noqa: BLE001 - headers have no checksum: whatever a damaged one says, Arrow decides
        return True


def _are_in(pages: Sequence[Page], wanted: bytes, codec: str) -> bool:
    near = [(page, _content(page, codec)) for page in _near(pages, wanted)]
    if near and all(_is_from_to(content, *ends_of(page)) for page, content in near):
        return any(_written(wanted) in content for _, content in near)
    return _is_anywhere(pages, wanted, codec)


def _is_anywhere(pages: Sequence[Page], wanted: bytes, codec: str) -> bool:
    has_dictionary = False
    for page in pages:
        if page.kind == DATA and page.encoding in IN_DICTIONARY and not has_dictionary:
            raise ValueError("there is no dictionary")
        has_dictionary |= page.kind == DICTIONARY
        if _is_in(page, wanted, codec):
            return True
    return False


def _near(pages: Sequence[Page], wanted: bytes) -> Sequence[Page]:
    """Those of sorted pages that can have it, as their headers say; none where these do not tell."""
    if not all(page.kind == DATA and page.encoding == PLAIN for page in pages):
        return []
    ends = [ends_of(page) for page in pages]
    if not all(ends) or any(before[1] > after[0] for before, after in pairwise(ends)):
        return []
    return [page for page, (least, greatest) in zip(pages, ends, strict=True) if least <= wanted <= greatest]


def _is_from_to(content: bytes, least: bytes, greatest: bytes) -> bool:
    """Whether a page begins and ends with them: headers have no checksum. Before the values it has which are null."""
    begin = 4 + int.from_bytes(content[:4], "little")
    return content.startswith(_written(least), begin) and content.endswith(_written(greatest))


def _written(text: bytes) -> bytes:
    """As it is written in a page."""
    return len(text).to_bytes(4, "little") + text


def _is_in(page: Page, wanted: bytes, codec: str) -> bool:
    content = _content(page, codec)
    if page.kind == DATA and page.encoding in IN_DICTIONARY:
        return False  # the page before has what it may have
    if page.kind not in {DATA, DICTIONARY} or page.encoding not in {PLAIN, *IN_DICTIONARY}:
        raise ValueError("not known here")
    return _written(wanted) in content


def _content(page: Page, codec: str) -> bytes:
    if page.checksum is not None and not is_sound(page):
        raise ValueError("the page is damaged")
    return decompressed(page, codec)
