-- What the audit needs of a ledger, in narrow tables: the account is taken from them slice by slice (audit.sql).
-- The variable `ledger` is the pattern of files of stages; gaps and the grace at the end of the record are left out.
CREATE OR REPLACE TABLE current AS
SELECT partition, max(epoch) AS current_epoch FROM read_parquet(getvariable('ledger'), hive_partitioning = false)
WHERE partition >= 0 GROUP BY partition;

-- Ranges of uids, divided where a block of 4096 ends: messages of different blocks have nothing to do with each other.
CREATE OR REPLACE TABLE told AS
WITH stages AS (
  SELECT
    virtual_host,
    CASE WHEN stage IN ('received', 'returned', 'confirmed', 'refused', 'rolled_back') THEN '' ELSE queue END AS queue,
    stage, outcome, reason, partition, epoch::INTEGER AS epoch,
    (epoch << 46) + (epoch_us(time) // 16) - (1577836800000000 // 16) AS moment, uids, successors
  FROM read_parquet(getvariable('ledger'), hive_partitioning = false)
  WHERE stage NOT IN ('persisted', 'sent')
),
ranges AS (
  SELECT * EXCLUDE (uids, successors), unnest(uids) AS uids FROM stages
  UNION ALL
  SELECT * EXCLUDE (uids, successors) REPLACE ('' AS queue, 'successor' AS stage), unnest(successors) AS uids
  FROM stages WHERE stage = 'dead_lettered'
)
SELECT
  * EXCLUDE (uids),
  greatest(uids.first, block << 12) AS first, least(uids.last, (block << 12) + 4095) AS last
FROM (SELECT *, unnest(range(uids.first >> 12, (uids.last >> 12) + 1)) AS block FROM ranges)
