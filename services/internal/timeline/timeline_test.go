package timeline_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/services/explain"
	"jobpolicy.dev/services/internal/timeline"
)

var begin = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }

func chart() timeline.Chart {
	return timeline.New("Job ns/job", at(48), []timeline.Bar{
		{Name: "b", Created: at(24), Started: at(28), Text: "running"},
		{Name: "a<b", Created: at(0), Started: at(4), Ended: at(12), Outcome: "failed", Text: "failed, exit code 3"},
		{Name: "c", Created: at(24), Text: "Pending"},
	}, []timeline.Mark{{at(36), "Suspended"}, {at(0), "started"}})
}

// A container that never started, such as one whose node was lost, has no start time.
func TestThePodStartsWithItsFirstContainer(t *testing.T) {
	ended := func(started time.Time) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, StartedAt: metav1.NewTime(started), FinishedAt: metav1.NewTime(at(30)),
		}}}
	}
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(at(0))},
		Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{
			ended(at(20)), ended(at(10)), ended(time.Time{}),
		}},
	}
	c := timeline.Of(explain.Facts{Job: &batchv1.Job{}, Pods: []corev1.Pod{pod}, Now: at(60)})
	if got := c.Bars[0].Started; !got.Equal(at(10)) {
		t.Errorf("started %s, want %s", got, at(10))
	}
}

// The times of conditions and events are optional in the API.
func TestConditionsAndEventsWithoutATime(t *testing.T) {
	started := metav1.NewTime(at(0))
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", CreationTimestamp: started},
		Status:     batchv1.JobStatus{StartTime: &started, Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", Reason: "Because"}}},
	}
	c := timeline.Of(explain.Facts{Job: job, Events: []corev1.Event{{Type: "Warning", Reason: "Odd"}}, Now: at(60)})
	var got strings.Builder
	if err := c.WriteText(&got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"         ?  Odd: \n", "        0s  Failed (Because)\n"} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("no line %q in:\n%s", want, got.String())
		}
	}
	if !job.Status.Conditions[0].LastTransitionTime.IsZero() {
		t.Error("the Job was changed")
	}
}

func TestText(t *testing.T) {
	c := chart()
	var got strings.Builder
	if err := c.WriteText(&got); err != nil {
		t.Fatal(err)
	}
	want := `Job ns/job
from 2026-05-04T12:00:00Z on, for 48s

a<b  |....========x                                   |  failed, exit code 3
b    |                        ....===================>|  running (retry, created 12s after the failure)
c    |                        .......................>|  Pending

        0s  started
       36s  Suspended
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHTML(t *testing.T) {
	c := chart()
	var got strings.Builder
	if err := c.WriteHTML(&got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`<th scope="row">a&lt;b</th>`, `<i class="failed" style="left:8.33%;width:16.67%">`, `<i class="run" style="left:58.33%;width:41.67%">`,
		`<i class="wait" style="left:50.00%;width:50.00%">`, "<td>36s</td><td>Suspended</td>",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("the page lacks %s:\n%s", want, got.String())
		}
	}
}

func TestAChartOfNothing(t *testing.T) {
	c := timeline.New("Job ns/job", at(0), nil, nil)
	var got strings.Builder
	if err := c.WriteText(&got); err != nil || !strings.Contains(got.String(), "Job ns/job") {
		t.Errorf("%q, error %v", got.String(), err)
	}
}

// The pods of one index stand together; only a pod after a failed one of its index is a retry.
func TestRetriesStandBesideTheFailure(t *testing.T) {
	pod := func(name string, line, created, ended int, outcome string) timeline.Bar {
		return timeline.Bar{Name: name, Line: line, Created: at(created), Started: at(created), Ended: at(ended), Outcome: outcome, Text: outcome}
	}
	c := timeline.New("", at(60), []timeline.Bar{
		pod("none-b", -1, 30, 40, "succeeded"), pod("none-a", -1, 0, 10, "failed"), pod("b", 1, 0, 20, "succeeded"),
		pod("a-2", 0, 20, 50, "succeeded"), pod("a-1", 0, 0, 10, "failed"), pod("a-3", 0, 55, 60, "succeeded"),
	}, nil)
	var got []string
	for _, b := range c.Bars {
		got = append(got, b.Name+" "+b.Text)
	}
	want := []string{
		"none-a failed", "none-b succeeded", "a-1 failed", "a-2 succeeded (retry, created 10s after the failure)", "a-3 succeeded", "b succeeded",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The API server takes times of the year 10000, and JSON does not.
func TestTimesThatJSONCannotHold(t *testing.T) {
	for _, beyond := range []time.Time{
		time.Date(10000, time.January, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9999, time.December, 31, 23, 30, 0, 0, time.UTC).In(time.FixedZone("east", 3600)),
		time.Date(2026, time.January, 1, 0, 0, 0, 0, time.FixedZone("a day", 24*3600)),
	} {
		if _, err := json.Marshal(timeline.Of(factsAt(metav1.NewTime(beyond)))); err != nil {
			t.Error(err)
		}
	}
}

func factsAt(beyond metav1.Time) explain.Facts {
	container := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: beyond, FinishedAt: beyond}}
	return explain.Facts{
		Now: at(60),
		Job: &batchv1.Job{Status: batchv1.JobStatus{StartTime: &beyond, Conditions: []batchv1.JobCondition{{LastTransitionTime: beyond}}}},
		Pods: []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(0))},
			Status:     corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{State: container}}},
		}},
		Events: []corev1.Event{{Type: "Warning", LastTimestamp: beyond}},
	}
}

// A play says more than a cluster: in what row a pod stands, and when its containers failed.
func TestPlayed(t *testing.T) {
	second := func(n float64) *time.Duration { return new(time.Duration(n * float64(time.Second))) }
	c := timeline.Played("job", begin, &simulate.Result{
		Pods: []*simulate.Pod{
			{Name: "job-1", Index: new(int32(1)), Number: 0, Started: second(1), Ended: second(7.25), Outcome: "evicted", ExitCode: 137, Restarts: 1, Failures: []time.Duration{2 * time.Second}},
			{Name: "job-0", Index: new(int32(0)), Number: 1, Started: second(1)},
			{Name: "job-2", Index: new(int32(2)), Number: 2},
		},
		Timeline: []*simulate.Entry{
			{At: 5 * time.Second, Kind: simulate.UserChange, Text: "suspended"}, {At: time.Second, Kind: simulate.PodsStarted, Text: "pods started"},
		},
		Moments: []*simulate.Moment{{}, {At: 10 * time.Second}},
	})
	want := timeline.Picture{
		Title: "Job job", From: "2026-05-04T12:00:00Z", Took: "10s", Seconds: 10,
		Bars: []timeline.PictureBar{
			{Name: "job-0", Text: "running; created 0s, started 1s", Parts: []timeline.PicturePart{{"wait", "0.00", "10.00"}, {"run", "10.00", "90.00"}}},
			{
				Name: "job-1", Line: 1, Text: "evicted, exit code 137, restarts 1; created 0s, started 1s, ended 7.3s",
				Parts: []timeline.PicturePart{{"wait", "0.00", "10.00"}, {"evicted", "10.00", "62.50"}}, Failures: []string{"20.00"},
			},
			{Name: "job-2", Line: 2, Text: "pending; created 0s", Parts: []timeline.PicturePart{{"wait", "0.00", "100.00"}}},
		},
		Marks: []timeline.PictureMark{{At: "5s", Text: "suspended", Left: "50.00"}},
	}
	if diff := cmp.Diff(want, c.Picture()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
