#!/usr/bin/env bash
# Builds the clients whose names are given into bin/clients at the top of the
# repository, each from the module that pins it. Shows how far it is. Needs Go and
# bash. JobSet takes three minutes the first time, Kueue ten.
#
# Usage: test/plane/clients/build.sh CLIENT...
#        CLIENT is kubectl, helm, jobset, kueue or jobset-with-engine.
#
# jobset-with-engine is JobSet with a few files of ours, which ask the engine (docs/adopt.md).
# Its source, changed, is in bin/clients/source.
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
	jobset-with-engine) echo bin/clients/source/jobset-with-engine . ;;
	*)
		echo "build.sh: no client is called $1" >&2
		return 1
		;;
	esac
}

# change_jobset copies JobSet from the module cache, and puts our files into it.
change_jobset() {
	local from to=$repository/bin/clients/source/jobset-with-engine ours=$repository/test/plane/clients/testdata/adopters/jobset
	local controllers=$to/pkg/controllers
	from=$(GOWORK=off go -C "$repository/test/plane/clients/programs/jobset" list -m -f '{{.Dir}}' sigs.k8s.io/jobset)
	rm -rf "$to"
	mkdir -p "$to"
	cp -r "$from"/{api,client-go,cmd,config,pkg,test,go.mod,go.sum,main.go} "$to"
	chmod -R u+w "$to"
	cp "$ours"/*.go "$controllers"
	sed -i -f "$ours/jobset_controller.sed" "$controllers/jobset_controller.go"
	if cmp -s "$from/pkg/controllers/jobset_controller.go" "$controllers/jobset_controller.go"; then
		note "jobset_controller.sed changes nothing any more"
		exit 1
	fi
	GOWORK=off go -C "$to" mod edit -require=jobpolicy.dev/proto@v0.0.0 -replace="jobpolicy.dev/proto=$repository/proto"
	cat "$repository/proto/go.sum" >>"$to/go.sum"
}

out=$repository/bin/clients
mkdir -p "$out"
for client; do
	found=$(package_of "$client")
	read -r module package <<<"$found"
	flags="-s -w"
	if [ "$client" = kubectl ]; then flags=$(kubernetes_ldflags "$(version "$module" k8s.io/kubernetes)"); fi
	if [ "$client" = jobset-with-engine ]; then
		change_jobset
		build "$module" "$out/source" "$package" -mod=mod -ldflags "$flags"
		mv "$out/source/jobset" "$out/jobset-with-engine"
	else
		build "$module" "$out" "$package" -ldflags "$flags"
	fi
	note "built after ${SECONDS}s: bin/clients/$client"
done
