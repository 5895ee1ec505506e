#!/usr/bin/env bash
# Runs make targets, all of them even if one fails, and ends with what each came to.
#
#   tools/run-all.sh TITLE TARGET...
#   JOBS=3 tools/run-all.sh TITLE FIRST... -- TARGET...
#
# Targets run one after the other. Those after -- begin in their order, JOBS of them at the same time (1 unless it is set);
# what each of them prints is shown when it has ended.
#
# Exit status: 0 when every target succeeded, 1 otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."

title=$1
shift

lines=()
failed=0
begin=$SECONDS

# run runs a target as the user would.
run() { "${MAKE:-make}" --no-print-directory "$1"; }

# ended notes what a target came to, and how long it took.
ended() { # target, outcome, seconds
	[[ $2 == ok ]] || failed=$((failed + 1))
	lines+=("$(printf '%-8s%-26s%5d s' "$2" "$1" "$3")")
}

while (($# > 0)) && [[ $1 != -- ]]; do
	printf '\n=== %s\n' "$1"
	since=$SECONDS
	outcome=ok
	run "$1" || outcome=FAILED
	ended "$1" "$outcome" $((SECONDS - since))
	shift
done
shift || true # --

# Of the targets that run beside each other, by process, which leads a process group.
declare -A name=() since_of=()
if (($# > 0)); then
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
	trap interrupted INT TERM
fi

# Bash lets what runs in the background ignore an interrupt. It must end with this script, control planes and all.
interrupted() {
	local pid
	for pid in "${!name[@]}"; do kill -INT -- "-$pid" || true; done
	wait
	exit 130
}

await() {
	local pid outcome=ok
	wait -n -p pid || outcome=FAILED
	printf '\n=== %s\n' "${name[$pid]}"
	cat "$out/${name[$pid]}"
	ended "${name[$pid]}" "$outcome" $((SECONDS - since_of[$pid]))
	unset "name[$pid]" "since_of[$pid]"
}

for target in "$@"; do
	((${#name[@]} < ${JOBS:-1})) || await
	printf '\n=== %s begins\n' "$target"
	set -m
	run "$target" >"$out/$target" 2>&1 &
	set +m
	name[$!]=$target since_of[$!]=$SECONDS
done
while ((${#name[@]} > 0)); do await; done

printf '\n=== %s: summary\n' "$title"
printf '%s\n' "${lines[@]}"
if ((failed > 0)); then
	printf '%s: FAILED, %d of %d (%d s)\n' "$title" "$failed" ${#lines[@]} $((SECONDS - begin))
	exit 1
fi
printf '%s: ok, all %d (%d s)\n' "$title" ${#lines[@]} $((SECONDS - begin))
