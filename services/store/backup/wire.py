"""Pieces of a snapshot as protobuf messages, for the wire and for files, and back."""

from __future__ import annotations

from services.rpc.store_pb2 import (
    BackupPiece,
    Delivered,
    EntryBatch,
    Floor,
    KeptContent,
    KeptDequeues,
    KeptLease,
    KeptOutcome,
    KeptRefusal,
    KeptWriter,
    Record,
    Taken,
)
from services.store.provider import Changes, DequeueRow, EntryRow, LeaseRow, RecordRow, RefusalRow, TakenRow


def to_piece(changes: Changes) -> BackupPiece:
    """A message with everything in a snapshot's piece."""
    contents = [KeptContent(id=number, columns=columns) for number, columns in changes.contents.items()]
    contents += [KeptContent(id=number, columns=columns, blanked=True) for number, columns in changes.blanked.items()]
    return BackupPiece(
        running=changes.at,
        contents=contents,
        entries=[
            EntryBatch(id=row.id, partition=row.partition, content=row.content, count=row.total, entries=row.entries)
            for row in changes.entries.values()
        ],
        dequeues=[KeptDequeues(batch=row.batch, left=row.left, indexes=row.indexes) for row in changes.dequeues],
        delivered=[Delivered(batch=batch, upto=upto) for batch, upto in changes.delivered.items()],
        taken=[
            Taken(id=row.id, partition=row.partition, origin=row.origin, upto=row.upto, messages=row.messages)
            for row in changes.taken
        ],
        floors=[
            Floor(partition=partition, origin=origin, uid=uid) for (partition, origin), uid in changes.floors.items()
        ],
        writers=[KeptWriter(origin=origin, sequence=sequence) for origin, sequence in changes.writers.items()],
        refusals=[KeptRefusal(origin=row.writer, sequence=row.sequence, answer=row.answer) for row in changes.refusals],
        outcomes=[
            KeptOutcome(transaction=number, committed=committed) for number, committed in changes.outcomes.items()
        ],
        leases=[KeptLease(**row._asdict()) for row in changes.leases.values()],
        records=[Record(**row._asdict()) for row in changes.records.values() if row],
        origin=changes.origin,
        incarnation=changes.incarnation,
    )


def from_piece(piece: BackupPiece) -> Changes:
    """What `to_piece` was given."""
    return Changes(
        at=piece.running,
        contents={each.id: each.columns for each in piece.contents if not each.blanked},
        blanked={each.id: each.columns for each in piece.contents if each.blanked},
        entries={
            each.id: EntryRow(each.id, each.partition, each.content, each.count, each.entries) for each in piece.entries
        },
        dequeues=[DequeueRow(each.batch, each.left, each.indexes) for each in piece.dequeues],
        delivered={each.batch: each.upto for each in piece.delivered},
        taken=[TakenRow(each.id, each.partition, each.origin, each.upto, each.messages) for each in piece.taken],
        floors={(each.partition, each.origin): each.uid for each in piece.floors},
        writers={each.origin: each.sequence for each in piece.writers},
        refusals=[RefusalRow(each.origin, each.sequence, each.answer) for each in piece.refusals],
        outcomes={each.transaction: each.committed for each in piece.outcomes},
        leases={
            each.name: LeaseRow(each.name, each.epoch, each.member, each.role, each.address) for each in piece.leases
        },
        records={
            (each.kind, each.key): RecordRow(each.kind, each.key, each.value, each.version) for each in piece.records
        },
        origin=piece.origin,
        running=piece.running if piece.origin or piece.incarnation else 0,
        incarnation=piece.incarnation,
    )
