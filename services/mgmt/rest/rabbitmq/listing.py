"""Lists as RabbitMQ answers them: columns, order, pages and filters by name, as the query says.

https://www.rabbitmq.com/docs/management#http-api: pagination, sorting, and `columns`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

from fastapi import Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from services.common.errors import SyntaxFault
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.rabbitmq.columns import in_order, in_place, shown, value_in
from services.mgmt.rest.pieces import in_turns, piecewise
from services.mgmt.tree.matching import fitting

_R = TypeVar("_R", bound=Mapping[str, Any])

_MOST: Final = 500


class Wanted(BaseModel):
    """What the query of a list says."""

    columns: str = Field("", max_length=4096, description="names, with commas; of what is inside others with dots")
    sort: str = Field("", max_length=255, description="a column")
    sort_reverse: bool = False
    page: int | None = Field(None, ge=1, description="without it, the list is answered whole")
    page_size: int = Field(100, ge=1, le=_MOST)
    name: str = Field("", max_length=255, description="of pages: only what has this in its name")
    use_regex: bool = False
    pagination: bool = False


Query_ = Annotated[Wanted, Query()]
_Row = dict[str, Any]


async def listed(
    rows: Sequence[_R],
    wanted: Wanted,
    tell: Callable[[_R], _Row] = dict,
    quick: Mapping[str, Callable[[_R], Any]] | None = None,
    *,
    by_place: bool = True,
) -> Response:
    """An answer. `tell` makes of a row what is told of it; `quick` are columns that can be had without: all of them.

    Rows that have the same in the column that is wanted, or all, are by their place; without `by_place` as they come,
    such as those that are by their place already.
    """
    found = await _named(rows, wanted) if wanted.page else rows
    found = await in_place(found) if by_place else found
    # By what no row has it is as if nothing was said: RabbitMQ's own page asks for rates.
    if wanted.sort and (quick is None or wanted.sort.split(".")[0] in quick):
        found = await in_order(found, value_in(wanted.sort, tell, quick or {}), descending=False)
    # The whole, as RabbitMQ does: also rows that have the same.
    found = found[::-1] if wanted.sort_reverse else found
    if wanted.page is None:
        texts = (_text(shown(tell(row), wanted.columns)) for row in found)
        return piecewise(await in_turns(_array(texts)), JSONResponse.media_type, {})
    return JSONResponse(_page(len(rows), found, wanted, tell))


def _array(texts: Iterable[str]) -> Iterator[str]:
    yield "["
    for number, text in enumerate(texts):
        yield f",{text}" if number else text
    yield "]"


def _text(row: _Row) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":"))  # as JSONResponse writes it


def _page(total: int, found: Sequence[_R], wanted: Wanted, tell: Callable[[_R], _Row]) -> _Row:
    page, size = wanted.page or 1, wanted.page_size
    pages = max(1, -(-len(found) // size))
    if page > pages:
        raise SyntaxFault(f"page out of range, page: {page} page size: {size}, len: {len(found)}")
    items = [shown(tell(row), wanted.columns) for row in found[(page - 1) * size : page * size]]
    return {
        "total_count": total,
        "item_count": len(items),
        "filtered_count": len(found),
        "page": page,
        "page_size": size,
        "page_count": pages,
        "items": items,
    }


async def _named(rows: Sequence[_R], wanted: Wanted) -> Sequence[_R]:
    if not wanted.name:
        return rows
    if not wanted.use_regex:
        lower = wanted.name.lower()
        return [row for row in rows if lower in _name(row).lower()]
    try:
        names = set(await fitting(wanted.name, list(dict.fromkeys(map(_name, rows))), "name", anywhere=True))
    except IllegalConfiguration as error:
        raise SyntaxFault(error.text) from None
    return [row for row in rows if _name(row) in names]


def _name(row: Mapping[str, Any]) -> str:
    """Rows of some lists have no name, and are called nothing."""
    return str(row.get("name", ""))
