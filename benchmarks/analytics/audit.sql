-- The audit of spark/jobs/audit.py, uid by uid: a second opinion, and a peer to measure it by.
-- Of the tables of told.sql: the account of slice $slice of $slices, for which memory has to do.
WITH
-- Ranges that many stages have in common are put together before they are taken apart.
ranges AS (
  SELECT
    virtual_host, queue, first, last,
    count(*) FILTER (stage = 'enqueued') AS enqueued,
    count(*) FILTER (stage = 'recovered') AS recovered,
    count(*) FILTER (stage = 'settled' AND outcome = 'accepted') AS accepted,
    count(*) FILTER (stage = 'settled' AND outcome <> 'accepted') AS rejected,
    count(*) FILTER (stage = 'expired') AS expired,
    count(*) FILTER (stage = 'dead_lettered') AS dead_lettered,
    count(*) FILTER (stage = 'dropped') AS dropped,
    count(*) FILTER (stage = 'received') AS received,
    count(*) FILTER (stage = 'confirmed') AS confirmed,
    count(*) FILTER (stage = 'refused') AS refused,
    count(*) FILTER (stage = 'rolled_back') AS rolled_back,
    count(*) FILTER (stage = 'returned') AS returned,
    count(*) FILTER (stage = 'successor') AS successor,
    max(partition) FILTER (stage IN ('routed', 'enqueued', 'recovered')) AS partition,
    max(epoch) FILTER (stage IN ('enqueued', 'recovered', 'delivered')) AS epoch,
    min(epoch) FILTER (stage = 'enqueued') AS first_enqueued_epoch,
    max(epoch) FILTER (stage = 'enqueued') AS last_enqueued_epoch,
    min(epoch) FILTER (stage = 'recovered') AS recovered_epoch,
    max(moment) FILTER (stage = 'delivered') AS delivered_at,
    max(moment) FILTER (stage = 'requeued' OR stage = 'recovered' AND reason <> 'held') AS returned_at,
    min(moment) FILTER (stage IN ('settled', 'expired', 'dead_lettered', 'dropped')) AS ended_at,
    max(reason) FILTER (stage = 'expired') AS expired_reason,
    max(reason) FILTER (stage = 'dropped') AS dropped_reason,
    max(reason) FILTER (stage = 'dead_lettered') AS dead_reason,
    max(reason) FILTER (stage IN ('returned', 'refused', 'dropped')) AS message_reason
  FROM told WHERE block % $slices = $slice GROUP BY ALL
),
uids AS (
  SELECT
    virtual_host, queue, uid,
    sum(enqueued) AS enqueued, sum(recovered) AS recovered, sum(accepted) AS accepted, sum(rejected) AS rejected,
    sum(expired) AS expired, sum(dead_lettered) AS dead_lettered, sum(dropped) AS dropped, sum(received) AS received,
    sum(confirmed) AS confirmed, sum(refused) AS refused, sum(rolled_back) AS rolled_back, sum(returned) AS returned,
    sum(successor) AS successor,
    max(partition) AS partition, max(epoch) AS epoch, min(first_enqueued_epoch) AS first_enqueued_epoch,
    max(last_enqueued_epoch) AS last_enqueued_epoch, min(recovered_epoch) AS recovered_epoch,
    max(delivered_at) AS delivered_at, max(returned_at) AS returned_at, min(ended_at) AS ended_at,
    max(expired_reason) AS expired_reason, max(dropped_reason) AS dropped_reason, max(dead_reason) AS dead_reason, max(message_reason) AS message_reason
  FROM (SELECT *, unnest(range(first, last + 1)) AS uid FROM ranges) GROUP BY virtual_host, queue, uid
),
messages AS (
  SELECT
    uid, virtual_host, returned, dropped, message_reason,
    CASE
      WHEN confirmed > 0 THEN 'confirmed' WHEN successor > 0 THEN 'dead_letter'
      WHEN rolled_back > 0 THEN 'rolled_back' WHEN refused > 0 THEN 'refused' WHEN received > 0 THEN 'unconfirmed'
      ELSE 'earlier'
    END AS origin
  FROM uids WHERE queue = ''
),
copies AS (
  SELECT uids.*, coalesce(origin, 'earlier') AS origin, messages.message_reason AS refusal, current_epoch
  FROM uids LEFT JOIN messages ON uids.uid = messages.uid LEFT JOIN current ON uids.partition = current.partition
  WHERE queue <> ''
),
judged AS (
  SELECT
    virtual_host, queue, origin, expired_reason, dropped_reason, dead_reason, refusal,
    CASE
      WHEN dead_lettered > 0 THEN 'dead_lettered' WHEN accepted > 0 THEN 'settled' WHEN expired > 0 THEN 'expired'
      WHEN dropped > 0 THEN 'dropped' WHEN rejected > 0 THEN 'rejected'
      WHEN enqueued + recovered > 0 AND epoch < current_epoch THEN 'lost'
      WHEN enqueued + recovered > 0 AND delivered_at > coalesce(returned_at, 0) THEN 'unsettled'
      WHEN enqueued + recovered > 0 THEN 'waiting'
      WHEN origin IN ('refused', 'rolled_back') THEN origin
      WHEN origin NOT IN ('confirmed', 'dead_letter') THEN 'not_enqueued'
      ELSE 'lost'
    END AS fate,
    CASE WHEN enqueued + recovered > 0 THEN 'not_recovered' ELSE 'never_enqueued' END AS missing,
    CASE
      WHEN greatest(accepted, rejected, expired, dead_lettered, dropped) > 1
        OR accepted > 0 AND rejected + expired + dead_lettered + dropped > 0 THEN 'settled_twice'
      WHEN delivered_at > ended_at THEN 'delivered_after_settled'
      WHEN enqueued > 1 AND (
        enqueued > last_enqueued_epoch - first_enqueued_epoch + 1 OR last_enqueued_epoch >= recovered_epoch
      ) THEN 'enqueued_twice'
      ELSE ''
    END AS duplicate
  FROM copies
  UNION ALL
  SELECT
    virtual_host, '', origin, '', message_reason, '', message_reason,
    CASE
      WHEN returned > 0 THEN 'returned' WHEN dropped > 0 THEN 'dropped'
      WHEN origin IN ('refused', 'rolled_back') THEN origin
      WHEN origin NOT IN ('confirmed', 'dead_letter') THEN 'not_enqueued' ELSE 'lost'
    END,
    'never_routed', ''
  FROM messages ANTI JOIN copies ON messages.uid = copies.uid
)
SELECT
  virtual_host, queue, origin, fate,
  CASE
    WHEN fate = 'lost' THEN missing WHEN fate = 'dead_lettered' THEN dead_reason
    WHEN fate = 'expired' THEN expired_reason WHEN fate = 'dropped' THEN dropped_reason WHEN fate IN ('returned', 'refused') THEN refusal ELSE ''
  END AS reason,
  duplicate, count(*) AS messages
FROM judged GROUP BY ALL
