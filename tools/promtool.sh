#!/usr/bin/env bash
# Puts promtool into a folder, unless it is there or in the PATH. Debian has it in
# the package prometheus. Only promtool is taken out of it: installed, the package
# would start a service. Needs apt-get and dpkg-deb; and root where the
# lists of packages are missing.
#
# Usage: tools/promtool.sh FOLDER
set -euo pipefail
if [ $# -ne 1 ]; then
	echo 'usage: tools/promtool.sh FOLDER' >&2
	exit 2
fi
if PATH=$PATH:$1 command -v promtool >/dev/null; then exit 0; fi
for tool in apt-get dpkg-deb; do
	if ! command -v "$tool" >/dev/null; then
		echo "promtool.sh: $tool is missing; put promtool of any Prometheus into the PATH" >&2
		exit 1
	fi
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo 'taking promtool out of the package prometheus'
download() { (cd "$scratch" && apt-get download prometheus >&2); }
download || { apt-get update >&2 && download; }
dpkg-deb --fsys-tarfile "$scratch"/prometheus_*.deb | tar -x -C "$scratch" ./usr/bin/promtool
mkdir -p "$1"
mv "$scratch/usr/bin/promtool" "$1/promtool"
"$1/promtool" --version | head -n 1
