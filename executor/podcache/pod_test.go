package podcache

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func since(s int) metav1.Time { return metav1.NewTime(epoch.Add(time.Duration(s) * time.Second)) }

func ends(name string, code int32, at metav1.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: at}}}
}

// A fromCase is a pod, and what is kept of it.
type fromCase struct {
	pod  corev1.Pod
	want Pod
}

func fromEach(t *testing.T, cases map[string]fromCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := From(&tc.pod)
			if got.Phase() != tc.pod.Status.Phase || got.Namespace() != "" {
				t.Errorf("phase %q, namespace %q", got.Phase(), got.Namespace())
			}
			if owner, ok := got.Controller(); ok {
				t.Errorf("controlled by %v", owner)
			}
			tc.want.interned = got.interned
			if diff := cmp.Diff(&tc.want, got, unexported); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Nobody can change the host name that a Job controller gives to a pod.
func TestTheIndexIsThatOfTheHostName(t *testing.T) {
	for name, tc := range map[string]struct {
		hostname, annotation string
		want                 int32
	}{
		"the annotation was edited":          {"job-3", "5", 3},
		"the annotation was removed":         {"job-3", "", 3},
		"the pod was made for another Job":   {"other-3", "5", 5},
		"the host name has no such index":    {"job-03", "5", 5},
		"the pod was not made by a Job":      {"", "5", 5},
		"neither says anything":              {"web", "none", NoIndex},
		"an index in the host name too high": {"job-2147483647", "", NoIndex},
	} {
		t.Run(name, func(t *testing.T) {
			pod := corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "u", Controller: new(true)}},
					Annotations:     map[string]string{batchv1.JobCompletionIndexAnnotation: tc.annotation},
				},
				Spec: corev1.PodSpec{Hostname: tc.hostname},
			}
			if got := From(&pod).Index; got != tc.want {
				t.Errorf("index %d, want %d", got, tc.want)
			}
		})
	}
}

func TestWhatIsKeptOfMetadata(t *testing.T) {
	fromEach(t, map[string]fromCase{
		"nothing": {want: Pod{Indexing: Indexing{Index: NoIndex}}},
		"metadata": {
			pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: "p", UID: "u", ResourceVersion: "5", CreationTimestamp: since(1),
				Finalizers: []string{"example.com/x", batchv1.JobTrackingFinalizer},
				Annotations: map[string]string{
					batchv1.JobCompletionIndexAnnotation: "4", batchv1.JobIndexFailureCountAnnotation: "2", batchv1.JobIndexIgnoredFailureCountAnnotation: "1",
				},
			}},
			want: Pod{Name: "p", UID: "u", ResourceVersion: "5", Created: since(1).Time, HasTrackingFinalizer: true, Indexing: Indexing{Index: 4, IndexFailures: 2, IndexIgnoredFailures: 1}},
		},
		"annotations that are no numbers": {
			pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				batchv1.JobCompletionIndexAnnotation: "-4", batchv1.JobIndexFailureCountAnnotation: "-2", batchv1.JobIndexIgnoredFailureCountAnnotation: "many",
			}}},
			want: Pod{Indexing: Indexing{Index: NoIndex}},
		},
		"an index that is too high": {
			pod:  corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: "2147483647"}}},
			want: Pod{Indexing: Indexing{Index: NoIndex}},
		},
		"a deletion with a grace period": {
			pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				DeletionTimestamp: new(since(30)), DeletionGracePeriodSeconds: new(int64(20)),
			}},
			want: Pod{Indexing: Indexing{Index: NoIndex}, Deletion: Deletion{Deleting: true, GraceSeconds: 20, DeletionAsked: since(10).Time}},
		},
		"owners that are no controllers": {
			pod:  corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "j", UID: "ju"}}}},
			want: Pod{Indexing: Indexing{Index: NoIndex}},
		},
	})
}

func TestWhatIsKeptOfContainers(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	side := []corev1.Container{{Name: "side", RestartPolicy: &always}, {Name: "init"}}
	fromEach(t, map[string]fromCase{
		"a running pod": {
			pod: corev1.Pod{
				Spec: corev1.PodSpec{NodeName: "n", InitContainers: side},
				Status: corev1.PodStatus{
					Phase:      corev1.PodRunning,
					Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since(2)}},
					ContainerStatuses: []corev1.ContainerStatus{
						{Name: "a", RestartCount: 2}, {Name: "b", RestartCount: 1}, {Name: "c", RestartCount: -7},
					},
					InitContainerStatuses: []corev1.ContainerStatus{{Name: "side", RestartCount: 3}, {Name: "init", RestartCount: 9}},
				},
			},
			want: Pod{
				Scheduled: true, HasRun: true, Indexing: Indexing{Index: NoIndex}, Readiness: Readiness{Ready: true, ReadyChanged: since(2).Time},
				Containers: Containers{Restarts: 15, MaxRestarts: 2, MaxSidecarRestarts: 3},
			},
		},
		"restarts of a pod that runs no more": {
			pod: corev1.Pod{Status: corev1.PodStatus{
				Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 2}},
			}},
			want: Pod{HasRun: true, Indexing: Indexing{Index: NoIndex}, Containers: Containers{MaxRestarts: 2}},
		},
		"containers that ended, a sidecar last": {
			pod: corev1.Pod{
				Spec: corev1.PodSpec{InitContainers: side},
				Status: corev1.PodStatus{
					Phase:                 corev1.PodFailed,
					Conditions:            []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: since(3)}},
					ContainerStatuses:     []corev1.ContainerStatus{ends("a", 0, since(4)), ends("b", 3, since(5))},
					InitContainerStatuses: []corev1.ContainerStatus{ends("side", 143, since(6)), ends("init", 0, since(9))},
				},
			},
			want: Pod{
				HasRun: true, Indexing: Indexing{Index: NoIndex}, Readiness: Readiness{Unready: true, ReadyChanged: since(3).Time},
				Containers: Containers{ContainersEnded: since(6).Time, Exits: []Exit{{Container: "b", Code: 3}, {Container: "side", Code: 143}}},
			},
		},
	})
}

func TestWhatIsKeptOfContainersThatEnded(t *testing.T) {
	fromEach(t, map[string]fromCase{
		"why a container ended": {
			pod: corev1.Pod{Status: corev1.PodStatus{
				Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "a", State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Signal: 9, Reason: "OOMKilled", Message: "not kept"},
				}}},
			}},
			want: Pod{Indexing: Indexing{Index: NoIndex}, Containers: Containers{Exits: []Exit{{Container: "a", Code: 137, Signal: 9, Reason: "OOMKilled"}}}},
		},
		"what containers say at their end, of a pod that was made to keep it": {
			pod: corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{KeepTerminationMessageAnnotation: "true"}},
				Status: corev1.PodStatus{
					Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
						{Name: "a", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "one\ntwo\x1b\n"}}},
						{Name: "b", LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 4, Message: "three", FinishedAt: since(5)}}},
					},
				},
			},
			want: Pod{HasRun: true, Indexing: Indexing{Index: NoIndex}, Containers: Containers{Exits: []Exit{
				{Container: "a", Code: 3, Message: "two"}, {Container: "b", Code: 4, Message: "three", restarted: since(5).Unix()},
			}}},
		},
		"the last restart of a pod that has not ended": {
			pod: corev1.Pod{Status: corev1.PodStatus{
				Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
					restarted("a", 3, since(4)), restarted("b", 137, since(5)), restarted("c", 0, since(6)),
				},
			}},
			want: Pod{HasRun: true, Indexing: Indexing{Index: NoIndex}, Containers: Containers{Exits: []Exit{{Container: "b", Code: 137, restarted: since(5).Unix()}}}},
		},
		"restarts of a pod that has ended": {
			pod:  corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{restarted("a", 3, since(4))}}},
			want: Pod{Indexing: Indexing{Index: NoIndex}},
		},
		"one container still runs": {
			pod: corev1.Pod{Status: corev1.PodStatus{
				Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{ends("a", 3, since(4)), {Name: "b"}},
			}},
			want: Pod{HasRun: true, Indexing: Indexing{Index: NoIndex}, Containers: Containers{Exits: []Exit{{Container: "a", Code: 3}}}},
		},
	})
}

// restarted is a container that ended and was restarted.
func restarted(name string, code int32, at metav1.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, LastTerminationState: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: at},
	}}
}

func TestWhetherAPodHasRun(t *testing.T) {
	waits := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}
	restarted := waits
	restarted.RestartCount = 1
	cases := map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"no node yet":          {corev1.PodStatus{Phase: corev1.PodPending}, false},
		"an image is missing":  {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{waits}}, false},
		"it runs":              {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{waits}}, true},
		"a container restarts": {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{restarted}}, true},
		"it succeeded":         {corev1.PodStatus{Phase: corev1.PodSucceeded}, true},
		"only an init container has run": {corev1.PodStatus{
			Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{ends("init", 0, since(1))}, ContainerStatuses: []corev1.ContainerStatus{waits},
		}, false},
		"its node refused it": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu"}, false},
		"it failed":           {corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{waits, ends("b", 1, since(1))}}, true},
		"it was evicted before its container began": {corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ends("a", 137, metav1.Time{})}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := From(&corev1.Pod{Status: tc.status}).HasRun; got != tc.want {
				t.Errorf("it has run: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhatIsKeptOfTheOwnerAndTheConditions(t *testing.T) {
	yes := true
	pod := From(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", OwnerReferences: []metav1.OwnerReference{
			{Kind: "Other", UID: "o"}, {APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "ju", Controller: &yes},
		}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "B", Status: "True"}, {Type: "A", Status: "Unknown", Message: "m"}}},
	})
	if owner, ok := pod.Controller(); !ok || owner != (Owner{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "ju"}) {
		t.Errorf("controlled by %v, %v", owner, ok)
	}
	var conditions []Condition
	pod.EachCondition(func(c Condition) { conditions = append(conditions, c) })
	if diff := cmp.Diff([]Condition{{"B", "True"}, {"A", "Unknown"}}, conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// An informer takes a Pod for the object that it was made from.
func TestInformersKnowAPod(t *testing.T) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	if err := store.Add(From(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", ResourceVersion: "7"}})); err != nil {
		t.Fatal(err)
	}
	stored, ok, err := store.GetByKey("ns/p")
	if err != nil || !ok || stored.(*Pod).Name != "p" {
		t.Errorf("got %v, %v, %v", stored, ok, err)
	}
	if rv := store.LastStoreSyncResourceVersion(); rv != "7" {
		t.Errorf("the store is at version %q, want 7", rv)
	}
}

func TestLabelsAreMatchedAsThePodsOwn(t *testing.T) {
	set := map[string]string{"b": "2", "a": "1", "c": ""}
	kept := labelsOf(set)
	for _, text := range []string{"", "a=1", "a=2", "b in (1,2),a", "!a", "!d", "c=", "d="} {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if want, got := selector.Matches(labels.Set(set)), selector.Matches(kept); got != want {
			t.Errorf("%q matches: %v, want %v", text, got, want)
		}
	}
	if !kept.Equal(labelsOf(map[string]string{"a": "1", "c": "", "b": "2"})) || kept.Equal(labelsOf(map[string]string{"a": "1"})) {
		t.Error("equal labels are not equal, or different ones are")
	}
}

// Kubernetes does not limit how many labels a pod has, or how many a selector asks for. So a match
// must not look at each label for each requirement: ns/label stays about the same.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		set := map[string]string{}
		for i := range n {
			set[fmt.Sprint("key-", i)] = ""
		}
		selector, kept := labels.SelectorFromSet(set), labelsOf(set)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if !selector.Matches(kept) {
					b.Fatal("the labels do not match themselves")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/label")
		})
	}
}

// A new field costs memory for every pod of a cluster, so the size is checked.
func TestAPodStaysSmall(t *testing.T) {
	if size := unsafe.Sizeof(Pod{}); size > 288 {
		t.Errorf("a Pod takes %d bytes, want at most 288, a size class of the allocator", size)
	}
}
