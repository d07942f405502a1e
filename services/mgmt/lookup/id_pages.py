"""Whether a row group's column of ids can have an id, by the bytes of its pages: without a footer, and without Arrow.

Ids of most applications are random, so that in every file there is one row group that can have an id, and hardly any
has it. To open each file and to decode that row group takes three times as long as to look for the bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from services.mgmt.lookup.raw_pages import DATA, DICTIONARY, IN_DICTIONARY, PLAIN, Chunk, Page, is_sound, pages_of

_CODECS = {"UNCOMPRESSED": "", "ZSTD": "zstd", "SNAPPY": "snappy"}


def that_may_have(path: str, chunks: Sequence[Chunk], text: str) -> list[bool]:
    """Of each chunk of a file, whether it can have the text; also where it is damaged, or written in another way."""
    plain = text.encode(errors="surrogatepass")
    wanted = len(plain).to_bytes(4, "little") + plain  # as it is written in a page
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
        name = _CODECS[chunk.codec]
        codec = pa.Codec(name) if name else None
        return _are_in(pages_of(os.pread(file, chunk.size, chunk.begin)), wanted, codec)
    except Exception:  # noqa: BLE001 - headers have no checksum: whatever a damaged one says, Arrow decides
        return True


def _are_in(pages: Iterator[Page], wanted: bytes, codec: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    has_dictionary = False
    for page in pages:
        if page.kind == DATA and page.encoding in IN_DICTIONARY and not has_dictionary:
            raise ValueError("there is no dictionary")
        has_dictionary |= page.kind == DICTIONARY
        if _is_in(page, wanted, codec):
            return True
    return False


def _is_in(page: Page, wanted: bytes, codec: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    if page.checksum is not None and not is_sound(page):
        raise ValueError("the page is damaged")
    if page.kind == DATA and page.encoding in IN_DICTIONARY:
        return False  # the page before has what it may have
    if page.kind not in {DATA, DICTIONARY} or page.encoding not in {PLAIN, *IN_DICTIONARY}:
        raise ValueError("not known here")
    return wanted in (codec.decompress(page.data, page.size, asbytes=True) if codec else page.data)
