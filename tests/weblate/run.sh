#!/bin/sh
# Weblate's own machinery modules against a running server:
#
#     tests/weblate/run.sh WEBLATE_PYTHON http://127.0.0.1:8017 [API key]
#
# WEBLATE_PYTHON: the interpreter of an environment of its own, with requirements.txt installed (Weblate's
# documentation says which system libraries that needs). PostgreSQL must be installed, too; a cluster is made
# in a temporary directory and deleted afterwards. The server must serve English to German and have a memory,
# as `make serve` does; it is taught one example, and two memories with glossaries stay there.
set -eu
python=$(command -v "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
binaries=$(pg_config --bindir 2>/dev/null || dirname "$(readlink -f "$(command -v postgres)")")
directory=$(mktemp -d)
mkdir "$directory/cache"
as=""
if [ "$(id -u)" = 0 ]; then # PostgreSQL refuses to run as root
    as="setpriv --reuid postgres --regid postgres --clear-groups"
    chown postgres "$directory"
fi
chmod 755 "$directory"
cd "$directory"
trap '$as "$binaries/pg_ctl" -D "$directory/cluster" -m immediate stop >/dev/null; rm -rf "$directory"' EXIT
$as "$binaries/initdb" -D "$directory/cluster" -A trust -U weblate >/dev/null
$as "$binaries/pg_ctl" -D "$directory/cluster" -l "$directory/cluster.log" -w \
    -o "-c listen_addresses= -c unix_socket_directories=$directory -F" start >/dev/null
"$binaries/createdb" -h "$directory" -U weblate weblate
export WEBLATE_CHECK_DIR="$directory" DJANGO_SETTINGS_MODULE=settings PYTHONPATH="$here"
"$python" -m django migrate --skip-checks >"$directory/migrate.log" 2>&1 || {
    tail -20 "$directory/migrate.log"
    exit 1
}
"$python" "$here/check.py" "$@"
