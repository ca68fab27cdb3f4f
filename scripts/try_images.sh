#!/usr/bin/env bash
# Builds both targets of the Dockerfile and runs them: as user 10001, on a read-only root file system, data in one volume.
# `make image-test`. Needs root on a Debian machine; installs buildah, mmdebstrap and bubblewrap where they are missing.
# PYTHON_IMAGE: the base image. Unset: a Debian with Python is made by mmdebstrap, for machines that cannot pull one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=${STORAGE_DRIVER:-vfs}
containers=() pids=()

cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
  for container in "${containers[@]}"; do buildah rm "$container" >/dev/null 2>&1 || true; done
  rm -rf "$work"
}
trap cleanup EXIT

missing=()
for program in buildah mmdebstrap bwrap; do command -v $program >/dev/null || missing+=("${program/bwrap/bubblewrap}"); done
if [ ${#missing[@]} -gt 0 ]; then apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; fi

if [ -z "${PYTHON_IMAGE:-}" ]; then
  PYTHON_IMAGE=localhost/agentcore-base:bookworm
  if ! buildah inspect --type image "$PYTHON_IMAGE" >/dev/null 2>&1; then
    echo "== base image by mmdebstrap"
    mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,python3-pip,ca-certificates bookworm "$work/base.tar"
    base=$(buildah from scratch)
    buildah add -q "$base" "$work/base.tar" / >/dev/null
    buildah commit -q --rm "$base" "$PYTHON_IMAGE" >/dev/null
    rm "$work/base.tar"
  fi
fi

build() {  # build TARGET
  echo "== build $1"
  buildah bud -q --pull=false --build-arg "PYTHON_IMAGE=$PYTHON_IMAGE" --volume /etc/ssl/certs:/etc/ssl/certs:ro \
    --target "$1" -t "agentcore-memory:$1" . >/dev/null
  root=$(buildah from --pull=false "localhost/agentcore-memory:$1")
  containers+=("$root")
  eval "$1=$(buildah mount "$root")"
}

inside() {  # inside ROOT COMMAND...: as the image's user, nothing writable but /data, /tmp and /dev/shm
  local root=$1; shift
  bwrap --ro-bind "$root" / --proc /proc --dev /dev --perms 1777 --tmpfs /dev/shm --perms 1777 --tmpfs /tmp \
    --bind "$work/data" /data --unshare-pid --die-with-parent --clearenv --setenv PATH /opt/agentcore/bin:/usr/bin:/bin \
    --setenv HOST 127.0.0.1 --setenv PORT "${port:-8080}" --setenv AGENTCORE_HOME /data --setenv AGENTCORE_CACHE /data/cache \
    --setenv PYTHONUNBUFFERED 1 ${url:+--setenv DATABASE_URL "$url"} ${redis:+--setenv REDIS_URL "$redis"} --chdir /data \
    setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all "$@"
}

ready() {  # ready PORT
  for _ in $(seq 360); do curl -fsS -m 2 "http://127.0.0.1:$1/readyz" >/dev/null 2>&1 && return; sleep 0.5; done
  echo "port $1 was not ready within 180 s" >&2; tail -n 20 -q "$work"/*.log >&2; exit 1
}

call() {  # call PORT METHOD PARAMS
  curl -fsS "http://127.0.0.1:$1/api/v1/jsonrpc" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
    -d '{"jsonrpc": "2.0", "id": 1, "method": "'"$2"'", "params": '"$3"'}'
}

expect() { grep -q "$2" <<<"$1" || { echo "expected $2 in: $1" >&2; exit 1; }; }

install -d -o 10001 -g 10001 -m 0700 "$work/data"
chmod 755 "$work"
build standalone
build service
du -sh "$standalone" "$service" | sed 's#/.*/#image root #'

echo "== standalone: store, stop, start, retrieve"
expect "$(inside "$standalone" id -u)" '^10001$'
if inside "$standalone" touch /opt/agentcore/x 2>/dev/null; then echo "the root file system is writable" >&2; exit 1; fi
port=8391 inside "$standalone" agentcore serve >"$work/first.log" 2>&1 & pids+=($!)
ready 8391
token=$(inside "$standalone" agentcore token --agent image-test)
expect "$(call 8391 memory.store '{"content": "The parrot is called Kiki"}')" '"status":"stored"'
kill "${pids[0]}"; wait "${pids[0]}" 2>/dev/null || true; pids=()
while pgrep -u 10001 >/dev/null; do sleep 0.2; done
port=8391 inside "$standalone" agentcore serve >"$work/second.log" 2>&1 & pids+=($!)
ready 8391
expect "$(call 8391 memory.retrieve '{"query": "what is the parrot called?"}')" 'Kiki'

echo "== service and worker, on the standalone's PostgreSQL and Redis"
read -r url redis < <(python3 -c "import json; d = json.load(open('$work/data/run/urls.json')); print(d['database_url'], d['redis_url'])")
export url redis
inside "$service" agentcore migrate
port=8392 inside "$service" agentcore serve >"$work/service.log" 2>&1 & pids+=($!)
inside "$service" agentcore worker >"$work/worker.log" 2>&1 & pids+=($!)
ready 8392
expect "$(call 8392 memory.retrieve '{"query": "what is the parrot called?"}')" 'Kiki'
for _ in $(seq 120); do grep -q "background work runs" "$work/worker.log" && break; sleep 0.5; done
expect "$(cat "$work/worker.log")" "background work runs"
echo "images: ok"
