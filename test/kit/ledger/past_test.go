package ledger

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
)

type versions = []func(*batchv1.Job)

// An ending is what was stored before a pod that runs is released, and whether that allows it.
type ending struct {
	before versions // The versions of the Job before its pods are there.
	pods   []*corev1.Pod
	after  versions
	rivals bool
	may    bool
}

func endings() map[string]ending {
	asks := func(parallelism, completions int32) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = &parallelism, &completions }
	}
	indexed := func(j *batchv1.Job) {
		asks(2, 2)(j)
		j.Spec.CompletionMode = new(batchv1.IndexedCompletion)
	}
	selecting := func(j *batchv1.Job) {
		j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	}
	suspended := func(j *batchv1.Job) { j.Spec.Suspend = new(true) }
	deleting := func(j *batchv1.Job) { j.DeletionTimestamp = new(metav1.Now()) }
	other := func(j *batchv1.Job) { j.UID = "k" }
	pod := func(uid types.UID, phase corev1.PodPhase, index string) *corev1.Pod {
		p := podAtVersion(5, phase, batchv1.JobTrackingFinalizer)
		p.UID = uid
		if index != "" {
			p.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: index}
		}
		return p
	}
	labelled := pod("p", corev1.PodRunning, "")
	labelled.Labels = map[string]string{"a": "b"}
	loose := pod("p", corev1.PodRunning, "")
	loose.OwnerReferences = nil
	leaving := pod("p", corev1.PodRunning, "")
	leaving.DeletionTimestamp = new(metav1.Now())
	policy := func(j *batchv1.Job) { asks(1, 1)(j); j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{} }
	givesUp := func(j *batchv1.Job) {
		policy(j)
		j.Annotations = map[string]string{wire.Policy: "{job: {terminationDeadlineSeconds: 60}}"}
	}
	running, succeeded, failing := corev1.PodRunning, corev1.PodSucceeded, declared(batchv1.JobFailureTarget)
	return map[string]ending{
		"nothing":                                 {before: versions{asks(1, 1)}, pods: []*corev1.Pod{pod("p", running, "")}},
		"another Job is suspended":                {before: versions{asks(1, 1)}, pods: []*corev1.Pod{pod("p", running, "")}, after: versions{func(j *batchv1.Job) { other(j); suspended(j) }}},
		"it was suspended":                        {before: versions{suspended, asks(1, 1)}, pods: []*corev1.Pod{pod("p", running, "")}, may: true},
		"it fails":                                {before: versions{asks(1, 1)}, pods: []*corev1.Pod{pod("p", running, "")}, after: versions{failing}, may: true},
		"it is deleted without its pods":          {before: versions{asks(1, 1)}, pods: []*corev1.Pod{pod("p", running, "")}, after: versions{deleting}, may: true},
		"two pods are wanted":                     {before: versions{asks(2, 2)}, pods: []*corev1.Pod{pod("q", running, ""), pod("p", running, "")}},
		"one pod is wanted, and two are active":   {before: versions{asks(1, 2)}, pods: []*corev1.Pod{pod("q", running, ""), pod("p", running, "")}, may: true},
		"one was wanted, and two are active":      {before: versions{asks(1, 2), asks(2, 2)}, pods: []*corev1.Pod{pod("q", running, ""), pod("p", running, "")}, may: true},
		"the other one has ended":                 {before: versions{asks(1, 2)}, pods: []*corev1.Pod{pod("q", succeeded, ""), pod("p", running, "")}},
		"a rival may not know that it has ended":  {before: versions{asks(1, 2)}, pods: []*corev1.Pod{pod("q", running, ""), pod("q", succeeded, ""), pod("p", running, "")}, rivals: true, may: true},
		"rivals, and two are wanted":              {before: versions{asks(2, 2)}, pods: []*corev1.Pod{pod("q", running, ""), pod("p", running, "")}, rivals: true},
		"fewer are wanted than before":            {before: versions{asks(2, 2)}, pods: []*corev1.Pod{pod("p", running, "")}, after: versions{asks(1, 2)}, may: true},
		"fewer completions than before":           {before: versions{asks(2, 2)}, pods: []*corev1.Pod{pod("p", running, "")}, after: versions{asks(2, 1)}, may: true},
		"one of two has succeeded, two run":       {before: versions{asks(2, 2)}, pods: []*corev1.Pod{pod("r", succeeded, ""), pod("q", running, ""), pod("p", running, "")}, may: true},
		"one of three has succeeded, two run":     {before: versions{asks(2, 3)}, pods: []*corev1.Pod{pod("r", succeeded, ""), pod("q", running, ""), pod("p", running, "")}},
		"another pod has its index":               {before: versions{indexed}, pods: []*corev1.Pod{pod("q", running, "1"), pod("p", running, "1")}, may: true},
		"another pod has another index":           {before: versions{indexed}, pods: []*corev1.Pod{pod("q", running, "0"), pod("p", running, "1")}},
		"its index has succeeded":                 {before: versions{indexed}, pods: []*corev1.Pod{pod("r", succeeded, "0"), pod("q", running, "0"), pod("p", running, "1")}, may: true},
		"nobody asks for its index":               {before: versions{indexed}, pods: []*corev1.Pod{pod("p", running, "2")}, may: true},
		"it has no index that is a number":        {before: versions{indexed}, pods: []*corev1.Pod{pod("p", running, "x")}, may: true},
		"somebody deletes it, and it still runs":  {before: versions{policy}, pods: []*corev1.Pod{leaving}},
		"its deletion may be overdue":             {before: versions{givesUp}, pods: []*corev1.Pod{leaving}, may: true},
		"it is adopted":                           {before: versions{asks(1, 1)}, pods: []*corev1.Pod{loose, pod("p", running, "")}, may: true},
		"the selector matches":                    {before: versions{selecting}, pods: []*corev1.Pod{labelled}},
		"the selector did not match at some time": {before: versions{selecting}, pods: []*corev1.Pod{pod("p", running, ""), labelled}, may: true},
	}
}

// A controller may release a pod that runs if some stored version of its Job, beside the Job's other pods, wanted it to end; and only then.
func TestWhatWantsAPodToEnd(t *testing.T) {
	t.Parallel()
	cases := endings()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := NewBook()
			if tc.rivals {
				b.Rivals()
			}
			for n, version := range tc.before {
				b.Job(jobAt(1+n, version))
			}
			for _, p := range tc.pods {
				b.Pod(p)
			}
			for n, version := range tc.after {
				b.Job(jobAt(10+n, version))
			}
			released := tc.pods[len(tc.pods)-1].DeepCopy()
			released.Finalizers = nil
			problems := b.ControllerPod("p", released)
			if may := len(problems) == 0; may != tc.may || !may && problems[0].Kind != ReleasedWanted {
				t.Errorf("it may be released: %t; found %v", may, problems)
			}
		})
	}
}
