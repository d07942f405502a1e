"""Whether a row group's column of ids can have an id, by the bytes of its pages: without a footer, and without Arrow.

Ids of most applications are random, so that in every file there is one row group that can have an id, and hardly any
has it. To open each file and to decode that row group takes three times as long as to look for the bytes.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

_PLAIN, _IN_DICTIONARY = 0, (2, 8)  # parquet.thrift, Encoding
_DATA, _DICTIONARY = 0, 2  # PageType
_CODECS = {"UNCOMPRESSED": "", "ZSTD": "zstd", "SNAPPY": "snappy"}
_LARGEST = 64 << 20  # bytes of a page: of what is larger the header is damaged

# Thrift's compact protocol: types of fields, of which page headers have these.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _BINARY, _STRUCT = 1, 2, 3, 4, 5, 6, 8, 12
_LONGEST_NUMBER = 10  # bytes


class Chunk(NamedTuple):
    """Where a row group has a column, and how it is compressed."""

    begin: int
    size: int
    codec: str


class _Page(NamedTuple):
    kind: int
    encoding: int
    size: int  # when it is decompressed
    checksum: int | None
    data: bytes


def chunk_of(column: Any) -> Chunk:  # noqa: ANN401 - pyarrow has no types
    """By what a footer says of the column in a row group."""
    begin = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset:
        begin = min(begin, column.dictionary_page_offset)
    return Chunk(begin, column.total_compressed_size, column.compression)


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
        return _are_in(_pages(os.pread(file, chunk.size, chunk.begin)), wanted, codec)
    except Exception:  # noqa: BLE001 - headers have no checksum: whatever a damaged one says, Arrow decides
        return True


def _are_in(pages: Iterator[_Page], wanted: bytes, codec: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    has_dictionary = False
    for page in pages:
        if page.kind == _DATA and page.encoding in _IN_DICTIONARY and not has_dictionary:
            raise ValueError("there is no dictionary")
        has_dictionary |= page.kind == _DICTIONARY
        if _is_in(page, wanted, codec):
            return True
    return False


def _is_in(page: _Page, wanted: bytes, codec: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    if page.checksum is not None and zlib.crc32(page.data) != page.checksum & 0xFFFFFFFF:
        raise ValueError("the page is damaged")
    if page.kind == _DATA and page.encoding in _IN_DICTIONARY:
        return False  # the page before has what it may have
    if page.kind not in {_DATA, _DICTIONARY} or page.encoding not in {_PLAIN, *_IN_DICTIONARY}:
        raise ValueError("not known here")
    return wanted in (codec.decompress(page.data, page.size, asbytes=True) if codec else page.data)


def _pages(data: bytes) -> Iterator[_Page]:
    if not data:
        raise ValueError("there is nothing")
    place = 0
    while place < len(data):
        header, place = _struct(data, place)
        size = header[3]
        if not 0 <= size <= len(data) - place or not 0 <= header[2] <= _LARGEST:
            raise ValueError("the page is cut off")
        about = header.get(5) or header.get(7) or {}
        yield _Page(header[1], about.get(2, -1), header[2], header.get(4), data[place : place + size])
        place += size


def _struct(data: bytes, place: int) -> tuple[dict[int, Any], int]:
    """Its fields by number, and where it ends."""
    fields: dict[int, Any] = {}
    number = 0
    while head := data[place]:
        place += 1
        number, place = (number + (head >> 4), place) if head >> 4 else _number(data, place)
        fields[number], place = _value(head & 15, data, place)
    return fields, place + 1


def _value(kind: int, data: bytes, place: int) -> tuple[Any, int]:
    if kind in {_TRUE, _FALSE}:
        return kind == _TRUE, place
    if kind == _BYTE:
        return data[place], place + 1
    if kind in {_I16, _I32, _I64}:
        return _number(data, place)
    if kind == _BINARY:
        length, place = _unsigned(data, place)
        return data[place : place + length], place + length
    if kind == _STRUCT:
        return _struct(data, place)
    raise ValueError("no page header has that")


def _number(data: bytes, place: int) -> tuple[int, int]:
    value, place = _unsigned(data, place)
    return (value >> 1) ^ -(value & 1), place


def _unsigned(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(_LONGEST_NUMBER):
        byte = data[place + shift]
        value |= (byte & 127) << 7 * shift
        if byte < 128:
            return value, place + shift + 1
    raise ValueError("the number does not end")
