package views

import (
	"encoding/json"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/explain"
)

// The time of a condition is optional in the API, and anybody may write conditions.
func TestAnEndWithoutATime(t *testing.T) {
	started := metav1.NewTime(time.Date(2026, time.March, 26, 0, 0, 0, 0, time.UTC))
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", CreationTimestamp: started},
		Status:     batchv1.JobStatus{StartTime: &started, Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", Reason: "Because"}}},
	}
	var row jobJSON
	if err := json.Unmarshal(jobRow(executor.Observation{Job: job}, late{}, started.Add(time.Minute)), &row); err != nil || row.State != explain.Failed || row.Reason != "Because" || !row.Ended.Equal(started.Time) {
		t.Errorf("%+v, error %v", row, err)
	}
}

// The API server takes times of the year 10000, and JSON does not.
func TestTimesThatJSONCannotHold(t *testing.T) {
	beyond := metav1.NewTime(time.Date(10000, time.January, 1, 0, 0, 0, 0, time.UTC))
	now := time.Date(2026, time.March, 26, 0, 0, 0, 0, time.UTC)
	latest := time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
	cron := &batchv1.CronJob{Spec: batchv1.CronJobSpec{Schedule: "@daily"}, Status: batchv1.CronJobStatus{LastScheduleTime: &beyond}}
	far := &jobpolicyv1.CronJobExplanation{NextScheduleTime: timestamppb.New(beyond.Time)} // from an engine that answers nonsense
	var c calendarRow
	if err := json.Unmarshal(cronRow(executor.CronJobObservation{CronJob: cron, Explanation: far}, now), &c); err != nil || !c.Last.Equal(latest) || !c.Next.Equal(latest) {
		t.Errorf("CronJob: %+v, error %v", c, err)
	}
	wait, err := proto.Marshal(&jobpolicyv1.Explanation{Waits: []*jobpolicyv1.Wait{{Until: timestamppb.New(beyond.Time)}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []batchv1.JobCondition{{LastTransitionTime: beyond}, {}} {
		when.Type, when.Status = batchv1.JobComplete, "True"
		o := executor.Observation{
			Job:      &batchv1.Job{Status: batchv1.JobStatus{StartTime: &beyond, Conditions: []batchv1.JobCondition{when}}},
			Decision: &tracker.Decision{Explanation: wait},
		}
		var j jobJSON
		if err := json.Unmarshal(jobRow(o, late{}, now), &j); err != nil || !j.Ended.Equal(latest) || !j.Until.Equal(latest) {
			t.Errorf("Job: %+v, error %v", j, err)
		}
	}
}

// A row that cannot be shown does not keep others from being shown.
func TestARowThatCannotBeEncoded(t *testing.T) {
	rows := newTable()
	bad := encoded(time.Date(10000, time.January, 1, 0, 0, 0, 0, time.UTC))
	rows.put(1, "bad", made{}, func() json.RawMessage { return bad })
	rows.put(1, "good", made{}, func() json.RawMessage { return encoded("good") })
	if changed, _ := rows.since(0); len(changed) != 1 || string(changed[0]) != `"good"` {
		t.Errorf("%s", changed)
	}
}
