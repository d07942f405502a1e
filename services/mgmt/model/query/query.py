"""A query: which objects, which columns of them, in which order. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.listing import keys_of
from services.mgmt.model.query.compiled import Column, Compiler, NotParsed, Order, Value

USUALLY = "id, name"
_MOST_COLUMNS: Final = 100
LARGEST: Final = 16 << 20
"""Bytes of all rows together."""


@dataclass(frozen=True, slots=True)
class Query:
    """As it is asked."""

    select: str = USUALLY
    where: str = ""
    order_by: str = ""
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """As Broker-J answers; `total`: of how many, without limit and offset."""

    headers: list[str]
    results: list[list[Any]]
    total: int


def answered(query: Query, found: Iterable[ConfiguredObject], compiler: Compiler) -> Result:
    """Raises NotParsed for what is no expression, IllegalConfiguration for what cannot be said of an object."""
    columns = compiler.columns(query.select or USUALLY)
    if len(columns) > _MOST_COLUMNS:
        raise NotParsed(f"select: no more than {_MOST_COLUMNS} columns")
    orders = compiler.orders(query.order_by) if query.order_by else []
    for order in orders:
        if order.column is not None and not 1 <= order.column <= len(columns):
            raise NotParsed(f"orderBy: there is no column {order.column}")
    try:
        wanted = list(found)
        if query.where:
            applies = compiler.condition(query.where)
            wanted = [each for each in wanted if applies(each) is True]
        for order in reversed(orders):
            keys = keys_of([_value(order, columns)(each) for each in wanted])
            places = sorted(range(len(wanted)), key=keys.__getitem__, reverse=order.descending)
            wanted = [wanted[place] for place in places]
        page = wanted[query.offset :] if query.limit is None else wanted[query.offset : query.offset + query.limit]
        results = list(_rows(page, columns))
    except RecursionError:
        raise IllegalConfiguration("where: nested too deeply") from None
    return Result([column.header for column in columns], results, len(wanted))


def _rows(page: list[ConfiguredObject], columns: list[Column]) -> Iterator[list[Any]]:
    """No more than an answer should hold: an expression makes long texts of short ones."""
    length = 0
    for each in page:
        row = [column.value(each) for column in columns]
        length += len(json.dumps(row, ensure_ascii=False))
        if length > LARGEST:
            raise IllegalConfiguration(f"an answer of more than {LARGEST} bytes: limit, offset and select ask for less")
        yield row


def _value(order: Order, columns: list[Column]) -> Value:
    return order.value if order.column is None else columns[order.column - 1].value
