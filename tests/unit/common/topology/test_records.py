"""Records of the topology, beside those of older releases."""

from __future__ import annotations

import json

from services.common.topology.definitions import Host
from services.common.topology.records import read_virtual_host, virtual_host_record


def test_virtual_hosts_from_before() -> None:
    """They have no id, and are read."""
    assert read_virtual_host(b'{"name": "/"}') == Host("/")


def test_a_virtual_host_made_again() -> None:
    """Is another one, in a record that has all that there was in one."""
    first, second = (virtual_host_record(Host("/", number)) for number in (1, 2))
    assert first != second
    assert json.loads(first.value) == {"name": "/", "id": 1}
    assert read_virtual_host(second.value) == Host("/", 2)
