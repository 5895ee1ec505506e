package demo

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/deploy/local/must"
)

func readyJob(generation int64, parallelism, ready int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "elastic", Namespace: namespace, Generation: generation},
		Spec:       batchv1.JobSpec{Parallelism: &parallelism},
		Status:     batchv1.JobStatus{Ready: &ready},
	}
}

// The step after a patch waits until the patch is seen: until then, the Job
// looks as if the next one were due.
func TestStepsAreTakenOneByOne(t *testing.T) {
	t.Parallel()
	ex := &example{name: "elastic", job: readyJob(0, 2, 0), script: []step{
		patch(allReady, `{"spec":{"parallelism":4}}`), patch(allReady, `{"spec":{"parallelism":3}}`),
	}}
	o := newObserver("", []*example{ex})
	var said []string
	d := newDirector(o, fake.NewClientset(), func(command string) { said = append(said, command) })
	steps := []struct {
		seen *batchv1.Job
		want []int // the parallelism of the patches so far
	}{
		{readyJob(1, 2, 1), nil},
		{readyJob(1, 2, 2), []int{4}},
		{readyJob(1, 2, 2), []int{4}},
		{readyJob(2, 4, 2), []int{4}},
		{readyJob(2, 4, 4), []int{4, 3}},
		{readyJob(3, 3, 3), []int{4, 3}},
	}
	for i, s := range steps {
		o.sawJob(s.seen, true)
		must.Succeed(t, d.direct(t.Context()))
		var want []string
		for _, n := range s.want {
			want = append(want, fmt.Sprintf(`kubectl patch job elastic --type=merge -p '{"spec":{"parallelism":%d}}'`, n))
		}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Errorf("steps after %d (-want +got):\n%s", i, diff)
		}
	}
}

// A Job that waits is created when one that runs has ended, in the order of the examples.
func TestSoManyJobsRunAtOnce(t *testing.T) {
	t.Parallel()
	named := func(name string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	}
	var examples []*example
	for _, name := range []string{"a", "b", "c", "d"} {
		examples = append(examples, &example{name: name, job: named(name)})
	}
	cases := map[string]struct {
		atOnce      int
		first, then []string
	}{
		"all":           {0, []string{"a", "b", "c", "d"}, []string{"a", "b", "c", "d"}},
		"two":           {2, []string{"a", "b"}, []string{"a", "b", "c"}},
		"one at a time": {1, []string{"a"}, []string{"a", "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, client := newObserver("", examples), fake.NewClientset()
			d := newDirector(o, client, func(string) {})
			d.atOnce = tc.atOnce
			created := func() (names []string) {
				t.Helper()
				for range 2 { // the second time changes nothing
					must.Succeed(t, d.direct(t.Context()))
				}
				list, err := client.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
				must.Succeed(t, err)
				for i := range list.Items {
					names = append(names, list.Items[i].Name)
				}
				return names
			}
			must.Equal(t, "Jobs at first", tc.first, created())
			ended := named(tc.first[len(tc.first)-1])
			ended.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
			o.sawJob(ended, true)
			if diff := cmp.Diff(tc.then, created()); diff != "" {
				t.Errorf("Jobs when %s has ended (-want +got):\n%s", ended.Name, diff)
			}
		})
	}
}

func TestPodsAreTakenOverByTheSelectorOfTheGoneJob(t *testing.T) {
	t.Parallel()
	examples, err := loadExamples("../../../examples")
	must.Succeed(t, err)
	examples = slices.DeleteFunc(examples, func(ex *example) bool { return ex.adopts == "" })
	o := newObserver("", examples)
	client := fake.NewClientset()
	d := newDirector(o, client, func(string) {})
	old := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Spec: batchv1.JobSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: "the-uid"}},
	}}
	created := func() []batchv1.Job {
		t.Helper()
		must.Succeed(t, d.direct(t.Context()))
		list, err := client.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
		must.Succeed(t, err)
		return list.Items
	}
	if jobs := created(); len(jobs) != 0 {
		t.Fatalf("%d Jobs were created before the other one was there", len(jobs))
	}
	o.sawJob(old, false)
	created()
	jobs := created()
	if len(jobs) != 1 {
		t.Fatalf("%d Jobs, want 1", len(jobs))
	}
	want := map[string]string{batchv1.ControllerUidLabel: "the-uid"}
	must.Equal(t, "selector", want, jobs[0].Spec.Selector.MatchLabels)
	must.Equal(t, "labels of its pods", want, jobs[0].Spec.Template.Labels)
}
