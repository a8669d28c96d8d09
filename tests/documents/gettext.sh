#!/bin/sh
# Makes sure that there is gettext's msgfmt, by which the tests check catalogues: installs Debian's package where
# that can be done (root, apt-get), else says what to install. Fails only where CI=true.
command -v msgfmt >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing gettext for the tests of catalogues"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gettext \
        >/dev/null && exit 0
fi
echo "Tests of catalogues need msgfmt: install the package gettext. Without it they are skipped, or fail where" >&2
echo "CI=true." >&2
[ "${CI:-}" != true ]
