#!/bin/sh
# seldom COMMAND [ARGUMENT…]: a health check that Docker starts often, and that checks seldom.
#
# Docker 20 knows one interval. A short one lets a stack start quickly, and then is most of what the idle stack uses: a
# check costs 70 ms of a core, nearly all of it Docker's own. So a container that was found healthy is checked again
# after SELDOM_SECONDS, in which this waits; before that, and once it is unhealthy, at Docker's interval.
set -eu
healthy=${TMPDIR:-/tmp}/healthy # goes with the container: one that is started again is looked at again

if [ -e "$healthy" ]; then
  sleep "${SELDOM_SECONDS:-60}"
fi
if "$@"; then
  : >"$healthy"
else
  rm -f "$healthy"
  exit 1
fi
