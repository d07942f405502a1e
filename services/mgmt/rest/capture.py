"""Capture rules, what they cost, and what was captured: for administrators only."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi import Path as InPath

from services.common.capture.cost import Captured
from services.common.capture.rules import Rule, Terms
from services.common.clients.capture import CaptureRules
from services.common.question import LONGEST_ID, MOST_JOURNEYS
from services.common.trace import Trace
from services.mgmt.lookup.lookup import LookUp
from services.mgmt.rest.basic import Basic
from services.mgmt.rest.failures import documented
from services.mgmt.rest.own import own_router
from services.mgmt.rest.trace import found

_Name = Annotated[str, InPath(min_length=1, max_length=255, description="of the rule")]


def capture_routes(door: Basic, look_up: LookUp, rules: CaptureRules) -> APIRouter:
    """Below /capture."""
    router = own_router(door, "capture", "/capture")

    @router.get("/rules", responses=documented(503), summary="Capture rules, with what they have captured")
    async def list_rules() -> list[Captured]:
        """Every rule, with what it has cost so far."""
        return await rules.rules()

    @router.put("/rules/{name:names}", responses=documented(503), summary="Add a capture rule")
    async def put_rule(name: _Name, terms: Terms) -> Rule:
        """Adds a rule, or replaces the one of that name. It begins now."""
        return await rules.put(name, terms)

    @router.delete(
        "/rules/{name:names}", status_code=204, responses=documented(404, 503), summary="Remove a capture rule"
    )
    async def remove_rule(name: _Name) -> None:
        """Removes a rule; what it has captured stays until its time is over."""
        await rules.remove(name)

    @router.get(
        "/messages/{id:names}", responses=documented(404, 503), summary="Captured bodies and properties of a message"
    )
    async def message(
        id: Annotated[str, InPath(max_length=LONGEST_ID, description="as of `trace`")],  # noqa: A002 - as `trace`
        journeys: Annotated[int, Query(ge=1, le=MOST_JOURNEYS, description="at most so many messages")] = 10,
    ) -> Trace:
        """As `trace`, with properties and bodies."""
        return await found(look_up, id, journeys, everything=False, payloads=True)

    return router
