#!/usr/bin/env bash
# Builds the clients whose names are given into bin/clients at the top of the
# repository, each from the module that pins it. Shows how far it is. Needs Go and
# bash. JobSet takes three minutes the first time, Kueue ten.
#
# Usage: test/plane/clients/build.sh CLIENT...
#        CLIENT is kubectl, helm, jobset or kueue.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
here=$repository # where the modules are looked for
. "$repository/deploy/local/progress.sh"

# package_of CLIENT prints the module and the package of a client.
package_of() {
	case $1 in
	kubectl) echo deploy/local/programs/kubernetes k8s.io/kubernetes/cmd/kubectl ;;
	helm) echo tools/chart helm.sh/helm/v4/cmd/helm ;;
	jobset) echo test/plane/clients/programs/jobset sigs.k8s.io/jobset ;;
	kueue) echo test/plane/clients/programs/kueue sigs.k8s.io/kueue/cmd/kueue ;;
	*)
		echo "build.sh: no client is called $1" >&2
		return 1
		;;
	esac
}

out=$repository/bin/clients
mkdir -p "$out"
for client; do
	found=$(package_of "$client")
	read -r module package <<<"$found"
	flags="-s -w"
	if [ "$client" = kubectl ]; then flags=$(kubernetes_ldflags "$(version "$module" k8s.io/kubernetes)"); fi
	build "$module" "$out" "$package" -ldflags "$flags"
	note "built after ${SECONDS}s: bin/clients/$client"
done
