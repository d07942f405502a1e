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

_MOST = 10_000  # decisions about all users together
# Bytes of decisions, about: of one connection, of all, and of one among very many.
_SIZE, _OF_ALL, _LEAST = 2 << 20, 64 << 20, 32 << 10
_FEW = 100  # exchanges of one connection that are decided key by key
_DECISION = 200  # bytes of one, about, besides its names and its text
_LONGEST = 1024  # characters of the names in a question: longer ones are rare, and would take much memory
_UNKNOWN: Final = "?"  # in place of a refusal; compared by identity
_NOTHING: frozenset[str] = frozenset()


_Key: TypeAlias = Asked | str | tuple[str, str]
_Decisions: TypeAlias = dict[Asked, Verdict]
_NONE_YET: Final[_Decisions] = {}  # stays empty: before the first decision the principal gets its own table


class Permits:
    """What all connections of a gateway share of their permissions."""

    def __init__(self, access: Access, audit: Audit | None = None) -> None:
        """Denials go to the `audit` log."""
        self.access = access
        self._audit = audit
        self._given: WeakSet[Permitted] = WeakSet()
        self._decided: dict[Principal, _Decisions] = {}
        self._count = 0  # of decisions, all principals together
        access.listeners.append(self._forget)

    def of(self, user: str, host: str, host_name: str = "", signed_in: SignedIn | None = None) -> Permitted:
        """The permissions of a client that has signed in, with the groups and tags that its provider knows."""
        permitted = Permitted(self, user, host, host_name, signed_in)
        self._given.add(permitted)
        return permitted

    @property
    def most(self) -> int:
        """Bytes of decisions that a connection remembers; beyond, they are asked for again."""
        return min(_SIZE, max(_LEAST, _OF_ALL // (len(self._given) or 1)))

    def tell(self, denied: Entry) -> None:
        """Counts a denial in the audit log: a client may ask for the same again and again."""
        if self._audit:
            self._audit.count(denied)

    def decided(self, principal: Principal) -> _Decisions:
        """The table of decisions about a principal: its connections share it, and each looks it up once."""
        if len(self._decided) >= _MOST:
            self._clear()
        return self._decided.setdefault(principal, {})

    def decide(self, principal: Principal, asked: Asked, decided: _Decisions) -> Verdict:
        """Decides once for all connections of a user: they ask the same, and many have few messages each."""
        of_all_keys = asked.without_key()
        verdict = decided.get(of_all_keys)
        if verdict is None:
            verdict = self.access.decide(principal, asked)
            if not verdict.by_key and _length(of_all_keys) <= _LONGEST:
                self._keep(of_all_keys, verdict, decided)
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
    """The permissions of one connection; `writable`: exchanges to which it may publish with any routing key."""

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
        "_size",
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
        """The user, as its authentication provider knows it."""
        return self._signed_in or SignedIn(self._user, "")

    @property
    def host(self) -> str:
        """The address that the client comes from."""
        return self._host

    def renew(self, signed_in: SignedIn) -> None:
        """The same user has shown newer credentials, such as a token, which may name other groups."""
        self._signed_in = signed_in
        self.forget()

    def look_up_anew(self) -> None:
        """The shared tables of decisions were dropped: looks its own up again."""
        self._principal: Principal | None = None  # the user, as rules see it
        self._decided: _Decisions = _NONE_YET  # about that principal

    def forget(self) -> None:
        """Rules have changed: everything is asked again."""
        self.look_up_anew()
        self.writable: AbstractSet[str] = _NOTHING  # a set of its own once it has an entry: most connections are idle
        # Why it is refused, or None: by question, by exchange for every key, by exchange and key. Texts and no errors:
        # an error that is raised again and again keeps every stack frame that it passed.
        self._known: dict[_Key, str | None] = {}
        self._size = 0  # bytes of these, and of what is writable
        self._by_key: dict[str, ByKey] = {}  # by exchange

    # -------------------------------------------------------------- operations

    def check(self, asked: Asked) -> None:
        """Raises AccessRefused; NotAllowed, which ends the connection, where it is about the virtual host."""
        if text := self._refusal(asked):
            raise self._denied(asked.kind, asked.name, text)

    def check_one_of(self, asked: Sequence[Asked]) -> None:
        """Raises why the first is not allowed, unless one of them is."""
        if all(map(self._refusal, asked)):
            self.check(asked[0])

    def check_some_key(self, asked: Asked) -> None:
        """Checks a publisher whose routing keys are not known yet: raises where no key could be allowed."""
        text = self._refusal(asked)
        if text and not self._decide(asked).by_key:
            raise self._denied(asked.kind, asked.name, text)

    def _refusal(self, asked: Asked) -> str | None:
        verdict = self._decided.get(asked)
        if verdict is not None and verdict.allowed and not verdict.logged:
            return None  # as decided before for the user, perhaps on another connection
        text = self._known.get(asked, _UNKNOWN)
        return self._ask(asked) if text is _UNKNOWN else text

    def _ask(self, asked: Asked) -> str | None:
        verdict = self._decide(asked)
        text = self._why_not(asked, verdict)
        # The user's shared table has what is allowed to all its connections; a virtual host is asked about only once.
        if (text or verdict.logged or verdict.by_key) and asked.kind is not Kind.VIRTUALHOST:
            self._remember(asked, asked, text)
        return text

    # -------------------------------------------------------------- publishes

    def refusal_to_publish(self, virtual_host: str, exchange: str, routing_key: str) -> BrokerError | None:
        """Why a message may not be published, or None; callers look at `writable` before, which is faster."""
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
        else:
            self._may_write(exchange)
        return text

    def _may_write(self, exchange: str) -> None:
        """It need not be there: a client can name as many as it likes."""
        self._grow(len(exchange))
        if isinstance(self.writable, set):
            self.writable.add(exchange)
        else:
            self.writable = {exchange}

    def _go_by_key(self, asked: Asked) -> None:
        if len(self._by_key) >= _FEW:
            self._by_key.clear()
        self._by_key[asked.name] = self._permits.access.by_key(self._known_as(), asked)

    def _ask_by_key(self, by_key: ByKey, virtual_host: str, exchange: str, routing_key: str) -> str | None:
        """Keys may all be new: makes an `Asked` only where a decision is logged or denied."""
        verdict, text = by_key.verdict(routing_key), None
        if verdict.logged or not verdict.allowed:
            asked = questions.publish(virtual_host, exchange, routing_key)
            self._log(asked, verdict)
            text = self._why_not(asked, verdict)
        if (size := len(exchange) + len(routing_key)) <= _LONGEST:
            self._keep((exchange, routing_key), text, size)
        return text

    def _remember(self, asked: Asked, key: _Key, text: str | None) -> None:
        if (size := _length(asked)) <= _LONGEST:
            self._keep(key, text, size)

    def _keep(self, key: _Key, text: str | None, size: int) -> None:
        """`size` of the names in it."""
        self._grow(size + len(text or ""))
        self._known[key] = text

    def _grow(self, size: int) -> None:
        """Makes room for names and texts of such a size."""
        size += _DECISION
        if self._size + size > _LEAST and self._size + size > self._permits.most:
            self._known.clear()
            self.writable, self._size = _NOTHING, 0
        self._size += size

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
        decided = self._permits.decided(principal)  # may clear all tables, and so this one's attributes
        self._principal, self._decided = principal, decided
        return principal

    def _made_principal(self) -> Principal:
        rules, signed_in = self._permits.access.rules, self._signed_in
        principal = rules.principal(self._user, self._host, self._host_name)
        if signed_in is None:
            return principal
        # Tags are its provider's: a user on record here under the same name may be another person.
        groups = principal.groups | signed_in.groups
        return Principal(principal.name, groups, signed_in.tags, principal.host, principal.host_name)

    def _why_not(self, asked: Asked, verdict: Verdict) -> str | None:
        return None if verdict.allowed else refusal(Principal(self._user), asked, verdict)

    def _denied(self, kind: Kind, name: str, text: str) -> BrokerError:
        """The error for the client; the denial is in the audit log too."""
        self._permits.tell(Entry(DENIED, self._user, peer=self._host, what=kind.value, name=name, reason=text))
        return (NotAllowed if kind is Kind.VIRTUALHOST else AccessRefused)(text)


def _length(asked: Asked) -> int:
    return len(asked.name) + len(asked.routing_key) + (len(asked.other.name) if asked.other else 0)
