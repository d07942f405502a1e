"""Pages of Parquet files as they are on disk, headers, checksums and bytes: without Arrow, which decodes all values."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

PLAIN, IN_DICTIONARY = 0, (2, 8)  # parquet.thrift, Encoding
_LEVELS = 3  # Encoding, of how deep a value is nested
STATISTICS, _GREATEST, _LEAST = 5, 5, 6  # of DataPageHeader, and of Statistics
_NAMES = {0: "PLAIN", 2: "PLAIN_DICTIONARY", 5: "DELTA_BINARY_PACKED", 8: "RLE_DICTIONARY"}
DATA, DICTIONARY = 0, 2  # PageType
CODECS: Mapping[str, str] = {"UNCOMPRESSED": "", "ZSTD": "zstd", "SNAPPY": "snappy"}
"""Of those that can be read here, what Arrow calls them; "" for none."""
_SHORT_HEADER, _LONGEST_HEADER = 512, 32 << 10  # bytes: Arrow writes no ends that are longer than four thousand
_LARGEST = 64 << 20  # bytes of a page: of what is larger the header is damaged

# Thrift's compact protocol: types of fields, of which page headers have these.
_TRUE, _FALSE, _I32, _I64, _BINARY, _STRUCT = 1, 2, 5, 6, 8, 12
_LONGEST_NUMBER = 10  # bytes


class Chunk(NamedTuple):
    """Where a row group has a column, and how it is compressed."""

    begin: int
    size: int
    codec: str


class Page(NamedTuple):
    """One page."""

    kind: int
    encoding: int
    size: int  # when it is decompressed
    checksum: int | None
    data: bytes
    header: int  # bytes before it
    about: Mapping[int, Any]  # DataPageHeader, or DictionaryPageHeader


def chunk_of(column: Any) -> Chunk:  # noqa: ANN401 - pyarrow has no types
    """By what a footer says of the column in a row group."""
    begin = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset:
        begin = min(begin, column.dictionary_page_offset)
    return Chunk(begin, column.total_compressed_size, column.compression)


def ends_of(page: Page) -> tuple[bytes, ...]:
    """The least and the greatest value of a page with data, as its header says; none where it does not."""
    statistics = page.about.get(STATISTICS) or {}
    return (statistics[_LEAST], statistics[_GREATEST]) if {_LEAST, _GREATEST} <= statistics.keys() else ()


def decompressed(page: Page, codec: str) -> bytes:
    """What it has. Raises one of Arrow's errors, KeyError for a codec that is none of CODECS."""
    name = CODECS[codec]
    content: bytes = pa.Codec(name).decompress(page.data, page.size, asbytes=True) if name else page.data
    return content


def is_sound(page: Page) -> bool:
    """Whether it is as it was written; False where it has no checksum."""
    return page.checksum is not None and zlib.crc32(page.data) == page.checksum & 0xFFFFFFFF


def is_as_written(file: int, column: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    """Whether all pages of a column in a row group are, and their headers say what the footer does.

    False also where that cannot be told: headers have no checksum, and older files none at all.
    """
    chunk = chunk_of(column)
    try:
        pages = list(pages_of(os.pread(file, chunk.size, chunk.begin)))
        values = sum(page.about[1] for page in pages if page.kind == DATA)
        size = sum(page.header + page.size for page in pages)
        known = all(is_sound(page) and _is_known(page, column.encodings) for page in pages)
    except Exception:  # noqa: BLE001 - as a damaged header may raise anything
        return False
    return known and (values, size) == (column.num_values, column.total_uncompressed_size)


def _is_known(page: Page, encodings: Any) -> bool:  # noqa: ANN401 - as above
    if page.kind == DATA and (page.about[3], page.about[4]) != (_LEVELS, _LEVELS):
        return False
    return page.kind in {DATA, DICTIONARY} and _NAMES[page.encoding] in encodings


def pages_of(data: bytes) -> Iterator[Page]:
    """Of a column in a row group, in order. Raises for what is damaged, in one way or another."""
    if not data:
        raise ValueError("there is nothing")
    place = 0
    while place < len(data):
        begin = place
        header, place = _struct(data, place)
        size = _size(header, len(data) - place)
        yield _page(header, data[place : place + size], place - begin)
        place += size


def headers_of(file: int, chunk: Chunk) -> Iterator[Page]:
    """The same without what pages have: only headers are read."""
    place, end = chunk.begin, chunk.begin + chunk.size
    while place < end:
        header, length = _header(file, place, end)
        place += length
        size = _size(header, end - place)
        yield _page(header, b"", length)
        place += size


def _header(file: int, place: int, end: int) -> tuple[dict[int, Any], int]:
    """And how long it is: nearly all are short."""
    try:
        return _struct(os.pread(file, min(_SHORT_HEADER, end - place), place), 0)
    except IndexError:
        return _struct(os.pread(file, min(_LONGEST_HEADER, end - place), place), 0)


def _size(header: Mapping[int, Any], left: int) -> int:
    """Of what follows a header."""
    size: int = header[3]
    if not 0 <= size <= left or not 0 <= header[2] <= _LARGEST:
        raise ValueError("the page is cut off")
    return size


def _page(header: Mapping[int, Any], content: bytes, length: int) -> Page:
    about = header.get(5 if header[1] == DATA else 7) or {}
    return Page(header[1], about.get(2, -1), header[2], header.get(4), content, length, about)


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
    if kind in {_I32, _I64}:
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
