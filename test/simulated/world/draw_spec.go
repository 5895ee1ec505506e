package world

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor"
)

const namespace = "default"

// elsewhere is the namespace of strangers. It has no Job and no CronJob that anything belongs to.
const elsewhere = "elsewhere"

// hungNamespace is where webhooks hang.
const hungNamespace = "hung"

// foreignManager manages Jobs that are not ours.
const foreignManager = "example.com/other"

// exits are the exit codes of containers and of failure policy rules.
var exits = []int32{1, 3, 42, 137}

// spec draws the spec of a Job. Six of ten are Indexed. Every pair of fields occurs
// together in some world.
func (d *drawer) spec() batchv1.JobSpec {
	n := int32(d.among(1, 5))
	if d.chance(4) {
		n = 0
	}
	spec := batchv1.JobSpec{
		Parallelism:  new(int32(d.among(1, 5))),
		BackoffLimit: new(int32(d.among(0, 6))),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "none"}},
		}},
	}
	kind := d.IntN(100)
	if kind < 85 {
		spec.Completions = new(n)
	}
	if d.chance(5) {
		spec.Parallelism = new(int32(0))
	}
	d.containers(&spec.Template.Spec)
	if kind < 60 {
		spec.CompletionMode = new(batchv1.IndexedCompletion)
		d.indexFields(&spec, n)
	}
	d.policies(&spec)
	d.limits(&spec)
	d.manager(&spec)
	return spec
}

func (d *drawer) limits(spec *batchv1.JobSpec) {
	switch {
	case d.chance(8):
		spec.ActiveDeadlineSeconds = new(int64(d.among(1, 60)))
	case d.chance(8):
		spec.ActiveDeadlineSeconds = new(int64(d.among(60, 1200)))
	}
	if d.chance(15) {
		spec.TTLSecondsAfterFinished = new(int32(pick(d, 0, 1, 30, 600)))
	}
	if d.chance(15) {
		spec.Suspend = new(true)
	}
}

// manager draws who manages the Job. In coexist mode only Jobs that name us are ours.
func (d *drawer) manager(spec *batchv1.JobSpec) {
	switch k := d.IntN(100); {
	case k < 6:
		spec.ManagedBy = new(foreignManager)
	case k < 9 || d.p.executor.replace && k < 60:
		if k%3 == 0 {
			spec.ManagedBy = new(batchv1.JobControllerName)
		}
	default:
		spec.ManagedBy = new(executor.ManagedBy)
	}
}

func (d *drawer) containers(pod *corev1.PodSpec) {
	if d.chance(30) {
		pod.Containers = append(pod.Containers, corev1.Container{Name: "side", Image: "none"})
	}
	if d.chance(15) {
		pod.InitContainers = append(pod.InitContainers, corev1.Container{Name: "init", Image: "none"})
	}
	if d.chance(15) {
		pod.InitContainers = append(pod.InitContainers, corev1.Container{
			Name: "sidecar", Image: "none", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		})
	}
}

func (d *drawer) indexFields(spec *batchv1.JobSpec, n int32) {
	if d.chance(40) {
		spec.BackoffLimitPerIndex = new(int32(d.among(0, 2)))
		spec.BackoffLimit = nil
		if d.chance(50) && n > 0 {
			spec.MaxFailedIndexes = new(int32(d.among(0, min(int(n), 2))))
		}
	}
	if d.chance(30) && n > 0 {
		spec.SuccessPolicy = &batchv1.SuccessPolicy{}
		for range d.among(1, 2) {
			spec.SuccessPolicy.Rules = append(spec.SuccessPolicy.Rules, d.successRule(int(n)))
		}
	}
}

func (d *drawer) successRule(n int) batchv1.SuccessPolicyRule {
	rule, most := batchv1.SuccessPolicyRule{}, n
	if d.chance(60) {
		first := d.among(0, n-1)
		last := d.among(first, n-1)
		text := fmt.Sprintf("%d-%d", first, last)
		if first == last {
			text = fmt.Sprint(first)
		}
		rule.SucceededIndexes, most = &text, last-first+1
	}
	if rule.SucceededIndexes == nil || d.chance(40) {
		rule.SucceededCount = new(int32(d.among(1, most)))
	}
	return rule
}

func (d *drawer) policies(spec *batchv1.JobSpec) {
	if d.chance(35) {
		spec.PodFailurePolicy = &batchv1.PodFailurePolicy{}
		for range d.among(1, 3) {
			spec.PodFailurePolicy.Rules = append(spec.PodFailurePolicy.Rules, d.failureRule(spec))
		}
		spec.PodReplacementPolicy = new(batchv1.Failed) // The only policy that a pod failure policy allows.
		return
	}
	if d.chance(25) {
		spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	if d.chance(40) {
		spec.PodReplacementPolicy = new(pick(d, batchv1.Failed, batchv1.TerminatingOrFailed))
	}
}

func (d *drawer) failureRule(spec *batchv1.JobSpec) batchv1.PodFailurePolicyRule {
	rule := batchv1.PodFailurePolicyRule{Action: pick(d, batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore,
		batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount)}
	if spec.BackoffLimitPerIndex != nil && d.chance(30) {
		rule.Action = batchv1.PodFailurePolicyActionFailIndex
	}
	if d.chance(40) {
		rule.OnPodConditions = []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		return rule
	}
	rule.OnExitCodes = &batchv1.PodFailurePolicyOnExitCodesRequirement{
		Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{pick(d, exits...)},
	}
	if d.chance(30) {
		rule.OnExitCodes.Operator = batchv1.PodFailurePolicyOnExitCodesOpNotIn
	}
	if d.chance(30) {
		rule.OnExitCodes.ContainerName = new(spec.Template.Spec.Containers[len(spec.Template.Spec.Containers)-1].Name)
	}
	return rule
}

// job draws a Job and the fates of its pods.
func (d *drawer) job(name string) *jobPlan {
	j := &jobPlan{namespace: namespace, name: name, spec: d.spec()}
	if d.chance(10) {
		labels := map[string]string{"app": pick(d, name, "shared")}
		j.spec.ManualSelector = new(true)
		j.spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		j.spec.Template.Labels = labels
	}
	if d.chance(8) {
		j.finalizers = []string{"example.com/mine"}
	}
	if d.chance(5) {
		j.annotations = map[string]string{"jobpolicy.dev/ttl-seconds-after-failed": "20"}
	}
	trouble := pick(d, 0, 20, 50, 80)
	for range d.among(1, 24) {
		j.fates = append(j.fates, d.fate(trouble))
	}
	return j
}

// fate draws what happens to a pod; trouble is the percentage of pods that do not
// simply succeed.
func (d *drawer) fate(trouble int) fate {
	f := fate{
		start: d.within(time.Millisecond, 5*time.Second), ready: d.within(time.Millisecond, 5*time.Second), run: d.within(time.Millisecond, 60*time.Second),
		end: endsWell, linger: d.within(time.Millisecond, 30*time.Second), obeys: d.chance(15),
	}
	if d.chance(10) {
		f.restarts = int32(d.among(1, 4))
	}
	if !d.chance(trouble) {
		return f
	}
	f.exit, f.container = pick(d, exits...), d.IntN(4)
	f.end = pick(d, endsBadly, endsBadly, endsBadly, endsBadly, evicted, preempted, removed, forced, nodeLost)
	if d.chance(5) {
		f.end = restless
	}
	return f
}
