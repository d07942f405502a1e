"""May a user do this, and which rule says so? Answered from the records as they are at that moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import BaseModel, ConfigDict, Field

from services.common.access.control import decide
from services.common.access.rules import KINDS, Rules
from services.common.access.spelt import question
from services.common.access.words import refusal
from services.common.clients.access import Access
from services.common.clients.store import StoreClient
from services.common.containment import for_each


@dataclass(frozen=True, slots=True)
class Question:
    """A question as a person writes it."""

    user: str
    action: str
    kind: str
    name: str = ""
    virtual_host: str = "/"
    properties: Mapping[str, str] = field(default_factory=dict)
    host: str = ""
    groups: Sequence[str] = ()  # beside those on record: what a provider would say is not known here
    tags: Sequence[str] = ()


class Tested(BaseModel):
    """A verdict."""

    model_config = ConfigDict(frozen=True)

    allowed: bool
    rule: str = Field(description="what decides")
    refused: str = Field(description="what the user would be told; empty where it is allowed")


class Tester:
    """Asks the access controls."""

    def __init__(self, access: Access, store: StoreClient) -> None:
        self._access = access
        self._store = store

    async def test(self, wanted: Question) -> Tested:
        """Raises SyntaxFault for an unknown action, kind or property."""
        asked = question(wanted.action, wanted.kind, wanted.name, wanted.virtual_host, wanted.properties)
        rules = Rules()
        for_each("reading what is set of access", await self._store.list_records(KINDS), rules.apply)
        principal = rules.principal(wanted.user, wanted.host)
        groups, tags = principal.groups.union(wanted.groups), principal.tags.union(wanted.tags)
        principal = replace(principal, groups=groups, tags=tags)
        verdict = decide(self._access.controls, principal, asked, rules)
        return Tested(
            allowed=verdict.allowed,
            rule=verdict.rule,
            refused="" if verdict.allowed else refusal(principal, asked, verdict),
        )
