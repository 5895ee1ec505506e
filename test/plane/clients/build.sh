#!/usr/bin/env bash
# Builds the clients whose names are given, and what they need, into bin/clients at the top of the
# repository, each from the module that pins it. Shows how far it is. Needs Go and bash. The first time
# takes minutes for each (docs/clients.md).
#
# Usage: test/plane/clients/build.sh CLIENT...
#        CLIENT is kubectl, helm, k9s, jobset, kueue, kueue-alone or multikueue (Kueue without JobSet and Trainer),
#        trainer, keda, kuberay, jobset-specs or kueue-specs (end-to-end specs of JobSet's and Kueue's own),
#        jobset-with-engine, kueue-with-engine or trainer-with-engine.
#
# jobset-with-engine is JobSet with a few files of ours, which ask the engine (docs/adopt.md). kueue-with-engine and
# trainer-with-engine are Kueue and Trainer with such files. Their source, changed, is in bin/clients/source.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
here=$repository # where the modules are looked for
. "$repository/deploy/local/progress.sh"

# package_of CLIENT prints the module and the package of a client.
package_of() {
	case $1 in
	kubectl) echo deploy/local/programs/kubernetes k8s.io/kubernetes/cmd/kubectl ;;
	helm) echo tools/chart helm.sh/helm/v4/cmd/helm ;;
	k9s) echo test/plane/clients/programs/k9s github.com/derailed/k9s ;;
	terminal) echo test ./plane/clients/terminal ;;
	jobset) echo test/plane/clients/programs/jobset sigs.k8s.io/jobset ;;
	kueue) echo test/plane/clients/programs/kueue sigs.k8s.io/kueue/cmd/kueue ;;
	trainer) echo test/plane/clients/programs/trainer github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager ;;
	keda) echo test/plane/clients/programs/keda github.com/kedacore/keda/v2/cmd/operator ;;
	kuberay) echo test/plane/clients/programs/kuberay github.com/ray-project/kuberay/ray-operator ;;
	jobset-with-engine) echo bin/clients/source/jobset-with-engine . ;;
	kueue-with-engine) echo bin/clients/source/kueue-with-engine ./cmd/kueue ;;
	trainer-with-engine) echo bin/clients/source/trainer-with-engine ./cmd/trainer-controller-manager ;;
	*)
		echo "build.sh: no client is called $1" >&2
		return 1
		;;
	esac
}

# with_needs CLIENT... prints the clients, each after those that it and its scenarios need.
with_needs() {
	local client
	for client; do
		case $client in
		jobset | helm | keda | kuberay) echo kubectl ;;
		k9s) printf '%s\n' kubectl terminal ;;
		trainer) with_needs jobset ;;
		kueue) with_needs trainer ;;
		multikueue | kueue-alone) client=kueue && echo kubectl ;;
		jobset-specs) with_needs jobset ;;
		kueue-specs) echo kueue ;;
		*-with-engine) with_needs "${client%-with-engine}" ;;
		esac
		echo "$client"
	done
}

adopters=$repository/test/plane/clients/testdata/adopters

# copy_module CLIENT MODULE PACKAGE PART... copies parts of a client's module from the module cache, puts our files into
# its PACKAGE, and lets it ask the engine. It sets from, where the module is, and to, where the copy is.
copy_module() {
	local client=$1 module=$2 package=$3
	shift 3
	from=$(GOWORK=off go -C "$repository/test/plane/clients/programs/$client" list -m -f '{{.Dir}}' "$module")
	to=$repository/bin/clients/source/$client-with-engine
	rm -rf "$to"
	mkdir -p "$to"
	(cd "$from" && cp -r --parents "$@" go.mod go.sum "$to")
	chmod -R u+w "$to"
	mkdir "$to/pkg/policyengine"
	cp "$adopters/policyengine.go" "$to/pkg/policyengine"
	cp "$adopters/$client"/*.go "$to/$package"
	sed "s/^package .*/package $(basename "$package")/" "$adopters/measure_test.go" >"$to/$package/measure_test.go"
	GOWORK=off go -C "$to" mod edit -require=jobpolicy.dev/proto@v0.0.0 -replace="jobpolicy.dev/proto=$repository/proto"
	cat "$repository/proto/go.sum" >>"$to/go.sum"
}

# keep_versions CLIENT lets the copy use the versions of the client for what the contract requires, too. So the two share
# what is compiled. Otherwise newer versions of golang.org/x would change nearly every package.
keep_versions() {
	GOWORK=off go -C "$repository/proto" list -m -f '{{if not .Main}}{{.Path}}{{end}}' all | grep -E '^(golang.org/x|google.golang.org)/' |
		xargs env GOWORK=off go -C "$repository/test/plane/clients/programs/$1" list -e -m -f '{{if .Version}}{{.Path}}={{.Path}}@{{.Version}}{{end}}' |
		sed 's/^./-replace=&/' | xargs env GOWORK=off go -C "$to" mod edit
}

# change FILE SCRIPT edits a file of the copy with one of our scripts.
change() {
	sed -i -f "$adopters/$2" "$to/$1"
	if cmp -s "$from/$1" "$to/$1"; then
		note "$2 changes nothing any more"
		exit 1
	fi
}

change_jobset() {
	copy_module jobset sigs.k8s.io/jobset pkg/controllers api client-go cmd config pkg test main.go
	keep_versions jobset
	change pkg/controllers/jobset_controller.go jobset/jobset_controller.sed
	change pkg/controllers/failure_policy.go jobset/failure_policy.sed
	sed -n -f "$adopters/jobset/before.sed" "$from/pkg/controllers/failure_policy.go" >"$to/pkg/controllers/before_test.go"
}

change_kueue() {
	local job=pkg/controller/jobs/job
	copy_module kueue sigs.k8s.io/kueue $job apis client-go cmd/kueue config hack/testing internal pkg test Makefile
	keep_versions kueue
	mv "$to/$job/not_known_yet.go" "$to/pkg/controller/jobframework"
	change pkg/controller/jobframework/reconciler.go kueue/reconciler.sed
	change $job/job_controller.go kueue/job_controller.sed
	change $job/job_multikueue_adapter.go kueue/job_multikueue_adapter.sed
	sed -n -f "$adopters/kueue/before.sed" "$from/$job/job_controller.go" >"$to/$job/before_test.go"
}

change_trainer() {
	local reconciler=pkg/controller/trainjob_controller.go
	copy_module trainer github.com/kubeflow/trainer/v2 pkg/controller cmd manifests pkg test
	keep_versions trainer
	change $reconciler trainer/trainjob_controller.sed
	sed -n -f "$adopters/trainer/before.sed" "$from/$reconciler" >"$to/pkg/controller/before_test.go"
}

# build_specs CLIENT MODULE PROGRAM=PACKAGE... compiles packages of a client's own end-to-end specs. They are compiled as part of
# its module, in the module cache, because only its go.mod names what they import.
build_specs() {
	local from pair
	from=$(GOWORK=off go -C "$repository/test/plane/clients/programs/$1" list -m -f '{{.Dir}}' "$2")
	for pair in "${@:3}"; do
		note "compiling a client's own specs: ${pair%%=*}"
		GOWORK=off go -C "$from" test -c -mod=readonly -ldflags "-s -w" -o "$out/${pair%%=*}" "${pair#*=}"
	done
}

build_jobset_specs() { build_specs jobset sigs.k8s.io/jobset jobset-specs=./test/e2e; }

build_kueue_specs() {
	build_specs kueue sigs.k8s.io/kueue kueue-specs-singlecluster=./test/e2e/singlecluster/baseline kueue-specs-tas=./test/e2e/tas/baseline
}

# program_of CLIENT prints what go build calls its program.
program_of() {
	case $1 in
	trainer*) echo trainer-controller-manager ;;
	keda) echo operator ;;
	kuberay) echo ray-operator ;;
	*) echo "${1%-with-engine}" ;;
	esac
}

out=$repository/bin/clients
mkdir -p "$out/source"
for client in $(with_needs "$@" | awk '!seen[$0]++'); do
	case $client in
	jobset-specs | kueue-specs)
		"build_${client%-specs}_specs"
		note "built after ${SECONDS}s: bin/clients/$client*"
		continue
		;;
	esac
	found=$(package_of "$client")
	read -r module package <<<"$found"
	flags="-s -w"
	if [ "$client" = kubectl ]; then flags=$(kubernetes_ldflags "$(version "$module" k8s.io/kubernetes)"); fi
	if [ "${client%-with-engine}" != "$client" ]; then
		"change_${client%-with-engine}"
		build "$module" "$out/source" "$package" -mod=mod -ldflags "$flags"
	else
		build "$module" "$out/source" "$package" -ldflags "$flags"
	fi
	mv "$out/source/$(program_of "$client")" "$out/$client"
	note "built after ${SECONDS}s: bin/clients/$client"
done
