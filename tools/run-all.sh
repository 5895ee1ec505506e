#!/usr/bin/env bash
# Runs make targets one after the other, all of them even if one fails, and ends with what each came to.
#
#   tools/run-all.sh TITLE TARGET...
#
# Exit status: 0 when every target succeeded, 1 otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."

title=$1
shift

lines=()
failed=0
begin=$SECONDS
for target in "$@"; do
	printf '\n=== %s\n' "$target"
	since=$SECONDS
	outcome=ok
	"${MAKE:-make}" --no-print-directory "$target" || outcome=FAILED
	[[ $outcome == ok ]] || failed=$((failed + 1))
	lines+=("$(printf '%-8s%-26s%5d s' "$outcome" "$target" $((SECONDS - since)))")
done

printf '\n=== %s: summary\n' "$title"
printf '%s\n' "${lines[@]}"
if ((failed > 0)); then
	printf '%s: FAILED, %d of %d (%d s)\n' "$title" "$failed" $# $((SECONDS - begin))
	exit 1
fi
printf '%s: ok, all %d (%d s)\n' "$title" $# $((SECONDS - begin))
