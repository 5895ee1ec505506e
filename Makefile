# All commands of the project. `make` alone lists the targets.
#
# You need Go, make, bash and git. The versions of the tools (buf, the generators, the linters) are pinned in tools/go.mod
# and tools/lint/go.mod; they are built into .bin. With a C compiler the tests run with the race detector.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# The modules of go.work. The modules of the tools are outside of it, so that their dependencies do not affect the
# products; their go commands run with GOWORK=off.
OUTSIDE := tools tools/chart tools/lint
MODULES := $(shell go work edit -json go.work | sed -n 's/.*"DiskPath": "\.\/\(.*\)".*/\1/p')
BIN := $(CURDIR)/.bin

# tools/run-all.sh uses it to start other targets.
export MAKE

# Where the tests find the programs that they start.
export JOBPOLICY_BIN_DIR := $(CURDIR)/bin

.PHONY: help
help: ## list the targets
	@echo 'usage: make TARGET'
	@echo
	@awk -F':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '  %-20s %s\n' $(foreach m,$(MODULES),test-$(call slug,$(m)) "run the tests of $(m)")

# --- programs -------------------------------------------------------------------------------------------------------

.PHONY: build
build: ## build every program into bin/ (the first time compiles a whole control plane: minutes)
	@deploy/local/build.sh

.PHONY: build-node
build-node: ## build a node with real containers into bin/node: containerd, kubelet, … (minutes; needs cluster-packages)
	@deploy/local/build-node.sh

.PHONY: cluster-packages
cluster-packages: ## install the Debian packages that a node with real containers needs (as root)
	@deploy/local/cluster-packages.sh

.PHONY: demo
demo: build $(if $(filter containers,$(NODE)),build-node) ## run the example Jobs on a local control plane and check how they end (NODE=containers: real containers; root)
	@bin/jobpolicy-local demo --node=$(or $(NODE),processes)

.PHONY: images
images: ## make the container images of both services in bin/images (VERSION= REPOSITORY= PLATFORMS=linux/amd64)
	@GOWORK=off go -C tools run ./cmd/images -C $(CURDIR) -o $(CURDIR)/bin/images -version '$(VERSION)' \
		-repository '$(or $(REPOSITORY),jobpolicy.dev)' -platforms '$(PLATFORMS)'

.PHONY: playground
playground: ## build the playground, a page that plays Jobs in a browser without a server, into bin/playground (docs/kubectl.md)
	@tools/playground.sh $(JOBPOLICY_BIN_DIR)/playground
	@rm -rf $(JOBPOLICY_BIN_DIR)/playground/LICENSES
	@GOWORK=off go -C tools run ./cmd/licenses -C $(CURDIR) -o $(JOBPOLICY_BIN_DIR)/playground/LICENSES

.PHONY: release
release: release-check verify test ## make release VERSION=v0.1.0 in bin/release: images, chart, manifests, kubectl jobpolicy, modules, checksums; prints what to push, and pushes nothing
	@GOWORK=off go -C tools run ./cmd/release -C $(CURDIR) -repository '$(or $(REPOSITORY),jobpolicy.dev)' -platforms '$(PLATFORMS)' '$(VERSION)'

# Checks that take a second run before those that take minutes.
.PHONY: release-check
release-check:
	@GOWORK=off go -C tools run ./cmd/release -C $(CURDIR) -check '$(VERSION)'

# --- tests ----------------------------------------------------------------------------------------------------------

# The race detector needs cgo. What contains the Kubernetes servers, and module test, are tested without it: a build of the
# servers with it takes long.
RACE := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)
HEAVY := deploy/local test
LIGHT := $(filter-out $(HEAVY),$(MODULES))

# Tests that compute let those pass that have a control plane, in which real time passes.
YIELD := nice -n 5

# slug turns a module's directory into the end of a target's name: deploy/local, deploy-local.
slug = $(subst /,-,$(1))

# Property tests draw from this seed, so that a test that passes also passes again. A defect that another seed finds
# becomes a test of its own. Nothing is written into testdata.
export RAPID_SEED ?= 1
export RAPID_NOFAILFILE := true

# promtool runs the tests of the alerts. Debian has it in the package prometheus, whose service nobody wants here.
.PHONY: promtool
promtool: ## extract promtool, which tests the alerts, from Debian's package prometheus into .bin, unless it is installed
	@tools/promtool.sh $(BIN)

.PHONY: callers
callers: ## install what the callers of docs/remote.md in Python and Node need: Debian packages (as root), npm packages into .bin
	@tools/callers/install.sh $(BIN)

.PHONY: browser
browser: ## install Chromium, in which the tests of pages run: Debian's package (apt-get install --no-install-recommends chromium; as root)
	@tools/browser.sh

.PHONY: test
test: ## run every test: unit, scenarios, properties, fuzz seeds, end to end
	@echo 'race detector: $(if $(RACE),on for $(LIGHT) deploy/local,off (it needs a C compiler))'
	@PATH="$$PATH:$(BIN)" command -v promtool >/dev/null || echo 'tests of the alerts: NOT RUN, promtool is missing (make promtool)'
	@[ -e $(BIN)/callers/installed ] && /usr/bin/python3 -c 'import grpc' 2>/dev/null || echo 'callers of docs/remote.md in Python or Node: NOT RUN, what they need is missing (make callers)'
	@command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null || echo 'tests of pages in a browser: NOT RUN, Chromium is missing (make browser)'
	@git describe --tags --abbrev=0 --match='v[0-9]*' >/dev/null 2>&1 || git cat-file -e $$(cat test/simulated/skew/last-release.txt)^{commit} 2>/dev/null || echo 'old and new versions together: NOT RUN, the last release is not in this clone (git fetch --unshallow)'
	@echo 'programs of others that create Jobs: NOT RUN (make test-clients)'
	@# Two at a time: package e2e, which mostly waits, beside the other packages of module test, and then what computes.
	@BUILT=1 JOBS=2 tools/run-all.sh 'make test' build -- test-e2e test-rest test-tools $(foreach m,$(LIGHT),test-$(call slug,$(m))) test-deploy-local

.PHONY: test-cluster
test-cluster: build build-node build-specs build-telemetry test-images helm ## run the tests on a cluster with real containers (root; needs cluster-packages; ALL=1: slow ones, too)
	JOBPOLICY_TEST_CLUSTER=$(if $(ALL),all,1) go -C test test -count=1 -p 1 -v -timeout $(if $(ALL),90m,30m) ./node/cluster/...

# Programs of others that create Jobs (docs/clients.md), unmodified, under the built-in controllers and under ours;
# jobset-with-engine, kueue-with-engine and trainer-with-engine ask the engine (docs/adopt.md), jobset-specs and kueue-specs are
# specs of JobSet's and Kueue's own; those of JobSet run on a node with real containers (root; needs cluster-packages). CLIENTS
# chooses some; ONLY is a regular expression for scenarios, client/scenario. WRITE=folder keeps what was compared.
# CLUSTER=kubeconfig runs the scenarios once, on a cluster of one's own; AGAINST=folder compares them with an earlier such run.
CLIENTS ?= kubectl jobset helm k9s kueue kueue-alone multikueue jobset-specs kueue-specs trainer keda kuberay jobset-with-engine kueue-with-engine trainer-with-engine
.PHONY: test-clients
test-clients: build $(if $(CLUSTER),,$(if $(filter jobset-specs,$(CLIENTS)),build-node)) ## run clients of others under the built-in controllers and ours, and compare (CLIENTS="kubectl jobset" ONLY=regexp WRITE=folder; all: root, needs cluster-packages; the first time compiles each: minutes)
	@test/plane/clients/build.sh $(CLIENTS)
	JOBPOLICY_TEST_CLIENTS=1 go -C test test -count=1 -timeout 90m -v ./plane/clients -args -clients.of='$(CLIENTS)' $(if $(ONLY),-clients.only='$(ONLY)') $(if $(WRITE),-clients.write=$(abspath $(WRITE))) $(if $(CLUSTER),-clients.cluster=$(abspath $(CLUSTER))) $(if $(AGAINST),-clients.against=$(abspath $(AGAINST)))

# Real control planes of other minor versions of Kubernetes. MINORS chooses some; the newest is that of jobpolicy-local. On each:
# the example Jobs, CronJobs, times to live, managedBy, a killed executor, and the rules of statuses; where the next minor is the
# newest, also an upgrade and a downgrade under the executor.
ON_EACH_MINOR := TestJobsRunToTheirEnd|TestSuspendAndResume|TestParallelismIsFollowed|TestForeignJobs|TestDeletionReleasesPods|TestCoexistWith|TestCronJobsRunOnTheMinute|TestARunStarts|TestFinishedJobsExpire|TestRestartsLoseNothing|TestTheControlPlaneIsUpgraded

.PHONY: test-versions
test-versions: build ## run the tests on control planes of other versions of Kubernetes (MINORS="1.34 1.37"; the first time compiles each: many minutes)
	@for minor in $(or $(MINORS),1.34 1.35 1.36 1.37); do JOBPOLICY_TESTS='$(ON_EACH_MINOR)' tools/test-version.sh $$minor; done

# The images for this machine's architecture: those that the chart names, and the same ones as those of the next version.
NEXT := v0.0.1-dev
.PHONY: test-images
test-images:
	@$(MAKE) images PLATFORMS=linux/$(shell go env GOARCH)
	@GOWORK=off go -C tools run ./cmd/images -C $(CURDIR) -o $(CURDIR)/bin/images-next -version $(NEXT) -platforms linux/$(shell go env GOARCH)

# make test runs only the quick attacks, and measures no latency. The attacker has one processor, at the lowest priority,
# so that the latency is the engine's. As root, engine and caller run in the real-time class of the scheduler, idle and under
# attack alike: Linux then gives a free processor to each of their threads at once. In the ordinary class it may let a thread
# wait behind another one for a tick of 4 ms, even beside an idle processor. Run it on a machine that does nothing else.
REALTIME := $(if $(filter 0,$(shell id -u)),-exec 'chrt --rr 1')
.PHONY: attack
attack: ## attack an engine in every known way: its memory stays below the manifest's limit, another caller's p99 within 3 times of idle (minutes; root; MEASURE=2s ONLY=regexp REALTIME=)
	@echo 'scheduling class of engine and caller: $(if $(REALTIME),real time,the ordinary one; as root, real time)'
	go -C services test $(REALTIME) -count=1 -v -timeout 60m ./cmd/jobpolicy-engine -run 'TestAttacks' -args -attack.all -attack.measure=$(or $(MEASURE),2s) -attack.only='$(ONLY)'

.PHONY: test-tools
test-tools: ## run the tests of the project's own checks, and of the Helm chart
	GOWORK=off $(YIELD) go -C tools test -timeout 30m ./...
	GOWORK=off $(YIELD) go -C tools/lint test ./...
	PATH="$$PATH:$(BIN)" GOWORK=off $(YIELD) go -C tools/chart test -count=1 ./...

# One target a module, test-<module>.
define light_test
.PHONY: test-$(call slug,$(1))
test-$(call slug,$(1)):
	$(YIELD) go -C $(1) test $$(RACE) ./...
endef
$(foreach m,$(LIGHT),$(eval $(call light_test,$(m))))

# -count=1: a result also depends on the programs in bin/, which the test cache does not see. -p 2: each of these
# packages runs whole control planes, which mostly wait. BUILT=1: bin/ is up to date, so nobody writes it while others run it.
RUN_HEAVY := test -count=1 -p 2 -timeout 30m
.PHONY: test-deploy-local test-test test-e2e test-rest
test-deploy-local: $(if $(BUILT),,build)
	go -C deploy/local $(RUN_HEAVY) ./cmd/... ./internal/components
	go -C deploy/local $(RUN_HEAVY) $(RACE) $$(go -C deploy/local list ./... | grep -v -e /cmd/ -e /internal/components)

test-test: test-e2e test-rest

# This package takes minutes in which it mostly waits, so make test runs it beside all else.
test-e2e: $(if $(BUILT),,build)
	go -C test $(RUN_HEAVY) ./plane/e2e

test-rest: $(if $(BUILT),,build)
	go -C test $(RUN_HEAVY) $$(go -C test list ./... | grep -v '/plane/e2e$$')

.PHONY: cases
cases: ## write the cases of proto/conformance from the engine's scenarios
	go -C engine test -count=1 . ./cronjob ./statusrules -run 'TestScenarios|TestInvalidRequests|TestWrittenCases|TestConformanceCases' -conformance.write

.PHONY: explore
explore: ## run the property tests with new seeds, and print the seeds that fail (FOR=10m, or N=100 seeds)
	@FOR='$(FOR)' N='$(N)' tools/explore.sh

# The same cases under the built-in controllers and under ours; a fifth as many CronJobs, and some times to live.
CASES = $(or $(N),$(if $(SEED),1,5000))
FIRST = $(or $(SEED),$(FROM),1)

.PHONY: parity
parity: ## compare with the built-in controllers on N=5000 generated cases from seed FROM=1 on, or on one: SEED=7
	go -C test test -count=1 -timeout 0 -v ./simulated/parity -run TestParity -args -parity.cases=$(CASES) -parity.seed=$(FIRST)
	go -C test test -count=1 -timeout 0 -v ./simulated/parity/cron -run TestCronJobsAndTTLs -args -cron.crons=$$((($(CASES) + 4) / 5)) -cron.ttls=$$((($(CASES) + 19) / 20)) -cron.seed=$(FIRST)

# A test binary of the simulated world, for the targets below.
RUN_WORLDS = go -C test test -count=1 -timeout 0 -v ./simulated/world -run

.PHONY: worlds
worlds: ## simulate N=1000 clusters ("worlds") from seed FROM=1 on, or replay one and print its history: SEED=7 (TELL=1: without shrinking it); UPSTREAM=1: with Kubernetes' own controllers
	@$(RUN_WORLDS) TestWorlds -args $(if $(UPSTREAM),-world.upstream) $(if $(SEED),-world.seed=$(SEED) $(if $(TELL),-world.tell),-world.seeds=$(or $(N),1000) -world.from=$(or $(FROM),1)) $(WORLD_ARGS)

.PHONY: proof-packages
proof-packages: ## install what make prove needs: Spin, z3 and a C compiler (Debian packages; as root)
	@proof/packages.sh

# docs/proof.md says what is proved.
.PHONY: prove prove-full
prove: ## check the model of the ledger with Spin, and its invariant with z3 (minutes; QUICK=1: a sample)
	@proof/prove.sh $(if $(QUICK),quick,small)

prove-full: ## the same with more pods and executors (long; needs 3 GB of memory)
	@proof/prove.sh large

# The test of package exhaustive in make test explores a sample.
.PHONY: exhaustive
exhaustive: ## try every order of the steps of a few pods and executors with the real engine and tracker (STATES=10000000; minutes on an idle machine)
	@GOGC=400 GOMEMLIMIT=6GiB go -C test test -count=1 -timeout 0 -v ./simulated/exhaustive -run TestEveryOrderOfSteps -args -exhaustive.states=$(or $(STATES),10000000)

.PHONY: mutants
mutants: ## plant defects in engine and executor, and search for each in simulated worlds (MUTANT=regexp N=20000; hours)
	@$(RUN_WORLDS) 'TestMutants$$' -args -world.mutants='$(or $(MUTANT),.)' -world.mutant-seeds=$(or $(N),20000) $(WORLD_ARGS)

# Kubernetes' own end-to-end specs of Jobs, CronJobs and times to live (test/node/specs), on any cluster. ALL=1 runs those
# that take more than two minutes, too; SPECS is a regular expression that chooses some by name.
.PHONY: kubernetes-specs
kubernetes-specs: build-specs ## run Kubernetes' own specs of Jobs and CronJobs on a cluster: KUBECONFIG=file (ALL=1 SPECS=regexp)
	@$(JOBPOLICY_BIN_DIR)/kubernetes-specs $(if $(KUBECONFIG),--kubeconfig '$(KUBECONFIG)') $(if $(ALL),--all) $(if $(SPECS),--focus '$(SPECS)')

.PHONY: build-specs
build-specs:
	@go -C test build -ldflags '-s -w' -o $(JOBPOLICY_BIN_DIR)/kubernetes-specs ./kit/cmd/kubernetes-specs

# What test/node/cluster/telemetry runs in pods: an OpenTelemetry collector, and a caller of the engine. Static, so that any
# image can hold them.
.PHONY: build-telemetry
build-telemetry:
	@GOWORK=off CGO_ENABLED=0 go -C deploy/local/programs/otelcol build -ldflags '-s -w' -o $(JOBPOLICY_BIN_DIR)/otelcol .
	@CGO_ENABLED=0 go -C test build -ldflags '-s -w' -o $(JOBPOLICY_BIN_DIR)/enginecaller ./kit/cmd/enginecaller

# --- benchmarks -----------------------------------------------------------------------------------------------------

# SCENARIOS and CONTENDERS are regular expressions that choose some. DOCS=1 writes the tables and plots in docs/.
# PROFILE=dir writes CPU profiles there. REPEAT=n runs each scenario n times and shows medians.
BENCH_ARGS = -bench.repeat=$(or $(REPEAT),1) -bench.scenarios='$(SCENARIOS)' -bench.contenders='$(CONTENDERS)' $(if $(DOCS),-bench.docs=$(CURDIR)/docs) $(if $(PROFILE),-bench.profile=$(abspath $(PROFILE)))
RUN_BENCH = go -C test test -count=1 -timeout 0 -v ./plane/bench -run TestBenchmark -args $(BENCH_ARGS)

.PHONY: bench
bench: build ## measure beside the built-in controller (minutes; SCENARIOS=S2 CONTENDERS=floor)
	@$(RUN_BENCH) -bench.size=small

.PHONY: bench-full
bench-full: build ## the same at full size: 10,000 pods a Job (hours)
	@$(RUN_BENCH) -bench.size=full

.PHONY: bench-huge
bench-huge: build ## the same with 100,000 pods in one Job: at the same time, and 100 at a time (hours, about 16 GiB of memory)
	@$(RUN_BENCH) -bench.size=huge

.PHONY: bench-failover
bench-failover: build ## measure how long nobody runs Jobs after the leader was stopped or killed (minutes; PODS=100000)
	go -C test test -count=1 -v -timeout 60m ./plane/failover -args -failover.pods=$(or $(PODS),100000)

.PHONY: bench-engine
bench-engine: ## the engine's Go benchmarks: time, bytes and allocations a decision (BENCH=regexp COUNT=n)
	go -C engine test -run '^$$' -bench '$(or $(BENCH),.)' -count $(or $(COUNT),1) -benchmem ./...

# --- code -----------------------------------------------------------------------------------------------------------

TOOLS := $(addprefix $(BIN)/,buf gofumpt protoc-gen-go protoc-gen-go-grpc staticcheck golangci-lint checkrules)

.PHONY: tools
tools: $(BIN)/.built ## build the pinned tools into .bin

# One stamp for all tools: only the files in tools/ determine them.
$(BIN)/.built: tools/go.mod tools/go.sum tools/lint/go.mod tools/lint/go.sum $(wildcard tools/cmd/checkrules/*.go)
	@echo 'building the tools into .bin (the first time takes a few minutes)'
	@GOBIN=$(BIN) GOWORK=off go -C tools install tool ./cmd/checkrules
	@GOBIN=$(BIN) GOWORK=off go -C tools/lint install tool
	@ls $(TOOLS) >/dev/null
	@touch $@

.PHONY: generate
generate: tools ## format the contract, and generate the Go code and the CustomResourceDefinition; then make manifests
	$(BIN)/buf format -w
	$(BIN)/buf generate
	$(BIN)/buf generate --template buf.gen.crd.yaml

.PHONY: manifests
manifests: ## write the manifests of deploy/kubernetes from the Helm chart
	GOWORK=off go -C tools/chart run ./cmd/manifests $(CURDIR)

.PHONY: helm
helm: $(BIN)/helm ## build Helm into .bin

$(BIN)/helm: tools/chart/go.mod tools/chart/go.sum
	@echo 'building Helm into .bin (the first time takes a few minutes)'
	@GOBIN=$(BIN) GOWORK=off go -C tools/chart install tool
	@touch $@

.PHONY: upstream-diff
upstream-diff: ## print what changed between two releases of Kubernetes in what this repository follows: FROM=v1.36.3 TO=v1.37.2 (DETAILS=1: the lines, too)
	@GOWORK=off go -C tools run ./cmd/upstreamdiff -C $(CURDIR) $(if $(DETAILS),-v) '$(FROM)' '$(TO)'

.PHONY: kubernetes
kubernetes: ## set every module to another release of Kubernetes: TO=v1.37.2
	@tools/kubernetes-version.sh '$(TO)'

.PHONY: measure
measure: ## print how large the repository is: lines, functions, packages, documents
	@GOWORK=off go -C tools run ./cmd/measure -C $(CURDIR)

.PHONY: align
align: tools ## update every module to the newest version of a shared dependency that any module requires
	$(BIN)/checkrules -align versions

.PHONY: fmt
fmt: tools ## format every Go and proto file
	$(BIN)/gofumpt -w $(MODULES) tools
	$(BIN)/buf format -w

# --- checks ---------------------------------------------------------------------------------------------------------

CHECKS := tidy gofumpt vet staticcheck lint imports purity versions docs owners licenses buf-lint buf-format buf-breaking generated

.PHONY: verify
verify: tools ## run all checks except the tests; each check is also a target, verify-<check>
	@tools/run-all.sh 'make verify' $(addprefix verify-,$(CHECKS))

.PHONY: verify-tidy
verify-tidy: ## each go.mod and go.sum lists exactly what the code needs
	@$(call each_module,GOWORK=off go -C $$m mod tidy -diff)
	@for m in deploy/local/programs/*/ deploy/local/olderminors/*/ test/plane/clients/programs/*/; do GOWORK=off go -C $$m mod tidy -diff || { echo "^ in $$m"; exit 1; }; done

.PHONY: verify-gofumpt
verify-gofumpt: tools ## Go code is formatted
	@files=$$($(BIN)/gofumpt -l $(MODULES) tools); \
	[[ -z $$files ]] || { echo "gofumpt would change (make fmt does):"; echo "$$files"; exit 1; }

.PHONY: verify-vet
verify-vet: ## go vet finds nothing
	@$(call each_module,$$gowork go -C $$m vet ./...)

.PHONY: verify-staticcheck
verify-staticcheck: tools ## staticcheck finds nothing (staticcheck.conf)
	@$(call each_module,(cd $$m && $$gowork $(BIN)/staticcheck ./...))

.PHONY: verify-lint
verify-lint: tools ## golangci-lint finds nothing: imports, what the engine may call, length of functions (.golangci.yml)
	@# Only the engine needs forbidigo, which must load types: seconds there, minutes where Kubernetes is compiled.
	@$(call each_module,(cd $$m && $$gowork $(BIN)/golangci-lint run $$([[ $$m == engine ]] || echo --enable-only=depguard --enable-only=funlen) ./...))

.PHONY: verify-imports
verify-imports: tools ## modules require and link only what the architecture allows (tools/cmd/checkrules/rules.go)
	@$(BIN)/checkrules imports

.PHONY: verify-purity
verify-purity: tools ## the engine has no goroutine, no memory between calls, and no map order that leaks
	@$(BIN)/checkrules purity

.PHONY: verify-versions
verify-versions: tools ## one version of each dependency in all modules
	@$(BIN)/checkrules versions

.PHONY: verify-docs
verify-docs: tools ## documents name the versions that are built and tested
	@$(BIN)/checkrules docs

.PHONY: verify-licenses
verify-licenses: ## every module that a released program links has a license text, which images and archives hold
	@GOWORK=off go -C tools run ./cmd/licenses -C $(CURDIR)

.PHONY: verify-owners
verify-owners: tools ## owner references are compared by group, kind and UID, not by version
	@$(BIN)/checkrules owners

.PHONY: verify-buf-lint
verify-buf-lint: tools ## the contract follows buf's STANDARD rules
	@$(BIN)/buf lint

.PHONY: verify-buf-format
verify-buf-format: tools ## the contract is formatted
	@$(BIN)/buf format --diff --exit-code

.PHONY: verify-buf-breaking
verify-buf-breaking: tools ## the contract is compatible with the last one on main
	@tools/breaking.sh

.PHONY: verify-generated
verify-generated: tools ## the generated code is up to date
	@tools/generated.sh

.PHONY: clean
clean: ## remove what was built: bin/ and .bin/
	rm -rf bin .bin

# each_module runs a command for every module, named m, to the end even if one fails. $$gowork is what a go command
# needs in front of it there.
define each_module
failed=; \
for m in $(MODULES) $(OUTSIDE); do \
	gowork=env; case " $(OUTSIDE) " in *" $$m "*) gowork='env GOWORK=off' ;; esac; \
	$(1) || { echo "^ in $$m"; failed+=" $$m"; }; \
done; \
[[ -z $$failed ]] || { echo "failed in:$$failed"; exit 1; }
endef
