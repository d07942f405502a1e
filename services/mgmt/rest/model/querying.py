"""The query API: select, where, orderBy, over all of the tree or one virtual host."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from time import thread_time
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.common.access.asked import Asked
from services.common.authentication.principal import Principal
from services.common.clock import epoch_ms, monotonic
from services.common.errors import NotFound
from services.common.invalid import told
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.query import query as queries
from services.mgmt.model.query.compiled import LONGEST, Compiler, NotParsed
from services.mgmt.model.steps import Steps
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.bodies import body as body_of
from services.mgmt.rest.model.answers import Route, documented
from services.mgmt.rest.model.paths import names_in
from services.mgmt.rest.model.schemas import placed
from services.mgmt.tree.category import Source
from services.mgmt.tree.tree import Tree
from services.mgmt.turns import TURN, in_steps

_BROKER: Final = "/{version:model_version}/querybroker/{path:names}"
_HOST: Final = "/{version:model_version}/queryvhost/{path:names}"
WORDS: Final = ("querybroker", "queryvhost")
"""What stands in their paths."""
_ABOVE: Final = {_BROKER: 0, _HOST: 2}
"""How many names come before the category."""
_MOST: Final = 100_000
_PATIENCE: Final = 3.0
"""Seconds of the processor for one query: of a hundred thousand queues a usual one takes one."""


class Wanted(BaseModel):
    """A query."""

    model_config = ConfigDict(extra="forbid")

    select: str = Field(queries.USUALLY, max_length=LONGEST, description="columns: expression AS name, …")
    where: str = Field("", max_length=LONGEST, description="of which objects: an expression")
    orderBy: str = Field("", max_length=LONGEST, description="expressions or numbers of columns, each ASC or DESC")  # noqa: N815 - Broker-J's
    limit: int | None = Field(None, ge=0, le=_MOST, description="at most so many")
    offset: int = Field(0, ge=0, le=1 << 31, description="so many are passed over")
    format: str = Field("json", pattern="^(json|csv)$", description="csv: rows, the headers first")


class Answered(BaseModel):
    """What is found."""

    headers: list[str]
    results: list[list[Any]]
    total: int = Field(description="of how many, without limit and offset")


class Querying:
    """Answers of one tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def sees(self, request: Request) -> Asked:
        """What a user needs to look at that category; an unknown one is told to administrators only."""
        category = ["", *names_in(request.path_params["path"])][-1].lower()
        return self._tree.categories[category].sees if category in self._tree.categories else CONFIGURE

    async def answer(self, path: str, above: int, asked: Wanted) -> Response:
        """Raises NotFound for a category, or a virtual host, that there is not."""
        *names, category = names_in(path) or ("",)
        keeper = self._tree.categories.get(category.lower())
        if keeper is None or len(names) != above or (names and "virtualhost" not in self._tree.line(category.lower())):
            raise NotFound(f"there is no category '{category}' to query there")
        # Files of loggers are looked at for those who see them: a disk that hangs takes its time.
        await self._tree.ready(keeper.fresh | set(Source) - {Source.LOG_FILES})
        compiler = Compiler(keeper.kind, self._tree.look, epoch_ms())
        query = queries.Query(asked.select, asked.where, asked.orderBy, asked.limit, asked.offset)
        try:
            found = await in_steps(self._tree.finding(category.lower(), names))  # of the tree, not of the query
            result = await _in_turns(queries.answered(query, found, compiler))
        except NotParsed as error:
            raise HTTPException(400, error.text) from None
        told = {"headers": result.headers, "results": result.results, "total": result.total}
        return _csv(result) if asked.format == "csv" else JSONResponse(told)


async def _in_turns(steps: Steps[queries.Result]) -> queries.Result:
    """Others have theirs in between. Raises IllegalConfiguration where its own take too long together.

    What a busy machine gives to other processes meanwhile is not the query's fault: processor time counts.
    """
    taken = 0.0
    while taken < _PATIENCE:
        began, worked = monotonic(), thread_time()
        while True:
            try:
                next(steps)
            except StopIteration as done:
                result: queries.Result = done.value
                return result
            if monotonic() - began >= TURN:
                break
        taken += thread_time() - worked
        await asyncio.sleep(0)
    raise IllegalConfiguration(
        f"it takes more than {_PATIENCE:g} s of the processor: where, orderBy and select ask for less"
    )


def _csv(result: queries.Result) -> Response:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(result.headers)
    writer.writerows([_cell(value) for value in row] for row in result.results)
    return Response(text.getvalue(), media_type="text/csv")


def _cell(value: object) -> object:
    """What a spreadsheet would take for a formula is no formula."""
    if isinstance(value, list | dict):
        value = json.dumps(value)
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@"} else value


def query_routes(doors: Doors, tree: Tree, prefix: str) -> APIRouter:
    router, querying = APIRouter(prefix=prefix, tags=["model: queries"], route_class=Route), Querying(tree)
    who_asks = Depends(doors.to(querying.sees))
    for path, above in _ABOVE.items():
        _routes(router, path, above, querying, who_asks)
    return router


def _routes(router: APIRouter, at: str, above: int, querying: Querying, who_asks: Any) -> None:  # noqa: ANN401 - Depends
    responses = documented(400, 401, 403, 404, 422, 503)

    names = "node/virtual host/category; a name that holds a slash is encoded twice" if above else "a category"
    parameters = placed(at, names)

    @router.get(
        at, response_model=Answered, responses=responses, summary="Which objects, and what", openapi_extra=parameters
    )
    async def get(request: Request, asked: Annotated[Wanted, Query()], _who: Principal = who_asks) -> Response:
        """At [<node>/<virtual host>/]<category>."""
        return await querying.answer(request.path_params["path"], above, asked)

    body = {**parameters, "requestBody": {"content": {"application/json": {"schema": Wanted.model_json_schema()}}}}

    @router.post(at, response_model=Answered, responses=responses, summary="The same of a body", openapi_extra=body)
    async def post(request: Request, _who: Principal = who_asks) -> Response:
        """At [<node>/<virtual host>/]<category>."""
        return await querying.answer(request.path_params["path"], above, await _asked(request))


async def _asked(request: Request) -> Wanted:
    """Raises HTTPException."""
    try:
        return Wanted.model_validate_json(await body_of(request) or b"{}")
    except ValidationError as error:
        raise HTTPException(400, told(error.errors(include_url=False))) from None
