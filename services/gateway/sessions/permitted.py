"""What the user of one connection may do: asked when an operation begins, and remembered until rules change.

A publish costs a look-up: of its exchange, or of exchange and routing key where rules go by that.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakSet

import structlog

from services.common.access import questions
from services.common.access.action import Kind
from services.common.access.asked import Asked, Principal
from services.common.access.verdict import Verdict
from services.common.access.words import refusal
from services.common.audit.audit import Audit
from services.common.audit.entry import DENIED, Entry
from services.common.authentication.principal import Principal as SignedIn
from services.common.clients.access import Access
from services.common.errors import AccessRefused, BrokerError, NotAllowed

if TYPE_CHECKING:
    from services.common.access.by_key import ByKey

log = structlog.get_logger()

_MOST, _OF_ALL, _FEW = 10_000, 500_000, 100  # decisions: of a connection, of all of them, and of one of very many
_LONGEST = 1024  # characters of the names in a question: of a longer one little is there, and much would be remembered
_UNKNOWN: Final = "?"  # in place of a refusal; of these, by identity, there is no other
_NOTHING: frozenset[str] = frozenset()


_Key: TypeAlias = Asked | str | tuple[str, str]


class Permits:
    """Of all connections of a gateway."""

    def __init__(self, access: Access, audit: Audit | None = None) -> None:
        """What is denied goes to the `audit` log."""
        self.access = access
        self._audit = audit
        self._given: WeakSet[Permitted] = WeakSet()
        self._decided: dict[tuple[Principal, Asked], Verdict] = {}
        access.listeners.append(self._forget)

    def of(self, user: str, host: str, host_name: str = "", signed_in: SignedIn | None = None) -> Permitted:
        """For a client that has signed in, with the groups and tags that its provider knows."""
        permitted = Permitted(self, user, host, host_name, signed_in)
        self._given.add(permitted)
        return permitted

    @property
    def most(self) -> int:
        """Decisions that a connection remembers; beyond, they are asked for again."""
        return min(_MOST, max(_FEW, _OF_ALL // (len(self._given) or 1)))

    def tell(self, denied: Entry) -> None:
        """Of a client that may ask for it again and again."""
        if self._audit:
            self._audit.count(denied)

    def decide(self, principal: Principal, asked: Asked) -> Verdict:
        """Connections of the same user ask the same, and many have few messages each: it is decided about once."""
        verdict = self._decided.get((principal, asked))
        if verdict is None:
            verdict = self.access.decide(principal, asked)
            if not verdict.by_key and _length(asked) <= _LONGEST:
                self._keep(principal, asked, verdict)
        return verdict

    def _keep(self, principal: Principal, asked: Asked, verdict: Verdict) -> None:
        if len(self._decided) >= _MOST:
            self._decided.clear()
        self._decided[principal, asked] = verdict

    def _forget(self) -> None:
        self._decided.clear()
        for permitted in self._given:
            permitted.forget()


class Permitted:
    """`writable`: exchanges to which anything may be published, whatever its key."""

    __slots__ = (
        "__weakref__",
        "_by_key",
        "_host",
        "_host_name",
        "_known",
        "_permits",
        "_principal",
        "_signed_in",
        "_user",
        "writable",
    )

    def __init__(
        self, permits: Permits, user: str, host: str, host_name: str = "", signed_in: SignedIn | None = None
    ) -> None:
        self._permits = permits
        self._signed_in = signed_in
        self._user = user
        self._host = host
        self._host_name = host_name
        self.forget()

    @property
    def who(self) -> SignedIn:
        """As its provider knows it."""
        return self._signed_in or SignedIn(self._user, "")

    @property
    def host(self) -> str:
        """The address that it comes from."""
        return self._host

    def renew(self, signed_in: SignedIn) -> None:
        """The same user has shown something newer, which may name other groups."""
        self._signed_in = signed_in
        self.forget()

    def forget(self) -> None:
        """Rules have changed: everything is asked again."""
        self._principal: Principal | None = None  # as rules see it
        self.writable: AbstractSet[str] = _NOTHING  # of its own when there is something: most connections are idle
        # Why not, or None: by question, by exchange for every key, by exchange and key. No errors are kept: one that is
        # raised again and again keeps every frame that it passed.
        self._known: dict[_Key, str | None] = {}
        self._by_key: dict[str, ByKey] = {}  # by exchange

    # -------------------------------------------------------------- operations

    def check(self, asked: Asked) -> None:
        """Raises AccessRefused; NotAllowed, which ends the connection, where it is about the virtual host."""
        if text := self._refusal(asked):
            raise self._denied(asked.kind, asked.name, text)

    def check_one_of(self, asked: Sequence[Asked]) -> None:
        """One of them has to be allowed; else raises why the first is not."""
        if all(map(self._refusal, asked)):
            self.check(asked[0])

    def check_some_key(self, asked: Asked) -> None:
        """To publish with keys that are not known yet: raises where no key could be allowed."""
        text = self._refusal(asked)
        if text and not self._decide(asked).by_key:
            raise self._denied(asked.kind, asked.name, text)

    def _refusal(self, asked: Asked) -> str | None:
        try:
            return self._known[asked]
        except KeyError:
            text = self._why_not(asked, self._decide(asked))
        if asked.kind is not Kind.VIRTUALHOST:  # which is asked about once
            self._remember(asked, asked, text)
        return text

    # -------------------------------------------------------------- publishes

    def refusal_to_publish(self, virtual_host: str, exchange: str, routing_key: str) -> BrokerError | None:
        """Why such a message may not be published; `writable` says more often that it may."""
        known = self._known
        text = known.get(exchange) or known.get((exchange, routing_key), _UNKNOWN)
        if text is _UNKNOWN:
            text = self._ask_to_publish(virtual_host, exchange, routing_key)
        return self._denied(Kind.EXCHANGE, exchange, text) if text else None

    def _ask_to_publish(self, virtual_host: str, exchange: str, routing_key: str) -> str | None:
        if by_key := self._by_key.get(exchange):
            return self._ask_by_key(by_key, virtual_host, exchange, routing_key)
        asked = questions.publish(virtual_host, exchange, routing_key)
        verdict = self._decide(asked)
        text = self._why_not(asked, verdict)
        if verdict.by_key:
            self._go_by_key(asked)
            self._remember(asked, (exchange, routing_key), text)
        elif text:
            self._remember(asked, exchange, text)
        elif isinstance(self.writable, set) and len(self.writable) < _MOST:
            self.writable.add(exchange)
        else:
            self.writable = {exchange}
        return text

    def _go_by_key(self, asked: Asked) -> None:
        if len(self._by_key) >= _FEW:
            self._by_key.clear()
        self._by_key[asked.name] = self._permits.access.by_key(self._known_as(), asked)

    def _ask_by_key(self, by_key: ByKey, virtual_host: str, exchange: str, routing_key: str) -> str | None:
        """Keys may all be new: no question is put together where none has to be told."""
        verdict, text = by_key.verdict(routing_key), None
        if verdict.logged or not verdict.allowed:
            asked = questions.publish(virtual_host, exchange, routing_key)
            self._log(asked, verdict)
            text = self._why_not(asked, verdict)
        if len(exchange) + len(routing_key) <= _LONGEST:
            self._keep((exchange, routing_key), text)
        return text

    def _remember(self, asked: Asked, key: _Key, text: str | None) -> None:
        if _length(asked) <= _LONGEST:
            self._keep(key, text)

    def _keep(self, key: _Key, text: str | None) -> None:
        known = self._known
        if len(known) >= _FEW and len(known) >= self._permits.most:
            known.clear()
        known[key] = text

    # -------------------------------------------------------------- decisions

    def _decide(self, asked: Asked) -> Verdict:
        verdict = self._permits.decide(self._known_as(), asked)
        self._log(asked, verdict)
        return verdict

    def _log(self, asked: Asked, verdict: Verdict) -> None:
        if verdict.logged:
            about = {"action": asked.action.value, "kind": asked.kind.value, "name": asked.name}
            decision = verdict.decision.value
            log.info("a rule was followed", user=self._user, decision=decision, rule=verdict.rule, **about)

    def _known_as(self) -> Principal:
        if self._principal is None:
            self._principal = self._made_principal()
        return self._principal

    def _made_principal(self) -> Principal:
        rules, signed_in = self._permits.access.rules, self._signed_in
        principal = rules.principal(self._user, self._host, self._host_name)
        if signed_in is None:
            return principal
        # Tags are its provider's: somebody of that name who is on record here may be another one.
        return replace(principal, groups=principal.groups | signed_in.groups, tags=signed_in.tags)

    def _why_not(self, asked: Asked, verdict: Verdict) -> str | None:
        return None if verdict.allowed else refusal(Principal(self._user), asked, verdict)

    def _denied(self, kind: Kind, name: str, text: str) -> BrokerError:
        """The error that says so; it is on record too."""
        self._permits.tell(Entry(DENIED, self._user, peer=self._host, what=kind.value, name=name, reason=text))
        return (NotAllowed if kind is Kind.VIRTUALHOST else AccessRefused)(text)


def _length(asked: Asked) -> int:
    return len(asked.name) + len(asked.routing_key) + (len(asked.other.name) if asked.other else 0)
