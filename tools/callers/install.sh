#!/usr/bin/env bash
# Installs what docs/remote.md needs for its callers in Python and Node, as far as it is missing: Debian's packages (as
# root), and npm's packages of package.json into FOLDER/callers/node_modules.
#
# Usage: tools/callers/install.sh FOLDER
set -euo pipefail
if [ $# -ne 1 ]; then
	echo 'usage: tools/callers/install.sh FOLDER' >&2
	exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)

packages=()
/usr/bin/python3 -c 'import grpc, google.protobuf' 2>/dev/null || packages+=(python3-grpcio python3-protobuf)
command -v protoc >/dev/null || packages+=(protobuf-compiler)
[[ -e /usr/include/google/protobuf/timestamp.proto ]] || packages+=(libprotobuf-dev)
command -v grpc_python_plugin >/dev/null || packages+=(protobuf-compiler-grpc)
command -v npm >/dev/null || packages+=(npm)
if ((${#packages[@]} > 0)); then
	install() { apt-get install --yes --no-install-recommends "${packages[@]}" >/dev/null; }
	echo "installing ${packages[*]}"
	install 2>/dev/null || { apt-get update >/dev/null && install; }
fi

to=$1/callers
if ! cmp --silent "$here/package-lock.json" "$to/installed"; then
	echo "installing npm's packages into $to"
	mkdir -p "$to"
	cp "$here/package.json" "$here/package-lock.json" "$to"
	(cd "$to" && npm ci --loglevel=error --no-audit --no-fund >/dev/null)
	cp "$here/package-lock.json" "$to/installed"
fi
