"""A query: which objects, which columns of them, in which order. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.listing import MOST_ORDERS
from services.mgmt.model.query.compiled import Column, Compiler, NotParsed, Order, Value
from services.mgmt.model.sorting import places
from services.mgmt.model.steps import Steps

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


def answered(query: Query, found: Iterable[ConfiguredObject], compiler: Compiler) -> Steps[Result]:
    """In steps, each of one object: the caller may do something else in between, or stop.

    Raises NotParsed for what is no expression, IllegalConfiguration for what cannot be said of an object.
    """
    columns = _columns(query, compiler)
    orders = _orders(query, compiler, len(columns))
    applies = compiler.condition(query.where) if query.where else None
    try:
        wanted = (yield from _fitting(found, applies)) if applies else list(found)
        for order in reversed(orders):
            wanted = yield from _sorted(wanted, order, _value(order, columns))
        page = wanted[query.offset :] if query.limit is None else wanted[query.offset : query.offset + query.limit]
        results = yield from _rows(page, columns)
    except RecursionError:
        raise IllegalConfiguration("where: nested too deeply") from None
    return Result([column.header for column in columns], results, len(wanted))


def _columns(query: Query, compiler: Compiler) -> list[Column]:
    columns = compiler.columns(query.select or USUALLY)
    if len(columns) > _MOST_COLUMNS:
        raise NotParsed(f"select: no more than {_MOST_COLUMNS} columns")
    return columns


def _orders(query: Query, compiler: Compiler, columns: int) -> list[Order]:
    orders = compiler.orders(query.order_by) if query.order_by else []
    if len(orders) > MOST_ORDERS:
        raise NotParsed(f"orderBy: no more than {MOST_ORDERS} of them")
    for order in orders:
        if order.column is not None and not 1 <= order.column <= columns:
            raise NotParsed(f"orderBy: there is no column {order.column}")
    return orders


def _fitting(found: Iterable[ConfiguredObject], applies: Value) -> Steps[list[ConfiguredObject]]:
    fitting = []
    for each in found:
        if applies(each) is True:
            fitting.append(each)
        yield
    return fitting


def _sorted(found: list[ConfiguredObject], order: Order, value: Value) -> Steps[list[ConfiguredObject]]:
    values = []
    for each in found:
        values.append(value(each))
        yield
    return [found[place] for place in (yield from places(values, descending=order.descending))]


def _rows(page: list[ConfiguredObject], columns: list[Column]) -> Steps[list[list[Any]]]:
    """No more than an answer should hold: an expression makes long texts of short ones."""
    rows, length = [], 0
    for each in page:
        row = [column.value(each) for column in columns]
        length += len(json.dumps(row, ensure_ascii=False))
        if length > LARGEST:
            raise IllegalConfiguration(f"an answer of more than {LARGEST} bytes: limit, offset and select ask for less")
        rows.append(row)
        yield
    return rows


def _value(order: Order, columns: list[Column]) -> Value:
    return order.value if order.column is None else columns[order.column - 1].value
