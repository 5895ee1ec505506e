package page

import (
	"encoding/json"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor"
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
