"""The writers of the journal, and the holder of the lease at that moment: on record in the store's own transactions.

The numbers of entry batches begin with their writer's origin. A trigger in the store's database puts it beside the
lease as it is in the same commit, so that a write by an owner of the past would show, whatever became of it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.chaos.account import Writing

if TYPE_CHECKING:
    from tests.support.chaos.containers import ContainerStack

_DATABASE = "/var/lib/hopline/hopline.db"
_OPEN = f"""
import json, sqlite3
connection = sqlite3.connect({_DATABASE!r}, timeout=30)
"""
_INSTALL = f"""{_OPEN}
connection.executescript('''
CREATE TABLE audit (
    partition INTEGER, epoch INTEGER, member TEXT, writer INTEGER, count INTEGER,
    PRIMARY KEY (partition, epoch, member, writer)
) WITHOUT ROWID;
CREATE TRIGGER audit_entry_batch AFTER INSERT ON entry_batch BEGIN
    INSERT INTO audit
        SELECT NEW.partition, epoch, member, NEW.id >> 39, 1 FROM lease WHERE name = 'partition/' || NEW.partition
        ON CONFLICT DO UPDATE SET count = count + 1;
END;
''')
"""
_READ = f"""{_OPEN}
rows = connection.execute("SELECT * FROM audit").fetchall()
[refusals] = connection.execute("SELECT count(*) FROM refusal").fetchone()
print(json.dumps([rows, refusals]))
"""


def install(stack: ContainerStack) -> None:
    """Has every write from now on put on record, where the store is a file: elsewhere there is no such record."""
    if stack.kept.servers:
        return
    stack.execute("store", "python3", "-c", _INSTALL)


def read(stack: ContainerStack) -> tuple[list[Writing], int]:
    """Which writer wrote where, and how many writes the store has refused."""
    if stack.kept.servers:
        return [], 0
    rows, refusals = json.loads(stack.execute("store", "python3", "-c", _READ))
    return [Writing(*row) for row in rows], refusals
