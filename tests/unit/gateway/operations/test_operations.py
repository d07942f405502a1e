"""Where every request passes."""

from __future__ import annotations

from services.gateway import vocabulary as v
from services.gateway.operations import OPERATIONS


def _kinds(of: type[v.Request]) -> set[type[v.Request]]:
    return {kind for each in of.__subclasses__() for kind in {each, *_kinds(each)}}


def test_every_request_has_a_row() -> None:
    """What an engine can ask for is in the table, and nothing else is: none is done that is not looked up there."""
    # By name: the classes that the dataclasses were made from are subclasses, too, as long as they are there.
    of_vocabulary = {kind.__name__ for kind in _kinds(v.Request) if kind.__module__ == v.__name__}
    assert {kind.__name__: kind for kind in OPERATIONS} == {name: getattr(v, name) for name in of_vocabulary}
