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

# What runs a target as the user would.
run=("${MAKE:-make}" --no-print-directory)

# ended notes what a target came to, and how long it took.
ended() { # target, outcome, seconds
	[[ $2 == ok ]] || failed=$((failed + 1))
	lines+=("$(printf '%-8s%-26s%5d s' "$2" "$1" "$3")")
}

while (($# > 0)) && [[ $1 != -- ]]; do
	printf '\n=== %s\n' "$1"
	since=$SECONDS
	outcome=ok
	"${run[@]}" "$1" || outcome=FAILED
	ended "$1" "$outcome" $((SECONDS - since))
	shift
done
shift || true # --

# Of the targets that run beside each other, by process, which leads a process group.
declare -A name=() since_of=()
if (($# > 0)); then
	out=$(mktemp -d)
	trap end EXIT
	trap 'exit 130' INT TERM HUP
fi

show() { # process
	printf '\n=== %s\n' "${name[$1]}"
	cat "$out/${name[$1]}"
}

# end also ends what still runs, control planes and all, if the script ends early, and shows what it has printed. The terminal sends
# its signals to the foreground only, and what runs here has process groups of its own.
end() {
	local pid
	for pid in "${!name[@]}"; do kill -TERM -- "-$pid" 2>/dev/null || true; done
	wait
	for pid in "${!name[@]}"; do show "$pid" || true; done
	rm -rf "$out"
}

await() {
	local pid outcome=ok
	wait -n -p pid || outcome=FAILED
	show "$pid"
	ended "${name[$pid]}" "$outcome" $((SECONDS - since_of[$pid]))
	unset "name[$pid]" "since_of[$pid]"
}

for target in "$@"; do
	((${#name[@]} < ${JOBS:-1})) || await
	printf '\n=== %s begins\n' "$target"
	set -m
	"${run[@]}" "$target" >"$out/$target" 2>&1 </dev/null &
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
