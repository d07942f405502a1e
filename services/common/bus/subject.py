"""The subject tree: hopline.event.<virtual host>.<thing>.<what happened>."""

from __future__ import annotations

from urllib.parse import quote

from services.common.bus.facts import Facts, InVirtualHost

ROOT = "hopline.event"
ALL = f"{ROOT}.>"
NO_VIRTUAL_HOST = "_"


def virtual_host_token(name: str) -> str:
    """A virtual host's name as one token of a subject: percent-encoded, so that no two names have the same token."""
    if name == NO_VIRTUAL_HOST:
        return "%5F"
    # A subject has no empty tokens; no other name is encoded as a lone %.
    return quote(name, safe="").replace(".", "%2E").replace("~", "%7E") or "%"


def subject_of(facts: Facts) -> str:
    """The subject on which an event about `facts` is published."""
    token = virtual_host_token(facts.virtual_host) if isinstance(facts, InVirtualHost) else NO_VIRTUAL_HOST
    return f"{ROOT}.{token}.{facts.kind}"
