package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
)

// group creates hourly CronJobs that share one active run.
func (tp *tape) group(names ...string) {
	tp.from("2026-05-04T11:30:00Z")
	tp.judge.rivals = false
	for _, name := range names {
		tp.cron(func(cron *batchv1.CronJob) {
			cron.Name, cron.UID, cron.Spec.Schedule, cron.CreationTimestamp = name, types.UID(name), "0 * * * *", metav1.NewTime(tp.now)
			cron.Annotations = map[string]string{wire.Policy: "{cronJob: {group: {name: etl, maxActiveRuns: 1}}}"}
		})
	}
	tp.from("2026-05-04T12:00:00Z")
}

// runs starts the run of 12:00 of a CronJob.
func (tp *tape) runs(cron string) types.UID {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "run-" + cron, UID: types.UID("job-" + cron),
		Annotations:     map[string]string{batchv1.CronJobScheduledTimestampAnnotation: "2026-05-04T12:00:00Z"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "CronJob", Name: cron, UID: types.UID(cron), Controller: new(true)}},
	}, Spec: batchv1.JobSpec{ManagedBy: new(others), Selector: &metav1.LabelSelector{}}}
	tp.commit(executorA, "create", "jobs", "", job, job)
	return job.UID
}

// The runs of a group start one after the other, at once when there is room, and in order.
func TestRunsOfAGroup(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"one after the other": {play: func(tp *tape) {
			tp.group("a", "b", "c")
			for _, cron := range []string{"a", "b", "c"} {
				uid := tp.runs(cron)
				tp.wait(5 * time.Minute)
				tp.finishes(uid)
			}
		}},
		"two at once": {want: []string{"cron"}, play: func(tp *tape) {
			tp.group("a", "b")
			tp.runs("a")
			tp.runs("b")
		}},
		"one waits although there is room": {want: []string{"cron"}, play: func(tp *tape) {
			tp.group("a", "b")
			uid := tp.runs("a")
			tp.wait(5 * time.Minute)
			tp.finishes(uid)
			tp.wait(time.Minute)
			tp.runs("b")
		}},
		"one waits in vain": {want: []string{"cron"}, play: func(tp *tape) {
			tp.group("a", "b")
			uid := tp.runs("a")
			tp.wait(5 * time.Minute)
			tp.judge.now = tp.now
			tp.judge.judgeGroupEnd(tp.judge.crons["b"]) // It waits for room.
			tp.finishes(uid)
			tp.wait(2 * time.Minute)
			tp.judge.now = tp.now
			tp.judge.judgeGroupEnd(tp.judge.crons["b"])
		}},
		"one is overtaken": {want: []string{"cron"}, play: func(tp *tape) {
			tp.group("a", "b", "c")
			uid := tp.runs("a")
			tp.wait(5 * time.Minute)
			tp.finishes(uid)
			tp.runs("c")
		}},
	})
}
