package e2e

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/objects"
)

// A metered control plane has one Job controller, and tells its metrics.
type metered struct {
	name, namespace string
	client          kubernetes.Interface
	http            *http.Client
	url             string
}

// hard ends with its grace period and not before, so that it has not ended
// while its deletion is being accounted for.
const hard = "trap '' TERM; sleep 600"

// measuredGrace is the grace period of all measured pods, in seconds. It is long enough for a
// slow machine to account for a deletion. So is the time before a pod is deleted: hard must
// have set its trap by then.
const measuredGrace = 15

// measuredJobs raise every counter of the Job controller whose increase does
// not depend on timing, with every label value that it may have.
func measuredJobs() map[string]batchv1.JobSpec {
	never := func(script string) corev1.PodTemplateSpec {
		return withJobUID(shell(script, corev1.RestartPolicyNever))
	}
	indexed := new(batchv1.IndexedCompletion)
	return map[string]batchv1.JobSpec{
		"two-pods":    {Completions: new(int32(2)), Parallelism: new(int32(2)), Template: never("true")},
		"every-index": {Completions: new(int32(3)), Parallelism: new(int32(3)), CompletionMode: indexed, Template: never("true")},
		"retried":     {BackoffLimit: new(int32(1)), Template: never("exit 1")},
		"retried-when-ended": {
			BackoffLimit: new(int32(1)), PodReplacementPolicy: new(batchv1.Failed), Template: never("exit 1"),
		},
		"too-long": {ActiveDeadlineSeconds: new(int64(15)), Template: never(hard)},
		"policy-fails-job": {
			PodFailurePolicy: onExit(42, batchv1.PodFailurePolicyActionFailJob), Template: never("exit 42"),
		},
		"policy-counts": {
			BackoffLimit: new(int32(0)), PodFailurePolicy: onExit(44, batchv1.PodFailurePolicyActionCount), Template: never("exit 44"),
		},
		"policy-ignores": {
			BackoffLimit: new(int32(0)), PodFailurePolicy: onExit(43, batchv1.PodFailurePolicyActionIgnore),
			Template: never(`mark="/tmp/jobpolicy-e2e-$UID_OF_JOB"; mkdir "$mark" 2>/dev/null && exit 43; rmdir "$mark"`),
		},
		"policy-fails-index": {
			Completions: new(int32(2)), Parallelism: new(int32(2)), CompletionMode: indexed, BackoffLimitPerIndex: new(int32(1)),
			PodFailurePolicy: onExit(45, batchv1.PodFailurePolicyActionFailIndex), Template: never(`test "$JOB_COMPLETION_INDEX" = 0 || exit 45`),
		},
		"index-retried": {
			Completions: new(int32(1)), CompletionMode: indexed, BackoffLimitPerIndex: new(int32(1)), Template: never("exit 1"),
		},
		"too-many-failed-indexes": {
			Completions: new(int32(2)), CompletionMode: indexed, BackoffLimitPerIndex: new(int32(0)), MaxFailedIndexes: new(int32(0)),
			Template: never("exit 1"),
		},
		"one-index-is-enough": {
			Completions: new(int32(2)), Parallelism: new(int32(2)), CompletionMode: indexed,
			SuccessPolicy: &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("0")}}},
			Template:      never(`test "$JOB_COMPLETION_INDEX" = 0 && exec sleep 10; ` + hard),
		},
		"of-another-manager": {ManagedBy: new("example.com/measured"), Template: never("true")},
	}
}

// onExit is a pod failure policy with one rule, on an exit code.
func onExit(code int32, action batchv1.PodFailurePolicyAction) *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: action,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code},
		},
	}}}
}

// measuredIncrease is what measuredJobs and one pod of another controller add.
var measuredIncrease = map[string]float64{
	`jobs_finished_total{completion_mode="NonIndexed",reason="CompletionsReached",result="succeeded"}`: 2, // two-pods, policy-ignores
	`jobs_finished_total{completion_mode="Indexed",reason="CompletionsReached",result="succeeded"}`:    1, // every-index
	`jobs_finished_total{completion_mode="Indexed",reason="SuccessPolicy",result="succeeded"}`:         1, // one-index-is-enough
	`jobs_finished_total{completion_mode="NonIndexed",reason="BackoffLimitExceeded",result="failed"}`:  3, // retried, retried-when-ended, policy-counts
	`jobs_finished_total{completion_mode="NonIndexed",reason="DeadlineExceeded",result="failed"}`:      1, // too-long
	`jobs_finished_total{completion_mode="NonIndexed",reason="PodFailurePolicy",result="failed"}`:      1, // policy-fails-job
	`jobs_finished_total{completion_mode="Indexed",reason="FailedIndexes",result="failed"}`:            2, // policy-fails-index, index-retried
	`jobs_finished_total{completion_mode="Indexed",reason="MaxFailedIndexesExceeded",result="failed"}`: 1, // too-many-failed-indexes

	`job_pods_finished_total{completion_mode="NonIndexed",result="succeeded"}`: 3, // two-pods 2, policy-ignores
	`job_pods_finished_total{completion_mode="NonIndexed",result="failed"}`:    7, // retried 2, retried-when-ended 2, too-long, policy-fails-job, policy-counts
	`job_pods_finished_total{completion_mode="Indexed",result="succeeded"}`:    5, // every-index 3, policy-fails-index, one-index-is-enough
	`job_pods_finished_total{completion_mode="Indexed",result="failed"}`:       4, // policy-fails-index, index-retried 2, too-many-failed-indexes

	`job_finished_indexes_total{backoffLimit="global",status="succeeded"}`:   4, // every-index 3, one-index-is-enough
	`job_finished_indexes_total{backoffLimit="perIndex",status="succeeded"}`: 1, // policy-fails-index
	`job_finished_indexes_total{backoffLimit="perIndex",status="failed"}`:    3, // policy-fails-index, index-retried, too-many-failed-indexes

	`job_pods_creation_total{reason="new",status="succeeded"}`:                            18, // the others of the 21 pods
	`job_pods_creation_total{reason="recreate_terminating_or_failed",status="succeeded"}`: 2,  // retried, index-retried
	`job_pods_creation_total{reason="recreate_failed",status="succeeded"}`:                1,  // retried-when-ended

	`pod_failures_handled_by_failure_policy_total{action="FailJob"}`:   1,
	`pod_failures_handled_by_failure_policy_total{action="Count"}`:     1,
	`pod_failures_handled_by_failure_policy_total{action="Ignore"}`:    1,
	`pod_failures_handled_by_failure_policy_total{action="FailIndex"}`: 1,

	// All pods but those of too-long and of one-index-is-enough that are deleted,
	// and the pod of another controller.
	`terminated_pods_tracking_finalizer_total{event="add"}`:    20,
	`terminated_pods_tracking_finalizer_total{event="delete"}`: 20,

	`jobs_by_external_controller_total{controller_name="example.com/measured"}`: 1,
}

// timed are the metrics whose values depend on timing.
var timed = []string{"job_syncs_total", "job_sync_duration_seconds", "stale_sync_skips_total"}

// The same Jobs raise the same counters, in the built-in Job controller and in
// this one, and leave the same events. It counts all that happens on a control plane, so
// each side has one of its own.
func TestMetricsAndEventsAreThoseOfTheBuiltInController(t *testing.T) {
	t.Parallel()
	sides := []*metered{ourMetered(t), builtInMetered(t)}
	before := make([]map[string]float64, len(sides))
	for i, side := range sides {
		before[i] = side.counters(t)
		side.createMeasured(t)
	}
	events := make([][]string, len(sides))
	for i, side := range sides {
		side.awaitMeasured(t)
		increase := func() string { return cmp.Diff(measuredIncrease, increaseOf(before[i], side.counters(t))) }
		eventually(t, side.name+": counters as expected", func() (bool, string) { diff := increase(); return diff == "", diff })
		time.Sleep(2 * time.Second)
		if diff := increase(); diff != "" {
			t.Errorf("%s: counters moved on without any reason (-want +got):\n%s", side.name, diff)
		}
		side.refuseCreation(t)
		events[i] = side.events(t)
	}
	ours, builtIn := sides[0].families(t), sides[1].families(t)
	if diff := cmp.Diff(builtIn, ours); diff != "" {
		t.Errorf("metrics and their labels (-built-in +ours):\n%s", diff)
	}
	if diff := cmp.Diff(events[1], events[0]); diff != "" {
		t.Errorf("events (-built-in +ours):\n%s", diff)
	}
}

func ourMetered(t *testing.T) *metered {
	t.Helper()
	own := controlplane.Start(t, cluster.Options{ExtraArgs: map[string][]string{cluster.Executor: executorArgs}})
	logsExecutor(t, own)
	client := kubernetes.NewForConfigOrDie(own.RESTConfig())
	return &metered{name: "ours", namespace: newNamespaceOn(t, client), client: client, http: http.DefaultClient, url: own.ExecutorURL() + "/metrics"}
}

// builtInMetered starts a control plane whose controller manager does the Jobs.
func builtInMetered(t *testing.T) *metered {
	t.Helper()
	other := controlplane.Start(t, cluster.Options{
		WithoutEngine: true, WithoutExecutor: true,
		ControllerManagerControllers: strings.Replace(cluster.DefaultControllers, ",-job-controller", "", 1),
	})
	config := other.RESTConfig()
	side := &metered{name: "built-in", namespace: "default", url: other.ControllerManagerURL() + "/metrics", client: kubernetes.NewForConfigOrDie(config)}
	var err error
	side.http, err = rest.HTTPClientFor(config)
	must.Succeed(t, err)
	controlplane.AwaitServiceAccount(t, side.client, side.namespace)
	return side
}

func (m *metered) createMeasured(t *testing.T) {
	t.Helper()
	for name, spec := range measuredJobs() {
		spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(measuredGrace))
		createJobOn(t, m.client, m.namespace, name, spec)
	}
	objects.Create(t, m.client.CoreV1().Pods(m.namespace), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "of-another-kind", Finalizers: []string{batchv1.JobTrackingFinalizer},
			OwnerReferences: []metav1.OwnerReference{ofTraining},
		},
		Spec: shell("true", corev1.RestartPolicyNever).Spec,
	})
}

// awaitMeasured waits until all is over that createMeasured began.
func (m *metered) awaitMeasured(t *testing.T) {
	t.Helper()
	for name, spec := range measuredJobs() {
		if spec.ManagedBy != nil {
			continue
		}
		waitJobOn(t, m.client, m.namespace, name, m.name+": finished", isFinished)
	}
	pods := m.client.CoreV1().Pods(m.namespace)
	eventually(t, m.name+": the pod of another kind is over", func() (bool, string) {
		pod, err := pods.Get(t.Context(), "of-another-kind", metav1.GetOptions{})
		if err != nil || pod.Status.Phase != corev1.PodSucceeded {
			return false, fmt.Sprint(err)
		}
		pod.Finalizers = nil
		_, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// refuseCreation makes creations fail. How often they are tried is a matter of
// timing.
func (m *metered) refuseCreation(t *testing.T) {
	t.Helper()
	limitPods(t, m.client, m.namespace, "full", "0")
	createJobOn(t, m.client, m.namespace, "refused", batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
	const creations, syncs = `job_pods_creation_total{reason="new",status="failed"}`, `job_syncs_total{action="pods_created",completion_mode="NonIndexed",result="error"}`
	eventually(t, m.name+": a refused creation is counted", func() (bool, string) {
		now := m.scrape(t)
		return now[creations] > 0 && now[syncs] > 0, fmt.Sprint(now[creations], now[syncs])
	})
	eventually(t, m.name+": the event of a refused creation", func() (bool, string) {
		have := m.events(t)
		return slices.ContainsFunc(have, func(line string) bool { return strings.HasPrefix(line, "refused: Warning FailedCreate") }), fmt.Sprint(have)
	})
}

// scrape returns the samples of the Job controller's metrics and work queues by
// name and labels.
func (m *metered) scrape(t *testing.T) map[string]float64 {
	t.Helper()
	response, err := m.http.Get(m.url)
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: metrics: %s %v", m.name, response.Status, err)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		at := strings.LastIndexByte(line, ' ')
		key, ours := strings.CutPrefix(line[:max(at, 0)], "job_controller_")
		queue := strings.HasPrefix(key, "workqueue_") && (strings.Contains(key, `name="job"`) || strings.Contains(key, `name="job_orphan_pod"`))
		if !ours && !queue {
			continue
		}
		if out[key], err = strconv.ParseFloat(strings.TrimSpace(line[at:]), 64); err != nil {
			t.Fatalf("%s: %q: %v", m.name, line, err)
		}
	}
	return out
}

// counters are the counters whose increase does not depend on timing.
func (m *metered) counters(t *testing.T) map[string]float64 {
	t.Helper()
	all := m.scrape(t)
	maps.DeleteFunc(all, func(key string, _ float64) bool {
		return strings.HasPrefix(key, "workqueue_") || slices.ContainsFunc(timed, func(name string) bool { return strings.HasPrefix(key, name) })
	})
	return all
}

func increaseOf(before, after map[string]float64) map[string]float64 {
	increase := map[string]float64{}
	for key, value := range after {
		if more := value - before[key]; more != 0 {
			increase[key] = more
		}
	}
	return increase
}

var labelValue = regexp.MustCompile(`(completion_mode|action|result|reason|status|backoffLimit|event|controller_name|group|resource)="[^"]*"`)

// families are the names of all metrics with the names of their labels. Work
// queues and buckets stay apart.
func (m *metered) families(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{}
	for key := range m.scrape(t) {
		if !strings.HasPrefix(key, "stale_sync_skips_total") { // It may have been raised or not.
			names[labelValue.ReplaceAllString(key, "$1")] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

var generated = regexp.MustCompile(`-[a-z0-9]{5}\b`)

// events are the kinds of events on each Job, without what is generated in them.
func (m *metered) events(t *testing.T) []string {
	t.Helper()
	list := objects.List(t, m.client.CoreV1().Events(m.namespace), metav1.ListOptions{FieldSelector: "involvedObject.kind=Job"})
	kinds := map[string]bool{}
	for _, e := range list.Items {
		message := strings.NewReplacer(m.namespace, "<namespace>", e.InvolvedObject.Name, "<job>").Replace(e.Message)
		message = generated.ReplaceAllString(message, "-<generated>")
		kinds[fmt.Sprintf("%s: %s %s %q from %s/%s on %s", e.InvolvedObject.Name, e.Type, e.Reason, message,
			e.Source.Component, e.ReportingController, e.InvolvedObject.APIVersion)] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}
