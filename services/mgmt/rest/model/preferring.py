"""Preferences, below the object that they are about: one's own, and those that one may see.

What they are below is told by how many names an object's path has, so that a queue may be called userpreferences.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from starlette.convertors import register_url_convertor

from services.common.access.asked import Asked
from services.common.authentication.principal import Principal
from services.common.errors import NotFound
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration, NotOffered
from services.mgmt.preferences.preference import Preference, Who, read, read_all, read_by_type
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.bodies import body, json_in
from services.mgmt.rest.model.answers import Route, documented
from services.mgmt.rest.model.asking import Asking
from services.mgmt.rest.model.paths import name_in, names_in, object_convertor
from services.mgmt.rest.model.schemas import parameter, placed

_PREFIX: Final = "/{version:model_version}/{path:model_object}"
WORDS: Final = ("userpreferences", "visiblepreferences")
"""What stands in their paths."""
_PARTS: Final = ("", "/{type}", "/{type}/{name}")
_NAME: Final = {"type": "string", "minLength": 1}

Answer = Callable[["Preferring", Request, Principal], Awaitable[Response]]


class Preferring:
    """Answers about preferences at objects of one tree."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._tree = asking.tree

    def sees(self, request: Request) -> Asked:
        """Preferences are for users who may look at the object; an unknown category is told to administrators only."""
        category = names_in(request.path_params["path"])[0]
        return self._tree.categories[category].sees if category in self._tree.categories else CONFIGURE

    async def get_own(self, request: Request, principal: Principal) -> Response:
        """One's own: a preference, those of a type, or all of them by type."""
        found, who = await self._found(request), await self._who(request, principal)
        return _told(request, found, self._tree.preferences.own(found, who))

    async def get_visible(self, request: Request, principal: Principal) -> Response:
        """The same, with those that others show to a group that one is in."""
        found, who = await self._found(request), await self._who(request, principal)
        return _told(request, found, self._tree.preferences.visible(found, who))

    async def put(self, request: Request, principal: Principal) -> Response:
        """A preference, a list, or a map of lists by type: in place of those of one's own that there are."""
        parts, said = _parts(request), json_in(await body(request))
        found, who = await self._found(request), await self._who(request, principal)
        if len(parts) == len(_PARTS) - 1:
            wanted = [read(said, **parts)]
        else:
            wanted = read_all(said, **parts) if parts else read_by_type(said)
        await self._tree.preferences.replace(found, who, wanted, _which(request))
        return Response()

    async def post(self, request: Request, principal: Principal) -> Response:
        """A list, or a map of lists by type: beside the others, and in place of those that have the same ids."""
        parts, said = _parts(request), json_in(await body(request))
        if "name" in parts:
            raise NotOffered("a preference that has a name here is put: PUT is wanted", "PUT")
        found, who = await self._found(request), await self._who(request, principal)
        await self._tree.preferences.append(found, who, read_all(said, **parts) if parts else read_by_type(said))
        return Response()

    async def delete(self, request: Request, principal: Principal) -> Response:
        """Those of one's own, also where there are none."""
        found, who = await self._found(request), await self._who(request, principal)
        await self._tree.preferences.replace(found, who, (), _which(request))
        return Response()

    async def _who(self, request: Request, principal: Principal) -> Who:
        return Who(principal.name, await self._asking.caller(request, principal).groups())

    async def _found(self, request: Request) -> ConfiguredObject:
        """Raises NotFound."""
        category, *names = names_in(request.path_params["path"])
        if category not in self._tree.categories:
            raise NotFound(f"there is no category '{category}'")
        await self._tree.ready(self._tree.categories[category].fresh)
        return self._tree.one(category, names)


def _parts(request: Request) -> dict[str, str]:
    """Type and name, as far as the path has them."""
    return {part: name_in(request.path_params[part]) for part in ("type", "name") if part in request.path_params}


def _which(request: Request) -> Callable[[Preference], bool]:
    """Those that the path, and the id of the URL, mean."""
    wanted: Mapping[str, str] = {**_parts(request), **_id(request)}
    return lambda each: all(getattr(each, name) == value for name, value in wanted.items())


def _id(request: Request) -> dict[str, str]:
    said = request.query_params.getlist("id")
    if not said:
        return {}
    try:
        [one] = said
        return {"id": str(uuid.UUID(one))}
    except ValueError:
        raise IllegalConfiguration("id: a UUID is wanted, once") from None


def _told(request: Request, found: ConfiguredObject, preferences: list[Preference]) -> Response:
    which, parts = _which(request), _parts(request)
    told = [each.told(found.value("id")) for each in preferences if which(each)]
    if "name" in parts:
        if not told:
            raise NotFound(f"no preference '{parts['name']}' of type '{parts['type']}'")
        return JSONResponse(told[0])
    if parts:
        return JSONResponse(told)
    types = sorted({each["type"] for each in told})
    return JSONResponse({type_: [each for each in told if each["type"] == type_] for type_ in types})


_OWN: Final[Mapping[str, Answer]] = {
    "GET": Preferring.get_own,
    "PUT": Preferring.put,
    "POST": Preferring.post,
    "DELETE": Preferring.delete,
}


def preference_routes(doors: Doors, asking: Asking, prefix: str) -> APIRouter:
    """Before those of the objects, whose paths have no end."""
    tree = asking.tree
    register_url_convertor("model_object", object_convertor({name: len(tree.line(name)) for name in tree.categories}))
    router, preferring = APIRouter(prefix=prefix, tags=["model: preferences"], route_class=Route), Preferring(asking)
    who_asks = Depends(doors.to(preferring.sees))
    for part in _PARTS:
        for method, answer in _OWN.items():
            _add(router, f"{_PREFIX}/userpreferences{part}", method, preferring, answer, who_asks)
        _add(router, f"{_PREFIX}/visiblepreferences{part}", "GET", preferring, Preferring.get_visible, who_asks)
    return router


def _add(
    router: APIRouter, path: str, method: str, preferring: Preferring, answer: Answer, who_asks: Any  # noqa: ANN401 - Depends
) -> None:  # fmt: skip
    async def endpoint(request: Request, who: Principal = who_asks) -> Response:
        return await answer(preferring, request, who)

    described = placed(path, "a category, and the names of the path of an object of it")
    described["parameters"] += [
        parameter(part, _NAME, f"of a preference: its {part}") for part in ("type", "name") if f"{{{part}}}" in path
    ]
    router.add_api_route(
        path,
        endpoint,
        methods=[method],
        summary=(answer.__doc__ or "").rstrip("."),
        response_model=None,
        responses=documented(400, 401, 403, 404, 405, 422, 503),
        openapi_extra=described,
    )
