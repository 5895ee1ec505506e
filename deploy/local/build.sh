#!/usr/bin/env bash
# Builds the executables of the local control plane into bin/ at the top of the
# repository, and shows how far it is: on a terminal one line that is rewritten,
# elsewhere a line now and then. Errors are shown whole; the exit status is that
# of go build. Needs Go and bash.
#
# Usage: deploy/local/build.sh [jobpolicy-local] [jobpolicy-engine] [jobpolicy-executor]
#        Without arguments it builds all three.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
export GOWORK=$PWD/go.work

package_of() {
	case $1 in
	jobpolicy-local) echo ./deploy/local/cmd/jobpolicy-local ;;
	jobpolicy-engine | jobpolicy-executor) echo "./services/cmd/$1" ;;
	*) return 1 ;;
	esac
}

# usage shows the comment at the top of this file.
usage() { sed -n '2,/^set /{/^# \{0,1\}/s///p;}' "$here/build.sh"; }

packages=()
for name in "${@:-jobpolicy-local jobpolicy-engine jobpolicy-executor}"; do
	case $name in -h | --help | help)
		usage
		exit 0
		;;
	esac
	for word in $name; do
		if ! package=$(package_of "$word"); then
			echo "build.sh: no executable is called $word" >&2
			usage >&2
			exit 2
		fi
		packages+=("$package")
	done
done

# The upstream servers report the version that the linker puts into them; without
# it they call themselves v0.0.0-master and clients refuse or misjudge them.
kubernetes=$(GOWORK=off go -C deploy/local list -m -f '{{.Version}}' k8s.io/kubernetes)
major=${kubernetes#v} major=${major%%.*}
minor=${kubernetes#v*.} minor=${minor%%.*}
ldflags="-s -w"
for variables in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags+=" -X $variables.gitVersion=$kubernetes"
	ldflags+=" -X $variables.gitMajor=$major -X $variables.gitMinor=$minor"
done

terminal=false
if [ -t 1 ]; then terminal=true; fi

# status TEXT shows what is under way; on a terminal it replaces the last status.
status() {
	if $terminal; then printf '\r\033[K%s' "$1"; else printf '%s\n' "$1"; fi
}

# note TEXT shows a line that stays.
note() {
	if $terminal; then printf '\r\033[K'; fi
	printf '%s\n' "$1"
}

# follow TOTAL reads the output of go build -v: the path of each package as it is
# compiled, "go: downloading …" lines, and everything else, which is for people.
follow() {
	local total=$1 compiled=0 downloaded=0 last=0 line
	while IFS= read -r line || [ -n "$line" ]; do
		case $line in
		"go: downloading "*) downloaded=$((downloaded + 1)) ;;
		"" | "#"* | *[[:space:]]*)
			note "$line"
			continue
			;;
		*) compiled=$((compiled + 1)) ;;
		esac
		# Elsewhere than on a terminal one line in 15 seconds is enough.
		if $terminal || [ $((SECONDS - last)) -ge 15 ]; then
			last=$SECONDS
			show_progress "$compiled" "$total" "$downloaded"
		fi
	done
	if $terminal; then printf '\r\033[K'; fi
}

show_progress() {
	local text="compiled $1 of $2 packages, ${SECONDS}s"
	if [ "$3" -gt 0 ]; then text="downloaded $3 modules, $text"; fi
	if [ $(($1 + ${#packages[@]})) -ge "$2" ]; then text+=", linking"; fi
	status "$text"
}

# How many packages are not in the build cache. When that cannot be told, the
# build will say why.
total=$(go list -deps -f '{{if .Stale}}x{{end}}' "${packages[@]}" 2>/dev/null | grep -c x || true)
if [ "$total" -gt 500 ]; then
	note "compiling $total packages: Kubernetes and etcd from source; about six minutes, once (then cached)"
fi

mkdir -p bin
if $terminal; then show_progress 0 "$total" 0; fi
result=0
go build -v -ldflags "$ldflags" -o bin/ "${packages[@]}" 2>&1 | follow "$total" || result=$?
if [ "$result" -ne 0 ]; then
	note "build failed after ${SECONDS}s"
	exit "$result"
fi
note "built in ${SECONDS}s:$(printf ' bin/%s' "${packages[@]##*/}")"
