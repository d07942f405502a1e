"""The tables in PostgreSQL, as a list of migrations: a released one is never edited, changes are appended.

All of it is in a schema of its own, so that a database may have other things in it. Names are kept as UTF-8 bytes:
PostgreSQL's text cannot have zero bytes, and is in the database's encoding, and a group that cannot be written would be
tried for ever. `SELECT convert_from(key, 'UTF8') FROM hopline.record` shows them.
"""

from __future__ import annotations

from typing import Any

import structlog

from services.common.errors import InternalError

SCHEMA = "hopline"

log = structlog.get_logger()

_TABLES = """
-- Who writes. Every commit is of one epoch, and its group is numbered here in the same transaction.
CREATE TABLE store (
    alone boolean PRIMARY KEY DEFAULT true CHECK (alone), epoch bigint NOT NULL, owner bigint NOT NULL,
    written bigint NOT NULL, who text NOT NULL, since timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 10);
INSERT INTO store (epoch, owner, written, who) VALUES (0, 0, 0, '');

-- Everything of the journal is a row per batch, none per message. Ids are chosen by the writers.
CREATE TABLE content (id bigint PRIMARY KEY, whole boolean NOT NULL, columns bytea NOT NULL);
CREATE TABLE entry_batch (
    id bigint PRIMARY KEY, partition bigint NOT NULL, content bigint NOT NULL, count bigint NOT NULL,
    delivered_upto bigint NOT NULL DEFAULT 0, entries bytea NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX entry_batch_partition ON entry_batch (partition, id);
CREATE INDEX entry_batch_content ON entry_batch (content);
CREATE TABLE dequeue (
    batch bigint NOT NULL, remaining bigint NOT NULL, indexes bytea NOT NULL, PRIMARY KEY (batch, remaining)
);
-- To try whether bodies can be made smaller takes more than it gives.
ALTER TABLE content ALTER COLUMN columns SET STORAGE EXTERNAL;
ALTER TABLE entry_batch ALTER COLUMN entries SET STORAGE EXTERNAL;
ALTER TABLE dequeue ALTER COLUMN indexes SET STORAGE EXTERNAL;

CREATE TABLE floor (
    partition bigint NOT NULL, origin bigint NOT NULL, uid bigint NOT NULL, at bigint NOT NULL,
    PRIMARY KEY (partition, origin)
) WITH (fillfactor = 30);
CREATE TABLE taken (
    partition bigint NOT NULL, origin bigint NOT NULL, upto bigint NOT NULL, id bigint NOT NULL,
    messages bytea NOT NULL, PRIMARY KEY (partition, origin, upto, id)
);
CREATE TABLE journal_writer (
    origin bigint PRIMARY KEY, sequence bigint NOT NULL, at bigint NOT NULL
) WITH (fillfactor = 30);
CREATE TABLE refusal (
    origin bigint NOT NULL, sequence bigint NOT NULL, answer bytea NOT NULL, at bigint NOT NULL,
    PRIMARY KEY (origin, sequence)
);
-- In the order in which they are forgotten. All 64 bits of the id are a transaction's: from 2^63 on it is negative.
CREATE TABLE outcome (
    at bigint NOT NULL, id bigint NOT NULL, committed boolean NOT NULL, PRIMARY KEY (at, id)
);
CREATE TABLE lease (
    name bytea PRIMARY KEY, epoch bigint NOT NULL, member bytea NOT NULL, role bytea NOT NULL, address bytea NOT NULL
) WITH (fillfactor = 50);
-- Keys may be longer than what an index takes: `id` is the digest of kind and key.
CREATE TABLE record (
    id bytea PRIMARY KEY, kind bytea NOT NULL, key bytea NOT NULL, value bytea NOT NULL, version bigint NOT NULL
);
CREATE TABLE counter (name text PRIMARY KEY, value bigint NOT NULL) WITH (fillfactor = 30);
INSERT INTO counter VALUES ('origin', 0), ('incarnation', 0), ('running', 0);
"""

# One call is one group: a round trip, however many tables it touches, and a transaction by itself.
_WRITE = """
CREATE FUNCTION write(
    by_epoch bigint, number bigint, stamp bigint,
    dead_batches bigint[], dead_contents bigint[],
    content_ids bigint[], content_columns bytea[], blanked_ids bigint[], blanked_columns bytea[],
    entry_ids bigint[], entry_partitions bigint[], entry_contents bigint[], entry_counts bigint[],
    entry_columns bytea[],
    dequeue_batches bigint[], dequeue_remaining bigint[], dequeue_indexes bytea[],
    delivered_batches bigint[], delivered_uptos bigint[],
    replaced_partitions bigint[], replaced_origins bigint[],
    taken_ids bigint[], taken_partitions bigint[], taken_origins bigint[], taken_uptos bigint[],
    taken_messages bytea[],
    floor_partitions bigint[], floor_origins bigint[], floor_uids bigint[],
    writer_origins bigint[], writer_sequences bigint[],
    refusal_origins bigint[], refusal_sequences bigint[], refusal_answers bytea[],
    outcome_ids bigint[], outcomes boolean[],
    lease_names bytea[], lease_epochs bigint[], lease_members bytea[], lease_roles bytea[], lease_addresses bytea[],
    gone_records bytea[],
    record_ids bytea[], record_kinds bytea[], record_keys bytea[], record_values bytea[], record_versions bigint[],
    counters text[], counts bigint[]
) RETURNS void LANGUAGE plpgsql AS $write$
#variable_conflict use_column
BEGIN
    -- The fence, and by the row's lock the order: nobody becomes the writer between this and the commit.
    UPDATE store SET written = number WHERE epoch = by_epoch;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'epoch % is over', by_epoch USING ERRCODE = 'HOP01';
    END IF;
    IF cardinality(dead_batches) > 0 THEN
        DELETE FROM dequeue WHERE batch = ANY (dead_batches);
        DELETE FROM entry_batch WHERE id = ANY (dead_batches);
    END IF;
    IF cardinality(dead_contents) > 0 THEN
        DELETE FROM content WHERE id = ANY (dead_contents);
    END IF;
    IF cardinality(content_ids) > 0 THEN
        INSERT INTO content (id, whole, columns) SELECT n.id, true, n.columns
            FROM unnest(content_ids, content_columns) AS n (id, columns)
            ON CONFLICT (id) DO UPDATE SET whole = true, columns = excluded.columns;
    END IF;
    IF cardinality(blanked_ids) > 0 THEN
        INSERT INTO content (id, whole, columns) SELECT n.id, false, n.columns
            FROM unnest(blanked_ids, blanked_columns) AS n (id, columns)
            ON CONFLICT (id) DO UPDATE SET whole = false, columns = excluded.columns;
    END IF;
    IF cardinality(entry_ids) > 0 THEN
        INSERT INTO entry_batch (id, partition, content, count, entries)
            SELECT * FROM unnest(entry_ids, entry_partitions, entry_contents, entry_counts, entry_columns)
            ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(dequeue_batches) > 0 THEN
        INSERT INTO dequeue (batch, remaining, indexes)
            SELECT * FROM unnest(dequeue_batches, dequeue_remaining, dequeue_indexes) ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(delivered_batches) > 0 THEN
        UPDATE entry_batch AS b SET delivered_upto = n.upto
            FROM unnest(delivered_batches, delivered_uptos) AS n (batch, upto)
            WHERE b.id = n.batch AND b.delivered_upto < n.upto;
    END IF;
    IF cardinality(replaced_partitions) > 0 THEN
        DELETE FROM taken AS t USING unnest(replaced_partitions, replaced_origins) AS n (partition, origin)
            WHERE t.partition = n.partition AND t.origin = n.origin;
    END IF;
    IF cardinality(taken_ids) > 0 THEN
        INSERT INTO taken (id, partition, origin, upto, messages)
            SELECT * FROM unnest(taken_ids, taken_partitions, taken_origins, taken_uptos, taken_messages)
            ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(floor_partitions) > 0 THEN
        -- One that is said again is as old as it was: who is gone is forgotten, whoever owns the partition.
        INSERT INTO floor AS f (partition, origin, uid, at) SELECT n.partition, n.origin, n.uid, stamp
            FROM unnest(floor_partitions, floor_origins, floor_uids) AS n (partition, origin, uid)
            ON CONFLICT (partition, origin) DO UPDATE SET uid = excluded.uid, at = excluded.at
            WHERE f.uid <> excluded.uid;
        DELETE FROM taken AS t USING unnest(floor_partitions, floor_origins, floor_uids) AS n (partition, origin, uid)
            WHERE t.partition = n.partition AND t.origin = n.origin AND t.upto < n.uid;
    END IF;
    IF cardinality(writer_origins) > 0 THEN
        INSERT INTO journal_writer (origin, sequence, at) SELECT n.origin, n.sequence, stamp
            FROM unnest(writer_origins, writer_sequences) AS n (origin, sequence)
            ON CONFLICT (origin) DO UPDATE SET sequence = excluded.sequence, at = excluded.at;
    END IF;
    IF cardinality(refusal_origins) > 0 THEN
        INSERT INTO refusal (origin, sequence, answer, at) SELECT n.origin, n.sequence, n.answer, stamp
            FROM unnest(refusal_origins, refusal_sequences, refusal_answers) AS n (origin, sequence, answer)
            ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(outcome_ids) > 0 THEN
        INSERT INTO outcome (at, id, committed) SELECT stamp, n.id, n.committed
            FROM unnest(outcome_ids, outcomes) AS n (id, committed) ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(lease_names) > 0 THEN
        INSERT INTO lease (name, epoch, member, role, address)
            SELECT * FROM unnest(lease_names, lease_epochs, lease_members, lease_roles, lease_addresses)
            ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, member = excluded.member, role = excluded.role,
                address = excluded.address;
    END IF;
    IF cardinality(gone_records) > 0 THEN
        DELETE FROM record WHERE id = ANY (gone_records);
    END IF;
    IF cardinality(record_ids) > 0 THEN
        INSERT INTO record (id, kind, key, value, version)
            SELECT * FROM unnest(record_ids, record_kinds, record_keys, record_values, record_versions)
            ON CONFLICT (id) DO UPDATE SET value = excluded.value, version = excluded.version;
    END IF;
    IF cardinality(counters) > 0 THEN
        UPDATE counter AS c SET value = n.value FROM unnest(counters, counts) AS n (name, value) WHERE c.name = n.name;
    END IF;
END
$write$;
"""

MIGRATIONS = [_TABLES + _WRITE]


async def migrate(connection: Any) -> None:  # noqa: ANN401 - asyncpg has no types
    """Brings the database to this release's schema, in one transaction; raises InternalError on a newer one.

    Logs a migration of existing data: a former release cannot open it afterwards.
    """
    async with connection.transaction():
        # Two processes that start at once migrate one after the other.
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('hopline migrate', 0))")
        if not await connection.fetchval("SELECT to_regnamespace($1)", SCHEMA):
            await connection.execute(f"CREATE SCHEMA {SCHEMA}")
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS migration (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"
        )
        version: int = await connection.fetchval("SELECT coalesce(max(version), 0) FROM migration")
        if version > len(MIGRATIONS):
            raise InternalError(f"the data was written by a newer release (schema {version}, known: {len(MIGRATIONS)})")
        if 0 < version < len(MIGRATIONS):
            log.info("data of a former release is brought to this one's form", schema=version, becomes=len(MIGRATIONS))
        for number, script in enumerate(MIGRATIONS[version:], version + 1):
            await connection.execute(script)
            await connection.execute("INSERT INTO migration (version) VALUES ($1)", number)
