package main

import "regexp"

// An area is a part of Kubernetes that code here follows.
type area struct {
	title  string
	module string
	// files are patterns of paths in the module. Files that are made by generators, and tests, are left
	// out unless tests is true.
	files []string
	tests bool
	// by are the files and folders here that follow the area.
	by []string
	// only: only declarations whose names match. nil: all.
	only *regexp.Regexp
	// statements: only the statements of functions that match are of interest, each by itself.
	statements *regexp.Regexp
	// reachableFrom: only the fields of types that a field of this type leads to.
	reachableFrom string
}

const (
	kubernetes = "k8s.io/kubernetes"
	api        = "k8s.io/api"
)

// followed is in the order in which a new release is best read: what users write, what the API
// server takes, what the controllers do, what surrounds them, and how upstream tests it.
var followed = []area{
	{
		title: "fields of Jobs and CronJobs", module: api, files: []string{"batch/v1/types.go"},
		by: []string{"proto/jobpolicy/v1/job.proto", "proto/jobpolicy/v1/cron_job.proto", "executor/wire", "services/internal/jobcheck"},
	},
	{
		title: "fields of pods and their templates", module: api, files: []string{"core/v1/types.go"}, reachableFrom: "Pod",
		by: []string{"executor/podcache", "executor/wire", "engine/simulate"},
	},
	{
		title: "Workloads and PodGroups", module: api, files: []string{"scheduling/*/types.go"},
		by: []string{"executor/internal/gang", "executor/internal/api/gangs.go"},
	},
	{
		title: "objects of gangs", module: "k8s.io/component-helpers", files: []string{"scheduling/schedulingv1/workloadbuilder/*.go"},
		by: []string{"executor/internal/gang"},
	},
	{
		title: "status rules and validation", module: kubernetes,
		files: []string{"pkg/apis/batch/validation/*.go", "pkg/api/job/*.go", "pkg/registry/batch/*/strategy.go"},
		by:    []string{"engine/statusrules", "engine/validate.go", "services/internal/jobcheck", "test/upstream/apistatus", "test/upstream/requests", "test/simulated/world/apiserver/registry.go"},
	},
	{
		title: "defaults", module: kubernetes, files: []string{"pkg/apis/batch/v1/defaults.go"},
		by: []string{"executor/wire/spec.go"},
	},
	{
		title: "Job controller", module: kubernetes, files: []string{"pkg/controller/job/job_controller.go", "pkg/controller/job/tracking_utils.go", "pkg/controller/job/util/*.go"},
		by: []string{"engine/decide.go", "engine/verdict.go", "executor", "test/simulated/parity/virtual"},
	},
	{
		title: "retry delays", module: kubernetes, files: []string{"pkg/controller/job/backoff_utils.go"},
		by: []string{"engine/backoff.go"},
	},
	{
		title: "indexes", module: kubernetes, files: []string{"pkg/controller/job/indexed_job_utils.go"},
		by: []string{"engine/indexset", "engine/planindexes.go", "engine/perindex.go"},
	},
	{
		title: "pod failure policy", module: kubernetes, files: []string{"pkg/controller/job/pod_failure_policy.go"},
		by: []string{"engine/failurepolicy.go"},
	},
	{
		title: "success policy", module: kubernetes, files: []string{"pkg/controller/job/success_policy.go"},
		by: []string{"engine/successpolicy.go"},
	},
	{
		title: "gangs", module: kubernetes, files: []string{"pkg/controller/job/job_scheduling_manager.go", "pkg/controller/scheduling/podgroupprotection/*.go"},
		by: []string{"engine/gang.go", "executor/internal/gang", "test/plane/e2e/gang_test.go"},
	},
	{
		title: "CronJob controller", module: kubernetes, files: []string{"pkg/controller/cronjob/*.go"},
		by: []string{"engine/cronjob", "engine/schedule", "executor/internal/cronjob"},
	},
	{
		title: "TTL controller", module: kubernetes, files: []string{"pkg/controller/ttlafterfinished/*.go"},
		by: []string{"executor/internal/ttl"},
	},
	{
		title: "metrics", module: kubernetes, files: []string{"pkg/controller/job/metrics/*.go", "pkg/controller/cronjob/metrics/*.go", "pkg/controller/ttlafterfinished/metrics/*.go"},
		by: []string{"executor/metrics.go", "executor/internal/cronjob", "executor/internal/ttl"},
	},
	{
		title: "rights of the controllers", module: kubernetes, files: []string{"plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go"},
		statements: regexp.MustCompile(`"(job-controller|cronjob-controller|ttl-after-finished-controller)"|jobControllerRules`),
		by:         []string{"deploy/chart/jobpolicy/templates/rbac.yaml", "deploy/local/cluster/rbac.go"},
	},
	{
		title: "feature gates", module: kubernetes, files: []string{"pkg/features/kube_features.go"},
		only: regexp.MustCompile(`^defaultVersionedKubernetesFeatureGates.*(Job|Workload|PodGroup|Gang|Restart|Sidecar|Eviction|Disruption|Taint|StaleController|Sharded|Terminating|PodLevelResources|InPlacePodVertical|ContainerStop|NodeDeclared)`),
		by:   []string{"services/cmd/jobpolicy-executor/featuregates.go", "test/plane/e2e/gates_test.go"},
	},
	{
		title: "end of pods", module: kubernetes, files: []string{"pkg/kubelet/kubelet_pods.go", "pkg/kubelet/active_deadline.go", "pkg/kubelet/container/helpers.go", "pkg/util/pod/*.go", "pkg/api/v1/pod/util.go"},
		by: []string{"engine/simulate", "deploy/local/internal/hostnode", "proto/podfacts"},
	},
	{
		title: "integration tests", module: kubernetes, files: []string{"test/integration/job/*.go", "test/integration/cronjob/*.go", "test/integration/ttlcontroller/*.go"}, tests: true,
		by: []string{"test/simulated/parity", "test/plane/e2e"},
	},
	{
		title: "end-to-end specs", module: kubernetes, files: []string{"test/e2e/apps/job.go", "test/e2e/apps/cronjob.go", "test/e2e/apps/ttl_after_finished.go", "test/e2e/framework/job/*.go"},
		by: []string{"test/node/specs", "test/node/cluster/specs", "docs/kubernetes-specs.md"},
	},
}
