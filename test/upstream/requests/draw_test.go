package requests

import (
	"fmt"
	"math"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"jobpolicy.dev/executor"
)

// A drawer draws one Job and its pods, with anything that the API server admits
// where it checks nothing.
type drawer struct {
	*rapid.T
	n    int // The number of the Job.
	uids int
}

func pick[T any](d *drawer, label string, choices ...T) T {
	return rapid.SampledFrom(choices).Draw(d.T, label)
}

// maybe is one of the choices or nothing.
func maybe[T any](d *drawer, label string, choices ...T) *T {
	if rapid.Bool().Draw(d.T, label+" is set") {
		return new(pick(d, label, choices...))
	}
	return nil
}

func (d *drawer) uid() types.UID {
	d.uids++
	return d.uidOf(d.uids)
}

func (d *drawer) uidOf(number int) types.UID {
	return types.UID(fmt.Sprintf("00000000-0000-0000-%04x-%012x", number, d.n))
}

func (d *drawer) namespace() string { return fmt.Sprintf("ns-%d", d.n) }

func (d *drawer) version() string { return fmt.Sprint(d.n*1000 + d.uids + 1) }

// text is what nobody checks. An object as a whole must not be large.
func (d *drawer) text(label string) string {
	return pick(d, label, "", "x", "ä", "\xff", strings.Repeat("long", 100), strings.Repeat("ä\xff", 100))
}

func (d *drawer) time(label string) metav1.Time {
	return metav1.NewTime(pick(d, label,
		time.Time{}, time.Unix(0, 0), today, today.AddDate(50, 0, 0),
		time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-4000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(math.MaxInt32*1e5, 0)))
}

// today is a day like any other. The same seed draws the same objects on every day.
var today = time.Date(2026, time.September, 1, 12, 0, 0, 0, time.UTC)

var statuses = []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}

func (d *drawer) job() *batchv1.Job {
	labels := map[string]string{"job": fmt.Sprint(d.n)}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: strings.Repeat("j", pick(d, "name bytes", 1, 50)), Namespace: d.namespace(),
			UID: d.uid(), ResourceVersion: d.version(), Generation: pick(d, "generation", int64(1), math.MaxInt64),
			CreationTimestamp: metav1.NewTime(today),
		},
		Spec:   d.spec(labels),
		Status: d.status(),
	}
}

func (d *drawer) spec(labels map[string]string) batchv1.JobSpec {
	counts := []int32{0, 1, 5, math.MaxInt32}
	spec := batchv1.JobSpec{
		ManagedBy:      new(executor.ManagedBy),
		ManualSelector: new(true), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Parallelism: new(pick(d, "parallelism", int32(0), 1, 1000)), Completions: maybe(d, "completions", counts...),
		BackoffLimit:            new(pick(d, "backoffLimit", counts...)),
		ActiveDeadlineSeconds:   maybe(d, "deadline", int64(0), 1, math.MaxInt64),
		TTLSecondsAfterFinished: maybe(d, "ttl", counts...),
		Suspend:                 new(rapid.Bool().Draw(d.T, "suspend")),
		PodReplacementPolicy:    new(batchv1.Failed),
		CompletionMode:          new(batchv1.NonIndexedCompletion),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "i"}, {Name: strings.Repeat("c", 63), Image: "i"}},
			},
		},
	}
	if rapid.Bool().Draw(d.T, "indexed") {
		d.indexed(&spec)
	}
	if rapid.Bool().Draw(d.T, "failure policy") {
		spec.PodFailurePolicy = d.failurePolicy()
		return spec
	}
	spec.PodReplacementPolicy = new(pick(d, "replacement", batchv1.Failed, batchv1.TerminatingOrFailed))
	spec.Template.Spec.RestartPolicy = pick(d, "restart", corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure)
	return spec
}

func (d *drawer) indexed(spec *batchv1.JobSpec) {
	spec.CompletionMode = new(batchv1.IndexedCompletion)
	spec.Completions = new(pick(d, "indexes", int32(10), 100_000, math.MaxInt32))
	if *spec.Completions < math.MaxInt32 {
		spec.BackoffLimitPerIndex = maybe(d, "backoffLimitPerIndex", int32(0), math.MaxInt32)
	}
	if spec.BackoffLimitPerIndex != nil {
		spec.MaxFailedIndexes = maybe(d, "maxFailedIndexes", int32(0), 10)
	}
	if rapid.Bool().Draw(d.T, "success policy") {
		spec.SuccessPolicy = &batchv1.SuccessPolicy{}
		for range pick(d, "rules", 1, 20) {
			spec.SuccessPolicy.Rules = append(spec.SuccessPolicy.Rules, batchv1.SuccessPolicyRule{
				SucceededIndexes: new(pick(d, "indexes", "0", "0-3,5", "1,2,3,9")), SucceededCount: maybe(d, "count", int32(0), 1),
			})
		}
	}
}

// kind is one of many types of conditions.
func kind(n int) corev1.PodConditionType {
	return corev1.PodConditionType(fmt.Sprintf("%s.example.com/%s%d", strings.Repeat("d", 60), strings.Repeat("k", 50), n))
}

func (d *drawer) failurePolicy() *batchv1.PodFailurePolicy {
	policy := &batchv1.PodFailurePolicy{}
	for range pick(d, "failure rules", 1, 2, 20) {
		rule := batchv1.PodFailurePolicyRule{Action: pick(d, "action", batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore)}
		if rapid.Bool().Draw(d.T, "on conditions") {
			for range pick(d, "patterns", 1, 20) {
				rule.OnPodConditions = append(rule.OnPodConditions, batchv1.PodFailurePolicyOnPodConditionsPattern{
					Type: kind(rapid.IntRange(0, 300).Draw(d.T, "kind")), Status: pick(d, "pattern status", statuses...),
				})
			}
			policy.Rules = append(policy.Rules, rule)
			continue
		}
		rule.OnExitCodes = &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: maybe(d, "container", "main", strings.Repeat("c", 63)),
			Operator:      pick(d, "operator", batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn),
			Values:        []int32{math.MinInt32, 1, math.MaxInt32},
		}
		policy.Rules = append(policy.Rules, rule)
	}
	return policy
}

func (d *drawer) status() batchv1.JobStatus {
	status := batchv1.JobStatus{
		Succeeded: pick(d, "succeeded", int32(0), 3, math.MaxInt32), Failed: pick(d, "failed", int32(0), 3, math.MaxInt32),
		Active: pick(d, "active", int32(0), math.MaxInt32), Ready: maybe(d, "ready", int32(0)),
		UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
	}
	if rapid.Bool().Draw(d.T, "started") {
		status.StartTime = new(d.time("start"))
	}
	odd := []types.UID{"x", "ABCDEFAB-0000-0000-0000-000000000001", "abcdefab-0000-0000-0000-000000000001", d.uid()}
	for ahead := range 4 {
		odd = append(odd, d.uidOf(d.uids+1+ahead)) // Of a pod, perhaps.
	}
	for _, uid := range odd {
		switch pick(d, "uncounted", "no", "succeeded", "failed") {
		case "succeeded":
			status.UncountedTerminatedPods.Succeeded = append(status.UncountedTerminatedPods.Succeeded, uid)
		case "failed":
			status.UncountedTerminatedPods.Failed = append(status.UncountedTerminatedPods.Failed, uid)
		}
	}
	message := pick(d, "message", "", "x", strings.Repeat("ä\xff", 2000), strings.Repeat("long", 2000))
	if rapid.Bool().Draw(d.T, "long message") {
		message = strings.Repeat(message, 5)
	}
	for i := range pick(d, "conditions", 0, 1, 5, 150) {
		status.Conditions = append(status.Conditions, batchv1.JobCondition{
			Type:   pick(d, "job condition", batchv1.JobSuspended, "", "example.com/Other", batchv1.JobConditionType(fmt.Sprint(i)), batchv1.JobConditionType(d.text("type"))),
			Status: pick(d, "job condition status", append(statuses, "Odd")...), Reason: message, Message: message,
			LastProbeTime: d.time("probe"), LastTransitionTime: d.time("transition"),
		})
	}
	return status
}

func (d *drawer) pod(job *batchv1.Job) *corev1.Pod {
	uid := d.uid()
	numbers := []string{"", "0", "3", "-1", "x", "2147483646", "2147483647", "99999999999999999999", strings.Repeat("9", 10_000)}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", strings.Repeat("p", pick(d, "pod name bytes", 1, 240)), d.uids), Namespace: job.Namespace,
			UID: uid, ResourceVersion: d.version(), Labels: job.Spec.Selector.MatchLabels, CreationTimestamp: metav1.NewTime(today),
			Annotations: map[string]string{
				batchv1.JobCompletionIndexAnnotation:          pick(d, "index", numbers...),
				batchv1.JobIndexFailureCountAnnotation:        pick(d, "failure count", numbers...),
				batchv1.JobIndexIgnoredFailureCountAnnotation: pick(d, "ignored count", numbers...),
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
			Finalizers:      pick(d, "finalizers", nil, []string{batchv1.JobTrackingFinalizer}),
		},
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}},
		Status: corev1.PodStatus{
			Phase:                 pick(d, "phase", corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown, "", "Odd"),
			ContainerStatuses:     d.containers("container", pick(d, "containers", 0, 1, 1500)),
			InitContainerStatuses: d.containers("sidecar", pick(d, "init containers", 0, 1, 3)),
		},
	}
	for i := range pick(d, "pod conditions", 0, 1, 301) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type:   pick(d, "pod condition", kind(i), corev1.PodReady, corev1.PodConditionType(d.text("type"))),
			Status: pick(d, "pod condition status", corev1.ConditionTrue, corev1.ConditionFalse, "", "Odd"), LastTransitionTime: d.time("since"),
		})
	}
	if rapid.Bool().Draw(d.T, "deleting") {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(today)), maybe(d, "grace", int64(0), 30, math.MaxInt64)
	}
	return pod
}

// containers are alike but for their exit codes: there may be many.
func (d *drawer) containers(name string, n int) []corev1.ContainerStatus {
	name = pick(d, "container name", name, "main", d.text("container name"))
	restarts, at := pick(d, "restarts", int32(0), 3, -3, math.MinInt32, math.MaxInt32), d.time("finishedAt")
	var out []corev1.ContainerStatus
	for i := range n {
		state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(i), StartedAt: metav1.NewTime(today), FinishedAt: at}}
		out = append(out, corev1.ContainerStatus{Name: name, RestartCount: restarts, State: state})
	}
	return out
}
