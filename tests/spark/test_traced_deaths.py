"""What a look-up says of messages whose owners died: what is true, and what the audit says of them. No Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from services.common.trace import Match
from services.mgmt.lookup.assemble import assemble
from services.mgmt.lookup.database import Database
from services.mgmt.lookup.fate import Record
from services.mgmt.lookup.owners import Owners
from services.mgmt.lookup.search import Search
from services.mgmt.lookup.way import follow
from tests.support.deaths import GAPS, TRUTH, deaths
from tests.support.histories import ALLOWED, histories
from tests.support.ledger_rows import START, file_rows
from tests.support.traced_history import traced

HISTORIES = 3000
_BEGIN = int(START.timestamp()) * 1_000_000


def test_a_look_up_says_what_the_audit_says(tmp_path: Path) -> None:
    """Message by message, the fate and the gap to blame are the same."""
    file_rows(tmp_path, "stages", deaths())
    file_rows(tmp_path, "gaps", GAPS)
    search = Search(Database(tmp_path))
    record = Record(search.gaps(_BEGIN), search.followers, _BEGIN + 1000 * 1_000_000, owners=Owners(search).of)
    found = {}
    for number, one in enumerate(TRUTH, 1):
        uid = 10 * number
        journey = assemble(Match(uid=uid, kind="uid", time_us=None), follow(search, uid, _BEGIN, lambda: False), record)
        [copy] = journey.messages[0].copies
        found[copy.queue] = (copy.fate, copy.gap.instance if copy.gap else "")
        assert all(gap == copy.gap for gap in journey.gaps) or not copy.gap, one
    assert {queue: fate for queue, fate in found.items() if queue != "expiring"} == {
        queue: (fate[0], fate[2]) for queue, *_, fate in TRUTH if fate
    }


def test_any_process_dies_at_any_time() -> None:
    """Whichever process dies at any moment, no fate is wrong, and an unknown one names a gap."""
    found: Counter[tuple[str, str, bool]] = Counter()
    for one in histories(HISTORIES, seed=13):
        fate, blamed = traced(one, one.gaps)
        assert fate in ALLOWED[one.truth], one
        assert bool(blamed) or fate != "unknown", one
        found[one.truth, fate, one.is_clear] += 1
    assert {truth for truth, _, _ in found} == set(ALLOWED)
    assert found["lost", "unknown", True] == found["waits", "unknown", True] == 0
    assert found["lost", "lost (transient)", True] > HISTORIES / 100


def test_any_process_gives_rows_up_besides() -> None:
    """The same where processes have several gaps each; and what is certain is still said."""
    found: Counter[tuple[str, str]] = Counter()
    for one in histories(HISTORIES, seed=17, busy=0.5):
        fate, blamed = traced(one, one.gaps)
        assert fate in ALLOWED[one.truth], one
        assert bool(blamed) or fate != "unknown", one
        found[one.truth, fate] += 1
    assert found["lost", "lost (transient)"] > HISTORIES / 100
