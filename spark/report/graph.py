"""The graph of dependencies: publishers, exchanges, queues and consumers in four columns, joined by what they carry."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from math import log10
from typing import NamedTuple

from markupsafe import Markup

from spark.report.results import Row
from spark.report.svg import WIDTH, drawing, rectangle, short, text
from spark.report.words import count, duration, in_host

_MOST = 10  # nodes in a column; others are one node
_OTHERS = "others"
_COLUMNS = {"publish": (0, 1), "route": (1, 2), "consume": (2, 3)}
_IN_HOSTS = (1, 2)
_UNNAMED = ("(unnamed)", "(default)", "(unnamed)", "(unnamed)")
_HEADINGS = ("publishers", "exchanges", "queues", "consumers")
_NODE_WIDTH, _NODE_HEIGHT, _GAP, _TOP = 180, 26, 12, 30
_LETTER_OF_COUNT = 6  # pixels

Node = tuple[int, str]  # column and name


class _Edge(NamedTuple):
    messages: int
    errors: int
    p95_us: int


def dependency_graph(edges: Sequence[Row]) -> Markup:
    """Of rows of the table `edges`: the busiest of each column, the others together."""
    shown = _shown(edges)
    flows = _flows(edges, shown)
    if not flows:
        return Markup("")
    where = _places(flows)
    tallest = max(top for _, top in where.values()) + _NODE_HEIGHT + 10
    greatest = max(edge.messages for edge in flows.values()) or 1
    drawn = [text(left, 14, name, "start", "axis") for left, name in zip(_lefts(), _HEADINGS, strict=True)]
    drawn += [_curve(where[source], where[target], edge, greatest, f"{source[1]} → {target[1]}")
              for (source, target), edge in sorted(flows.items(), key=lambda flow: flow[1].messages)]  # fmt: skip
    drawn += [_box(node, place, _carried(flows, node)) for node, place in where.items()]
    return drawing(tallest, drawn)


def _name(column: int, row: Row, end: str) -> str:
    """Exchanges and queues are of a virtual host; an application may be in several."""
    name = str(row[end])
    if column in _IN_HOSTS:
        return in_host(row["virtual_host"], name or _UNNAMED[column])
    return name or _UNNAMED[column]


def _ends(row: Row) -> tuple[Node, Node] | None:
    if row["kind"] not in _COLUMNS:
        return None
    left, right = _COLUMNS[row["kind"]]
    return (left, _name(left, row, "source")), (right, _name(right, row, "target"))


def _shown(edges: Sequence[Row]) -> set[Node]:
    busy: defaultdict[int, Counter[Node]] = defaultdict(Counter)
    for row in edges:
        for node in _ends(row) or ():
            busy[node[0]][node] += row["messages"]
    return {node for nodes in busy.values() for node, _ in nodes.most_common(_MOST)}


def _flows(edges: Sequence[Row], shown: set[Node]) -> dict[tuple[Node, Node], _Edge]:
    flows: dict[tuple[Node, Node], _Edge] = {}
    for row in edges:
        ends = _ends(row)
        if ends is None:
            continue
        source, target = (node if node in shown else (node[0], _OTHERS) for node in ends)
        known = flows.get((source, target), _Edge(0, 0, 0))
        flows[source, target] = _Edge(
            known.messages + row["messages"], known.errors + row["errors"], max(known.p95_us, row["p95_us"] or 0)
        )
    return flows


def _lefts() -> list[float]:
    step = (WIDTH - _NODE_WIDTH) / (len(_HEADINGS) - 1)
    return [column * step for column in range(len(_HEADINGS))]


def _places(flows: Mapping[tuple[Node, Node], _Edge]) -> dict[Node, tuple[float, float]]:
    """Busy nodes at the top, others at the bottom; each column in the middle of the tallest."""
    columns: defaultdict[int, list[Node]] = defaultdict(list)
    for node in sorted(
        {node for ends in flows for node in ends}, key=lambda node: (node[1] == _OTHERS, -_carried(flows, node))
    ):
        columns[node[0]].append(node)
    tallest = max(map(len, columns.values()))
    step, lefts = _NODE_HEIGHT + _GAP, _lefts()
    return {
        node: (lefts[column], _TOP + (tallest - len(nodes)) * step / 2 + number * step)
        for column, nodes in columns.items()
        for number, node in enumerate(nodes)
    }


def _carried(flows: Mapping[tuple[Node, Node], _Edge], node: Node) -> int:
    into = sum(edge.messages for (_, target), edge in flows.items() if target == node)
    out = sum(edge.messages for (source, _), edge in flows.items() if source == node)
    return max(into, out)


def _curve(source: tuple[float, float], target: tuple[float, float], edge: _Edge, greatest: int, name: str) -> str:
    left, from_top = source[0] + _NODE_WIDTH, source[1] + _NODE_HEIGHT / 2
    right, to_top = target[0], target[1] + _NODE_HEIGHT / 2
    middle = (left + right) / 2
    width = 1 + 7 * log10(1 + 9 * edge.messages / greatest)
    kind = "edge bad" if edge.errors > edge.messages / 100 else "edge"
    told = f"{name}: {edge.messages:,} messages, {edge.errors:,} errors, 95 % within {duration(edge.p95_us)}"
    path = f"M{left:.0f},{from_top:.0f} C{middle:.0f},{from_top:.0f} {middle:.0f},{to_top:.0f} {right:.0f},{to_top:.0f}"
    return f'<path class="{kind}" stroke-width="{width:.1f}" d="{path}"><title>{escape(told)}</title></path>'


def _box(node: Node, place: tuple[float, float], carried: int) -> str:
    column, name = node
    left, top = place
    room = _NODE_WIDTH - 20 - _LETTER_OF_COUNT * len(count(carried))
    return (
        rectangle(left, top, _NODE_WIDTH, _NODE_HEIGHT, f"node n{column}", f"{name}: {carried:,} messages")
        + text(left + 8, top + 17, short(name, room), "start", "inside", title=name)
        + text(left + _NODE_WIDTH - 6, top + 17, count(carried), "end", "inside small")
    )
