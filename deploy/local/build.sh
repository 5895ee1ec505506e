#!/usr/bin/env bash
# Builds the executables of the local control plane into bin/ at the top of the
# repository, and shows how far it is, from the download of modules on: on a terminal
# one line that is rewritten, elsewhere a line every ten seconds. Errors are shown
# whole; the exit status is that of go build. Needs Go and bash.
#
# Usage: deploy/local/build.sh [jobpolicy-local] [jobpolicy-engine] [jobpolicy-executor]
#        [kubectl-jobpolicy]
#        Without arguments it builds all four.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/progress.sh"
cd "$here/../.."
export GOWORK=$PWD/go.work

package_of() {
	case $1 in
	jobpolicy-local) echo ./deploy/local/cmd/jobpolicy-local ;;
	jobpolicy-engine | jobpolicy-executor | kubectl-jobpolicy) echo "./services/cmd/$1" ;;
	*) return 1 ;;
	esac
}

# usage shows the comment at the top of this file.
usage() { sed -n '2,/^set /{/^# \{0,1\}/s///p;}' "$here/build.sh"; }

packages=()
for name in "${@:-jobpolicy-local jobpolicy-engine jobpolicy-executor kubectl-jobpolicy}"; do
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

kubernetes=$(GOWORK=off go -C deploy/local list -m -f '{{.Version}}' k8s.io/kubernetes)
ldflags=$(kubernetes_ldflags "$kubernetes")

total=0
stale "${packages[@]}"
if [ "$total" -gt 500 ]; then
	note "compiling $total packages: Kubernetes and etcd from source; about six minutes, once (then cached)"
fi

mkdir -p bin
if $terminal; then show_progress 0 "$total" 0 ${#packages[@]}; fi
result=0
go build -v -ldflags "$ldflags" -o bin/ "${packages[@]}" 2>&1 | follow "$total" ${#packages[@]} || result=$?
if [ "$result" -ne 0 ]; then
	note "build failed after ${SECONDS}s"
	exit "$result"
fi
note "built in ${SECONDS}s:$(printf ' bin/%s' "${packages[@]##*/}")"
