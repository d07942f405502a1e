from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from services.common.bus import facts as kinds
from services.common.bus.event import Event
from services.common.bus.facts import Facts
from services.common.bus.follow import Sequences
from services.common.bus.subject import subject_of, virtual_host_token

_KINDS = get_args(get_args(Facts)[0])


def _event(facts: Facts, sequence: int = 1, instance: str = "a") -> Event:
    return Event(time_ms=1, service="store", instance=instance, origin=0, sequence=sequence, facts=facts)


@given(st.one_of(*(st.builds(kind) for kind in _KINDS)), st.integers(0), st.text())
def test_round_trip(facts: Facts, sequence: int, instance: str) -> None:
    """Every kind of event comes out of its JSON as it went in."""
    event = _event(facts, sequence, instance)
    assert Event.from_json(event.to_json()) == event


def test_newer_teller() -> None:
    """Fields that are not known here are passed over; a kind that is not known is an error that says so."""
    payload = json.loads(_event(kinds.Gap(first=1, last=2, count=2)).to_json())
    payload["mood"] = payload["facts"]["mood"] = "fine"
    assert Event.from_json(json.dumps(payload).encode()).facts == kinds.Gap(first=1, last=2, count=2)
    payload["facts"]["kind"] = "queue.painted"
    with pytest.raises(ValidationError, match=r"queue\.painted"):
        Event.from_json(json.dumps(payload).encode())


@given(st.lists(st.text(), unique=True, max_size=20))
def test_virtual_host_tokens(names: list[str]) -> None:
    """Each virtual host has a token of its own that NATS takes, and none has that of events without one."""
    tokens = [virtual_host_token(name) for name in names]
    assert len(set(tokens)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_%-]+", token) and token != "_" for token in tokens)


@pytest.mark.parametrize(
    ("name", "token"), [("/", "%2F"), ("a.b", "a%2Eb"), ("_", "%5F"), ("", "%"), ("prod-1", "prod-1"), ("ü", "%C3%BC")]
)
def test_virtual_host_token(name: str, token: str) -> None:
    """A plain name is its own token."""
    assert virtual_host_token(name) == token


def test_subjects() -> None:
    """Events of a virtual host are told under its token, the others under _."""
    assert subject_of(kinds.VirtualHostCreated(virtual_host="/")) == "hopline.event.%2F.virtual_host.created"
    lease = kinds.LeaseReleased(lease="router", partition=None, role="router", member="m", epoch=3)
    assert subject_of(lease) == "hopline.event._.lease.released"


def test_all_kinds_are_documented() -> None:
    """The README names every kind and every field."""
    text = (Path(kinds.__file__).parent / "README.md").read_text()
    for kind in _KINDS:
        fields = TypeAdapter(kind).json_schema()["properties"]
        assert f"`{kind.model_fields['kind'].default}`" in text
        assert [field for field in fields if field != "kind" and f"`{field}`" not in text] == []


def test_sequences() -> None:
    """A follower of all events notices what is missing; what a gap event names is known already."""
    sequences, facts = Sequences(), kinds.VirtualHostCreated(virtual_host="/")
    gap = kinds.Gap(first=9, last=10, count=2)
    heard = [_event(facts, 5), _event(facts, 6), _event(facts, 9), _event(facts, 1, "b"), _event(gap, 11)]
    assert [sequences.missing_before(event) for event in heard] == [0, 0, 2, 0, 0]
    assert sequences.missing_before(_event(facts, 11)) == 1
