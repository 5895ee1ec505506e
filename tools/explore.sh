#!/usr/bin/env bash
# Runs every property test with new seeds, again and again, and ends with the seeds that found something.
#
#   tools/explore.sh
#
# FOR is how long (90s, 10m, 2h; 1m unless told), or N how many seeds. Exit status: 0 when nothing was found.
set -euo pipefail
cd "$(dirname "$0")/.."

# in_seconds reads a time span.
in_seconds() {
	case $1 in
	*h) echo $((${1%h} * 3600)) ;;
	*m) echo $((${1%m} * 60)) ;;
	*) echo "${1%s}" ;;
	esac
}
span=$(in_seconds "${FOR:-1m}")
rounds=${N:-0}

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT

# properties lists the packages with property tests, and the names of these: DIRECTORY NAME|NAME
properties() {
	git grep -l 'rapid\.Check(' -- '*_test.go' | sort | xargs awk '
		/^func Test/ { name = $2; sub(/\(.*/, "", name) }
		/rapid\.Check\(/ {
			dir = FILENAME; sub(/\/[^\/]*$/, "", dir)
			if (!((dir, name) in seen)) { seen[dir, name] = 1; names[dir] = names[dir] (dir in names && names[dir] != "" ? "|" : "") name }
		}
		END { for (dir in names) print dir, names[dir] }' | sort
}

directories=() patterns=()
while read -r directory names; do
	echo "building the tests of $directory"
	go -C "$directory" test -c -o "$built/${#directories[@]}" .
	directories+=("$directory") patterns+=("^($names)\$")
done < <(properties)

finds=()
begin=$SECONDS
round=0
while ((rounds > 0 ? round < rounds : SECONDS - begin < span)); do
	round=$((round + 1))
	seed=$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')
	for i in "${!directories[@]}"; do
		if ! (cd "${directories[i]}" && RAPID_SEED=$seed RAPID_NOFAILFILE=true "$built/$i" -test.run "${patterns[i]}" >"$built/output" 2>&1); then
			cat "$built/output"
			finds+=("RAPID_SEED=$seed RAPID_NOFAILFILE=true go -C ${directories[i]} test -count=1 -run '${patterns[i]}' .")
			echo "found by seed $seed in ${directories[i]}"
		fi
	done
done

echo "explored: $round seeds in $((SECONDS - begin)) s, finds: ${#finds[@]}"
if ((${#finds[@]} > 0)); then
	echo 'again, each:'
	printf '  %s\n' "${finds[@]}"
	exit 1
fi
