"""GET: one object, or a list of them; and operations that change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Final

from fastapi import Query, Request, Response

from services.common.access.asked import Asked
from services.common.authentication.principal import Principal
from services.common.errors import NotFound
from services.mgmt.access.operations import ASK_MGMT
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import NotOffered
from services.mgmt.model.listing import check_name, filtered, ordered
from services.mgmt.model.rendering import OVERSIZE, Children, Measure, Options, written, written_list
from services.mgmt.rest.model.asking import Asking
from services.mgmt.rest.model.invoked import answered
from services.mgmt.rest.pieces import in_turns, piecewise
from services.mgmt.tree.changes import Changes
from services.mgmt.tree.tree import ANY
from services.mgmt.turns import in_steps

MOST: Final = 100_000
_DEEPEST: Final = 10
_OURS: Final = frozenset({
    "depth", "actuals", "oversize", "excludeInheritedContext", "singletonModelObjectResponseAsList",
    "contentDispositionAttachmentFilename", "orderBy", "limit", "offset",
})  # fmt: skip
_DESCRIBED = {
    "depth": "how many levels of children are told",
    "actuals": "what was set alone, as it was set",
    "oversize": "texts that may be long are cut to so many characters; 0: never",
    "inherited": "of variables, those that are set here alone",
    "list": "a list also where there is one",
    "attachment": "the name of a file to save it in",
    "order": "name, or queueDepthMessages desc, …: attributes and statistics",
    "limit": "at most so many; the header X-Total-Count says of how many",
    "offset": "so many are passed over",
}
Write = Callable[[Options, Children, Measure], Iterator[str]]
"""Of what was asked for."""


class Reading:
    """Answers of one category."""

    def __init__(self, asking: Asking, category: str) -> None:
        self._asking = asking
        self._tree = asking.tree
        self._category = category
        self._keeper = self._tree.categories[category]
        self._changes = Changes(self._tree, category)

    def needs(self, request: Request) -> Asked:
        """What a user needs to come in; of an operation the rest is asked before anything else."""
        return ASK_MGMT if self._is_operation(self._asking.names(request)) else self._keeper.sees

    def _is_operation(self, names: Sequence[str]) -> bool:
        return len(names) == len(self._tree.line(self._category)) + 1

    async def get(self, request: Request, principal: Principal, options: Options, page: Page, asked: Shape) -> Response:
        """An object at a whole path, else a list; one name more is an operation."""
        names, line = self._asking.names(request), self._tree.line(self._category)
        await self._tree.ready(self._tree.fresh(self._category, options.depth))
        if self._is_operation(names):
            return await self._invoke(request, principal, names)
        if len(names) > len(line):
            raise NotFound(f"{self._keeper.kind.category} is at {'/'.join(line) or 'the root'}")
        visible = await self._visible(request, principal) if options.depth else frozenset[str]()
        if len(names) == len(line) and ANY not in names:
            [found] = await in_steps(self._tree.finding(self._category, names))
            write = partial(written_list, [found]) if asked.as_list else partial(written, found)
            return await self._answer(write, options, visible, asked.attachment)
        return await self._list(request, names, options, page, asked, visible)

    async def _list(
        self,
        request: Request,
        names: Sequence[str],
        options: Options,
        page: Page,
        asked: Shape,
        visible: frozenset[str],
    ) -> Response:
        found = await self.select(request, names)
        found = await in_steps(ordered(found, page.order, self._keeper.kind, self._tree.column))
        write = partial(written_list, found[page.offset : page.offset + page.limit])
        return await self._answer(write, options, visible, asked.attachment, {"X-Total-Count": str(len(found))})

    async def select(self, request: Request, names: Sequence[str]) -> list[ConfiguredObject]:
        """Those at a path to which the filters of the URL apply."""
        wanted = {name: values for name, values in parameters(request).items() if name not in _OURS}
        for name in wanted:
            check_name(self._keeper.kind, name)
        found = await in_steps(self._tree.finding(self._category, names))
        return await in_steps(filtered(found, wanted, self._tree.look))

    async def _answer(
        self, write: Write, options: Options, visible: frozenset[str], attachment: str, headers: Mapping[str, str] = {}
    ) -> Response:
        def below(each: ConfiguredObject) -> Iterator[tuple[str, Iterable[ConfiguredObject | None]]]:
            return (pair for pair in self._tree.below_in_steps(each) if pair[0] in visible)

        its = {"Content-Disposition": f'attachment; filename="{attachment}"'} if attachment else {}
        pieces = await in_turns(write(options, below, self._tree.measure))
        return piecewise(pieces, "application/json", {**its, **headers})

    async def _visible(self, request: Request, principal: Principal) -> frozenset[str]:
        """Categories that the caller may look at."""
        there = self._tree.categories.items()
        return frozenset([name for name, each in there if await self._asking.may(request, principal, each.sees)])

    async def _invoke(self, request: Request, principal: Principal, names: Sequence[str]) -> Response:
        kind, name = self._keeper.kind, names[-1]
        if (operation := kind.operations.get(name)) is None or operation.modifying:
            await self._asking.check(request, principal, [self._keeper.sees])
        if operation is None:
            raise NotFound(f"{kind.category} has no operation '{name}'")
        if operation.modifying:
            raise NotOffered(f"operation '{name}' changes something: POST is wanted", "POST")
        kinds = {key: each.kind for key, each in operation.parameters.items()}
        said = {key: _said(values, kinds.get(key)) for key, values in parameters(request).items()}
        caller = self._asking.caller(request, principal)
        return await answered(await self._changes.invoke(caller, names[:-1], name, said))


def parameters(request: Request) -> dict[str, list[str]]:
    """Those of the URL, by name, with all values of each; looked at once, however many there are."""
    found: dict[str, list[str]] = {}
    for name, value in request.query_params.multi_items():
        found.setdefault(name, []).append(value)
    return found


def _said(values: list[str], kind: type | None) -> str | list[str]:
    """A list is each of its values, or JSON."""
    return values if kind is list and not values[0].startswith("[") else values[0]


class Page:
    """Of a list."""

    def __init__(
        self,
        order: Annotated[str, Query(alias="orderBy", max_length=1024, description=_DESCRIBED["order"])] = "",
        limit: Annotated[int, Query(ge=0, le=MOST, description=_DESCRIBED["limit"])] = MOST,
        offset: Annotated[int, Query(ge=0, le=1 << 31, description=_DESCRIBED["offset"])] = 0,
    ) -> None:
        self.order, self.limit, self.offset = order, limit, offset


class Shape:
    def __init__(
        self,
        as_list: Annotated[
            bool, Query(alias="singletonModelObjectResponseAsList", description=_DESCRIBED["list"])
        ] = False,
        attachment: Annotated[
            str, Query(alias="contentDispositionAttachmentFilename", max_length=255, pattern=r"^[A-Za-z0-9_. -]*$",
                       description=_DESCRIBED["attachment"])
        ] = "",
    ) -> None:  # fmt: skip
        self.as_list, self.attachment = as_list, attachment


def options(
    depth: Annotated[int, Query(ge=0, le=_DEEPEST, description=_DESCRIBED["depth"])] = 0,
    actuals: Annotated[bool, Query(description=_DESCRIBED["actuals"])] = False,
    oversize: Annotated[int, Query(ge=0, le=1 << 20, description=_DESCRIBED["oversize"])] = OVERSIZE,
    inherited: Annotated[bool, Query(alias="excludeInheritedContext", description=_DESCRIBED["inherited"])] = True,
) -> Options:
    """Of a GET."""
    return Options(depth, actuals, oversize, inherited)
