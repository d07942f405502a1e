#!/usr/bin/env bash
# `docker compose exec postgres-standby promote`: makes the standby the primary, which then waits for no standby.
#
# See that the former one is dead or stopped first. When it starts again it follows, and is waited for again.
set -euo pipefail
data=/var/lib/hopline-postgres/data
name=$(psql -h /tmp -U admin -d hopline -XAtc "SHOW cluster_name")
# Before it is true: the former one, if it starts now, waits until it is.
echo "$name" >/var/lib/hopline-secret/postgres-primary
pg_ctl promote --wait --silent -D "$data"
alone
# What the other one compares its data with when it follows.
psql -h /tmp -U admin -d hopline -Xqc CHECKPOINT
echo "$name is the primary"
