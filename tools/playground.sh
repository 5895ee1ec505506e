#!/usr/bin/env bash
# Builds the playground into a folder of static files: the page, the engine as
# WebAssembly, and the manifests of deploy/examples. The engine is compressed and
# written as text into engine.js, so that the page also opens from the folder, where
# browsers read no files but scripts, and needs no settings of a web server.
#
# Usage: tools/playground.sh FOLDER
set -euo pipefail
if [ $# -ne 1 ]; then
	echo 'usage: tools/playground.sh FOLDER' >&2
	exit 2
fi
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
to=$(cd "$1" && pwd)
wasm=$(mktemp)
trap 'rm -f "$wasm" "$wasm.gz"' EXIT

GOOS=js GOARCH=wasm go -C "$root/services" build -trimpath -ldflags '-s -w' -o "$wasm" ./cmd/jobpolicy-playground
gzip -9 --no-name --keep --force "$wasm"
{
	printf 'const jobpolicyEngine = "'
	base64 -w 0 "$wasm.gz"
	printf '";\n'
} >"$to/engine.js"
{
	echo 'const manifests = {'
	for file in "$root"/deploy/examples/*.yaml; do
		printf '  "%s": "%s",\n' "$(basename "$file")" "$(base64 -w 0 "$file")"
	done
	echo '};'
} >"$to/manifests.js"
cp "$(go env GOROOT)/lib/wasm/wasm_exec.js" "$root"/services/cmd/jobpolicy-playground/web/* "$to"
printf 'engine: %d bytes of WebAssembly, %d compressed; open %s/index.html\n' "$(stat -c %s "$wasm")" "$(stat -c %s "$wasm.gz")" "$to"
