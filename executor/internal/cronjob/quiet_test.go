package cronjob

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// These tests check that no further request follows (invariant I11). They run in virtual
// time: when a test looks, all work has been done.

// A webhook may answer a write with a conflict although nobody else writes. Trying again at
// once would be a hot loop.
func TestAConflictWithNobodyIsTriedAgainLater(t *testing.T) {
	edits := map[string]*jobpolicyv1.CronJobEdits{"update cronjobs/status": nil, "patch cronjobs": {ClearRunNow: true}}
	for write := range edits {
		t.Run(write, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(testCron())
				s.fail(write, apierrors.NewConflict(schema.GroupResource{Group: "batch", Resource: "cronjobs"}, "cron", nil))
				writing := applying(&jobpolicyv1.DecideCronJobResponse{
					Edits: edits[write], Status: &jobpolicyv1.CronJobStatus{LastScheduleTime: timestamppb.New(created.Add(time.Minute))},
				})
				d := &script{Answers: []reply{writing, writing, writing}}
				start(t, s, d, func(cfg *Config) { cfg.APIBackoff, cfg.MaxAPIBackoff = time.Hour, time.Hour })
				time.Sleep(59 * time.Minute)
				if n := len(d.Requests()); n != 1 {
					t.Errorf("asked %d times, want once within the back-off", n)
				}
				time.Sleep(2 * time.Minute)
				if n := len(d.Requests()); n == 1 {
					t.Error("not asked again after the back-off")
				}
			})
		})
	}
}

// A decision's status may be the one that the API server already has, because it keeps whole
// seconds. Then nothing is written, and no question follows at once.
func TestAStatusThatIsTheSameIsNotDecidedOnForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := testJob(7, "cron-1", testUID(1))
		job.Annotations = map[string]string{batchv1.CronJobScheduledTimestampAnnotation: "2026-05-04T10:01:00.5Z"}
		at := metav1.NewTime(created.Add(time.Minute))
		s := newServer(testCron(func(c *batchv1.CronJob) { c.Status.LastScheduleTime = &at }), job)
		same := applying(&jobpolicyv1.DecideCronJobResponse{Status: &jobpolicyv1.CronJobStatus{LastScheduleTime: timestamppb.New(at.Time)}})
		d := &script{Answers: []reply{same, same, same, same, same, same, same, same}}
		start(t, s, d)
		time.Sleep(time.Minute)
		asked := d.Requests()
		if len(asked) == 0 || len(asked) > 2 {
			t.Fatalf("%d questions about a CronJob that nothing happens to, want one for each of the two objects at most", len(asked))
		}
		if got := asked[0].GetJobs()[0].GetScheduledTime().AsTime(); !got.Equal(at.Time) {
			t.Errorf("scheduled_time = %v, want %v: whole seconds, as the API keeps times", got, at)
		}
		s.WantWrites(t)
	})
}

// A webhook may undo an edit in the request that makes it. Then the CronJob keeps its version,
// and the same edit would follow for ever.
func TestAnEditThatIsUndoneIsNotRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cron := testCron()
		s := newServer(cron)
		s.PrependReactor("patch", "cronjobs", func(clienttesting.Action) (bool, runtime.Object, error) { return true, cron, nil })
		edit := applying(&jobpolicyv1.DecideCronJobResponse{Edits: &jobpolicyv1.CronJobEdits{ClearRunNow: true}})
		d := &script{Answers: []reply{edit, edit, edit, edit}}
		start(t, s, d)
		time.Sleep(time.Minute)
		if n := len(d.Requests()); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
	})
}
