"""What a command says of an error, beside what the service said."""

from __future__ import annotations

import pytest

from services.cli.hints import advised


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("no policy 'p' in vhost '/'", "`hopline policies list` says"),
        ("no operator policy 'p' in vhost '/'", "`hopline policies list --operator` says"),
        ("invalid policy 'p' in vhost '/': x is not recognised in a policy", "such as max-length"),
        ("unknown exchange type 'x'", "`hopline exchanges declare --help`"),
        ("no queue 'q' in vhost '/'", "`hopline queues list` says"),
    ],
)
def test_what_to_do(text: str, hint: str) -> None:
    """Comes behind what is wrong, on the same line."""
    told = advised(text)
    assert told.startswith(f"{text}; ")
    assert hint in told
    assert "\n" not in told


def test_what_nobody_can_advise() -> None:
    """Is told as it is."""
    assert advised("a queue needs a name") == "a queue needs a name"
