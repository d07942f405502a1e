"""gRPC targets."""

from __future__ import annotations

import pytest

from services.common.streams.address import Address


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("unix:/run/hopline/s", Address(path="/run/hopline/s")),
        ("unix:///run/hopline/s", Address(path="/run/hopline/s")),
        ("unix:here/s", Address(path="here/s")),
        ("127.0.0.1:80", Address(host="127.0.0.1", port=80)),
        ("queue-1.hopline:7000", Address(host="queue-1.hopline", port=7000)),
        ("dns:///queue-1:7000", Address(host="queue-1", port=7000)),
        ("[::1]:7000", Address(host="::1", port=7000)),
        ("dns:///[::1]:65535", Address(host="::1", port=65_535)),
        (":7000", Address(port=7000)),
        ("0.0.0.0:0", Address(host="0.0.0.0", port=0)),
    ],
)
def test_targets(target: str, expected: Address) -> None:
    """As gRPC reads them."""
    assert Address.parse(target) == expected


@pytest.mark.parametrize(
    "target",
    ["", "nonsense", "host:", "host:http", "host:-1", "host:65536", "host:²", "host:8 0", "[::1]", "unix:", "unix://"],
)
def test_what_is_no_target(target: str) -> None:
    """Says what it is not, and what would be one."""
    with pytest.raises(OSError, match="is not an address: host:port or unix:path"):
        Address.parse(target)
