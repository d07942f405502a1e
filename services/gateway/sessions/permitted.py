"""What the user of one connection may do: asked when an operation begins, and remembered until rules change.

A publish costs a look-up: of its exchange, or of exchange and routing key where rules go by that.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
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
_Decisions: TypeAlias = dict[Asked, Verdict]
_NONE_YET: Final[_Decisions] = {}  # nothing comes in: before a decision there is a principal, which has its own


class Permits:
    """Of all connections of a gateway."""

    def __init__(self, access: Access, audit: Audit | None = None) -> None:
        """What is denied goes to the `audit` log."""
        self.access = access
        self._audit = audit
        self._given: WeakSet[Permitted] = WeakSet()
        self._decided: dict[Principal, _Decisions] = {}
        self._count = 0  # of them, all principals together
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

    def decided(self, principal: Principal) -> _Decisions:
        """What was decided about a principal: each of its connections has the same table, and looks it up once."""
        if len(self._decided) >= _MOST:
            self._clear()
        return self._decided.setdefault(principal, {})

    def decide(self, principal: Principal, asked: Asked, decided: _Decisions) -> Verdict:
        """Connections of the same user ask the same, and many have few messages each: it is decided about once."""
        verdict = decided.get(asked)
        if verdict is None:
            verdict = self.access.decide(principal, asked)
            if not verdict.by_key and _length(asked) <= _LONGEST:
                self._keep(asked, verdict, decided)
        return verdict

    def _keep(self, asked: Asked, verdict: Verdict, decided: _Decisions) -> None:
        if self._count >= _MOST:
            self._clear()
        self._count += 1
        decided[asked] = verdict

    def _clear(self) -> None:
        self._decided.clear()
        self._count = 0
        for permitted in self._given:
            permitted.look_up_anew()

    def _forget(self) -> None:
        self._clear()
        for permitted in self._given:
            permitted.forget()


class Permitted:
    """`writable`: exchanges to which anything may be published, whatever its key."""

    __slots__ = (
        "__weakref__",
        "_by_key",
        "_decided",
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

    def look_up_anew(self) -> None:
        """The tables of decisions are others."""
        self._principal: Principal | None = None  # as rules see it
        self._decided: _Decisions = _NONE_YET  # about it

    def forget(self) -> None:
        """Rules have changed: everything is asked again."""
        self.look_up_anew()
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
        verdict = self._decided.get(asked)
        if verdict is not None and verdict.allowed and not verdict.logged:
            return None  # as for another connection of the same user
        text = self._known.get(asked, _UNKNOWN)
        return self._ask(asked) if text is _UNKNOWN else text

    def _ask(self, asked: Asked) -> str | None:
        verdict = self._decide(asked)
        text = self._why_not(asked, verdict)
        # What is allowed to all connections of the user needs no other place; a virtual host is asked about once.
        if (text or verdict.logged or verdict.by_key) and asked.kind is not Kind.VIRTUALHOST:
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
        principal = self._known_as()
        verdict = self._permits.decide(principal, asked, self._decided)
        self._log(asked, verdict)
        return verdict

    def _log(self, asked: Asked, verdict: Verdict) -> None:
        if verdict.logged:
            about = {"action": asked.action.value, "kind": asked.kind.value, "name": asked.name}
            decision = verdict.decision.value
            log.info("a rule was followed", user=self._user, decision=decision, rule=verdict.rule, **about)

    def _known_as(self) -> Principal:
        if self._principal is not None:
            return self._principal
        principal = self._made_principal()
        decided = self._permits.decided(principal)  # by which all may have to look up anew, this one too
        self._principal, self._decided = principal, decided
        return principal

    def _made_principal(self) -> Principal:
        rules, signed_in = self._permits.access.rules, self._signed_in
        principal = rules.principal(self._user, self._host, self._host_name)
        if signed_in is None:
            return principal
        # Tags are its provider's: somebody of that name who is on record here may be another one.
        groups = principal.groups | signed_in.groups
        return Principal(principal.name, groups, signed_in.tags, principal.host, principal.host_name)

    def _why_not(self, asked: Asked, verdict: Verdict) -> str | None:
        return None if verdict.allowed else refusal(Principal(self._user), asked, verdict)

    def _denied(self, kind: Kind, name: str, text: str) -> BrokerError:
        """The error that says so; it is on record too."""
        self._permits.tell(Entry(DENIED, self._user, peer=self._host, what=kind.value, name=name, reason=text))
        return (NotAllowed if kind is Kind.VIRTUALHOST else AccessRefused)(text)


def _length(asked: Asked) -> int:
    return len(asked.name) + len(asked.routing_key) + (len(asked.other.name) if asked.other else 0)
