"""RabbitMQ's access control: permissions by user and virtual host, topic permissions, and tags beyond messaging."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from services.common.access.action import Action, Kind
from services.common.access.asked import Asked, Principal
from services.common.access.expression import expanded, fits, fitting
from services.common.access.needs import ANY, CONFIGURE, READ, WRITE, Need, named, needs_of
from services.common.access.tags import tags_for
from services.common.access.verdict import DEFERRED, Decision, Verdict
from services.common.access.words import need_refused, topic_refused

if TYPE_CHECKING:
    from services.common.access.records import Permission
    from services.common.access.rules import Rules

_REMEMBERED = 1024
_NOT_BEGUN = Verdict(
    Decision.ALLOWED, "there are no permissions yet: mgmt of this version gives users what they had, when it starts"
)


class Permissions:
    """As AccessControl says."""

    def at_virtual_host(self, principal: Principal, asked: Asked, rules: Rules) -> Verdict:  # noqa: ARG002 - as said
        """Defers: all permissions are the broker's."""
        return DEFERRED

    def at_broker(self, principal: Principal, asked: Asked, rules: Rules) -> Verdict:
        """Decides by permissions, or for what is not messaging by tags."""
        needs = needs_of(asked)
        if needs is not None:
            return self._by_permission(principal, asked, needs, rules)
        if asked.action is Action.LOOK:
            return _by_any(principal, asked, rules)
        if asked.action is Action.ACCESS and asked.kind is Kind.VIRTUALHOST:
            return _by_there_being_one(principal, asked, rules)
        return _by_tags(principal, asked)

    def _by_permission(self, principal: Principal, asked: Asked, needs: list[Need], rules: Rules) -> Verdict:
        if not rules.begun:
            return _NOT_BEGUN
        permission = rules.permission(principal.name, asked.virtual_host)
        for need in needs:
            if permission is None or not fits(_expression(permission, need), need.name):
                return Verdict(
                    Decision.DENIED, _told(principal, asked, permission), need_refused(need, asked.virtual_host)
                )
        if topics := [need for need in needs if need.topic]:
            return _by_topic(principal, asked, topics[0], rules, _told(principal, asked, permission))
        return Verdict(Decision.ALLOWED, _told(principal, asked, permission))


def _by_topic(principal: Principal, asked: Asked, need: Need, rules: Rules, otherwise: str) -> Verdict:
    """Without a topic permission for the exchange, every key is allowed."""
    topic = rules.topic_permission(principal.name, asked.virtual_host, asked.name)
    if topic is None:
        return Verdict(Decision.ALLOWED, otherwise)
    text = expanded(topic.write if need.permission == WRITE else topic.read, principal.name, asked.virtual_host)
    rule = _topic_rule(principal.name, topic.exchange, topic.virtual_host, topic.write, topic.read)

    fits_key = fitting(text)

    def of_key(key: str) -> Verdict:
        if fits_key(key):
            return allowed
        what = topic_refused(need, asked.virtual_host, key)
        return Verdict(Decision.DENIED, rule, what, by_key=True, of_key=of_key)

    allowed = Verdict(Decision.ALLOWED, rule, by_key=True, of_key=of_key)
    return of_key(asked.routing_key)


def _by_any(principal: Principal, asked: Asked, rules: Rules) -> Verdict:
    """A user with any permission on it may know whether it exists."""
    if not rules.begun:
        return _NOT_BEGUN
    permission = rules.permission(principal.name, asked.virtual_host)
    needs = [named(Need(kind, asked.kind, asked.name)) for kind in (READ, WRITE, CONFIGURE)]
    if permission and any(fits(_expression(permission, need), need.name) for need in needs):
        return Verdict(Decision.ALLOWED, _told(principal, asked, permission))
    return Verdict(
        Decision.DENIED,
        _told(principal, asked, permission),
        need_refused(needs[0]._replace(permission=ANY), asked.virtual_host),
    )


def _by_there_being_one(principal: Principal, asked: Asked, rules: Rules) -> Verdict:
    if not rules.begun:
        return _NOT_BEGUN
    permission = rules.permission(principal.name, asked.name)
    decision = Decision.ALLOWED if permission else Decision.DENIED
    return Verdict(decision, _told(principal, asked, permission))


def _by_tags(principal: Principal, asked: Asked) -> Verdict:
    wanted = tags_for(asked.action, asked.kind)
    has = sorted(wanted & principal.tags)
    if has:
        return Verdict(Decision.ALLOWED, f"user '{principal.name}' has the tag {has[0]}")
    return Verdict(Decision.DENIED, f"user '{principal.name}' has none of the tags {', '.join(sorted(wanted))}")


def _expression(permission: Permission, need: Need) -> str:
    text: str = getattr(permission, need.permission)
    return text


def _told(principal: Principal, asked: Asked, permission: Permission | None) -> str:
    host = asked.virtual_host or asked.name
    if permission is None:
        return f"user '{principal.name}' has no permission in vhost '{host}'"
    its = (permission.virtual_host, permission.configure, permission.write, permission.read)
    return _rule(principal.name, *its)


# Every new routing key is decided: words that only operators read are put together once.
@lru_cache(_REMEMBERED)
def _rule(user: str, virtual_host: str | None, configure: str, write: str, read: str) -> str:
    where = "every vhost" if virtual_host is None else f"vhost '{virtual_host}'"
    return f"permission of user '{user}' in {where}: configure '{configure}' write '{write}' read '{read}'"


@lru_cache(_REMEMBERED)
def _topic_rule(user: str, exchange: str, virtual_host: str, write: str, read: str) -> str:
    where = f"on exchange '{exchange}' in vhost '{virtual_host}'"
    return f"topic permission of user '{user}' {where}: write '{write}' read '{read}'"
