#!/bin/sh
# Makes sure that there is a browser for the tests of the page: installs Debian's Chromium where that can be
# done (root, apt-get), else says what to install. Fails only where the tests must not be skipped (CI=true).
for name in "${KSTER_CHROMIUM:-chromium}" chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing chromium for the tests of the page"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium \
        >/dev/null && exit 0
fi
echo "The tests of the page need Chromium: install the package chromium (or Google Chrome), or name a browser" >&2
echo "in KSTER_CHROMIUM. Without one they are skipped, or fail where CI=true." >&2
[ "${CI:-}" != true ]
