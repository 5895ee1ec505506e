#!/usr/bin/env bash
# Installs Chromium, which tests of pages start, from Debian's package, unless it is
# there. Needs apt-get, and root.
#
# Usage: tools/browser.sh
set -euo pipefail
for name in chromium chromium-browser google-chrome google-chrome-stable; do
	if command -v "$name" >/dev/null; then exit 0; fi
done
if ! command -v apt-get >/dev/null; then
	echo 'browser.sh: apt-get is missing; put any Chromium into the PATH' >&2
	exit 1
fi
echo 'installing chromium'
install() { apt-get install --yes --no-install-recommends chromium >/dev/null; }
install 2>/dev/null || { apt-get update >/dev/null && install; }
chromium --version 2>/dev/null
