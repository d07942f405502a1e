#!/usr/bin/env bash
# `docker compose exec postgres alone`: commits wait for no standby any more, until there is one again.
#
# For a standby that does not come back soon. What is confirmed from now on is on one disk.
set -euo pipefail
psql -h /tmp -U admin -d hopline -Xqc "ALTER SYSTEM RESET synchronous_standby_names"
psql -h /tmp -U admin -d hopline -XAtqc "SELECT pg_reload_conf()" >/dev/null
