package plugin

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine/cronjob"
	"jobpolicy.dev/services/explain"
)

// cronNow is when every test here explains. The CronJob runs every hour, was made two
// days before, and ran at 11:00 last.
var cronNow = time.Date(2026, time.March, 28, 12, 10, 0, 0, time.UTC)

func testUID(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", n)) }

func clockTime(hour, minute int) *metav1.Time {
	return &metav1.Time{Time: time.Date(2026, time.March, 28, hour, minute, 0, 0, time.UTC)}
}

// A scene is a CronJob with its surroundings.
type scene struct{ explain.CronFacts }

func newScene() *scene {
	return &scene{explain.CronFacts{Now: cronNow, CronJob: &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "backup", UID: testUID(1), CreationTimestamp: metav1.NewTime(cronNow.Add(-48 * time.Hour))},
		Spec: batchv1.CronJobSpec{
			Schedule: "0 * * * *", ConcurrencyPolicy: batchv1.AllowConcurrent,
			SuccessfulJobsHistoryLimit: ptr.To[int32](3), FailedJobsHistoryLimit: ptr.To[int32](1),
		},
		Status: batchv1.CronJobStatus{LastScheduleTime: clockTime(11, 0)},
	}}}
}

// job adds a run of the CronJob, and returns it to be changed.
func (s *scene) job(hour int, change ...func(*batchv1.Job)) {
	at := clockTime(hour, 0)
	job := batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprintf("backup-%d", at.Unix()/60), UID: testUID(100 + hour), CreationTimestamp: *at,
			Annotations:     map[string]string{batchv1.CronJobScheduledTimestampAnnotation: at.Format(time.RFC3339)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1beta1", Kind: "CronJob", Name: "backup", UID: testUID(1), Controller: ptr.To(true)}},
		},
		Status: batchv1.JobStatus{StartTime: at, Active: 1},
	}
	for _, f := range change {
		f(&job)
	}
	if len(job.Status.Conditions) == 0 && len(job.OwnerReferences) > 0 {
		s.CronJob.Status.Active = append(s.CronJob.Status.Active, corev1.ObjectReference{Kind: "Job", Namespace: "ns", Name: job.Name, UID: job.UID})
	}
	s.Jobs = append(s.Jobs, job)
}

func ended(kind batchv1.JobConditionType, reason string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		at := metav1.NewTime(job.Status.StartTime.Add(7 * time.Minute))
		job.Status.Active = 0
		job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: at}}
		if kind == batchv1.JobComplete {
			job.Status.CompletionTime = &at
		}
	}
}

// waits adds the executor's event about a group of the cluster.
func (s *scene) waits(message string, at *metav1.Time) {
	s.annotate("jobpolicy.dev/policy", "{cronJob: {group: {name: etl, maxActiveRuns: 1}}}")
	s.Events = append(s.Events, corev1.Event{Type: corev1.EventTypeNormal, Reason: "WaitingForGroup", Message: message, LastTimestamp: *at})
}

func byHand(name string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Name, job.Annotations = name, map[string]string{"cronjob.kubernetes.io/instantiate": "manual"}
	}
}

func (s *scene) annotate(name, value string) {
	metav1.SetMetaDataAnnotation(&s.CronJob.ObjectMeta, name, value)
}

func (s *scene) warn(reason, message string, at *metav1.Time) {
	s.Events = append(s.Events, corev1.Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message, LastTimestamp: *at})
}

// edited is when the CronJob was edited last. Its status was written later.
func (s *scene) edited(at time.Time) {
	s.CronJob.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", Time: &metav1.Time{Time: at}}, {Subresource: "status", Time: &metav1.Time{Time: cronNow}}}
}

// cronScenes are the situations that a golden file each shows.
var cronScenes = map[string]func(*scene){
	"scheduled": func(s *scene) {
		s.CronJob.Status.LastScheduleTime = clockTime(12, 0)
		s.job(11, ended(batchv1.JobComplete, batchv1.JobReasonCompletionsReached))
		s.job(12)
	},
	"last-run-in-the-future": func(s *scene) {
		s.CronJob.Status.LastScheduleTime = clockTime(15, 0)
	},
	"last-run-a-second-early": func(s *scene) {
		s.Now = clockTime(11, 59).Add(59 * time.Second)
		s.CronJob.Status.LastScheduleTime = clockTime(12, 0)
	},
	"clock-change": func(s *scene) {
		s.CronJob.Spec.Schedule, s.CronJob.Spec.TimeZone = "30 2 * * *", ptr.To("Europe/Berlin")
	},
	"forbidden": func(s *scene) {
		s.CronJob.Spec.ConcurrencyPolicy, s.CronJob.Spec.StartingDeadlineSeconds = batchv1.ForbidConcurrent, ptr.To[int64](1800)
		s.job(11)
	},
	"replaced": func(s *scene) {
		s.CronJob.Spec.ConcurrencyPolicy = batchv1.ReplaceConcurrent
		s.Now = clockTime(12, 0).Add(2 * time.Second)
		s.job(11)
	},
	"catch-up-waits": func(s *scene) {
		s.CronJob.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent
		s.CronJob.Status.LastScheduleTime = clockTime(7, 0)
		s.annotate("jobpolicy.dev/policy", "{cronJob: {maxMissedRuns: 3}}")
		s.job(7)
	},
	"names-taken": func(s *scene) {
		s.CronJob.Status.LastScheduleTime = clockTime(9, 0)
		s.annotate("jobpolicy.dev/policy", "{cronJob: {maxMissedRuns: 3}}")
		for hour := 10; hour <= 12; hour++ {
			s.job(hour, func(job *batchv1.Job) { job.OwnerReferences = nil })
		}
	},
	"missed-and-not-wanted": func(s *scene) {
		s.annotate("jobpolicy.dev/policy", "{cronJob: {maxMissedRuns: 0}}")
	},
	"suspended-catches-up": func(s *scene) {
		s.CronJob.Spec.Suspend = ptr.To(true)
		s.CronJob.Status.LastScheduleTime = clockTime(7, 0)
		s.annotate("jobpolicy.dev/policy", "{cronJob: {maxMissedRuns: 3}}")
	},
	"suspended": func(s *scene) {
		s.CronJob.Spec.Suspend = ptr.To(true)
		s.CronJob.Status.LastScheduleTime = clockTime(7, 0)
		s.job(7)
	},
	"suspended-by-annotation": func(s *scene) {
		s.CronJob.Spec.Suspend, s.CronJob.Spec.StartingDeadlineSeconds = ptr.To(true), ptr.To[int64](60)
		s.annotate("jobpolicy.dev/managed-by", "jobpolicy.dev/executor")
		s.annotate("jobpolicy.dev/suspend", "true")
	},
	"handed-over": func(s *scene) {
		s.CronJob.Spec.Suspend = ptr.To(true)
		s.annotate("jobpolicy.dev/managed-by", "jobpolicy.dev/executor")
	},
	"too-late": func(s *scene) {
		s.CronJob.Spec.StartingDeadlineSeconds = ptr.To[int64](300)
	},
	"nobody-starts-it": func(s *scene) {
		s.CronJob.Status.LastScheduleTime = clockTime(8, 0)
		s.annotate("jobpolicy.dev/managed-by", "jobpolicy.dev/executor")
	},
	"name-taken": func(s *scene) {
		s.job(12, func(job *batchv1.Job) { job.OwnerReferences = nil })
	},
	"refused": func(s *scene) {
		s.warn("FailedCreate", `Error creating job: jobs.batch "backup-29577840" is forbidden: exceeded quota: jobs, requested: count/jobs.batch=1, used: count/jobs.batch=5, limited: count/jobs.batch=5`, clockTime(12, 9))
	},
	"no-schedule": func(s *scene) {
		s.CronJob.Spec.Schedule = "61 * * * *"
	},
	"no-zone": func(s *scene) {
		s.CronJob.Spec.TimeZone = ptr.To("Europe/Berlinn")
	},
	"never": func(s *scene) {
		s.CronJob.Spec.Schedule = "0 0 30 2 *"
	},
	"jitter": func(s *scene) {
		s.Now = clockTime(12, 0).Add(time.Second)
		s.annotate("jobpolicy.dev/policy", "{cronJob: {startJitterSeconds: 3600, repeatedHour: First}}")
	},
	"stagger": func(s *scene) {
		s.Now = clockTime(12, 0).Add(time.Second)
		s.annotate("jobpolicy.dev/policy", "{cronJob: {staggerSeconds: 3600, startJitterSeconds: 60}}")
	},
	"stagger-next": func(s *scene) {
		s.CronJob.Status.LastScheduleTime = clockTime(12, 0)
		s.annotate("jobpolicy.dev/policy", "{cronJob: {staggerSeconds: 3600}}")
	},
	"stagger-starts": func(s *scene) {
		s.Now = clockTime(12, 57).Add(5 * time.Second)
		s.annotate("jobpolicy.dev/policy", "{cronJob: {staggerSeconds: 3600}}")
	},
	"group": func(s *scene) {
		s.annotate("jobpolicy.dev/policy", "{cronJob: {group: {name: etl, maxActiveRuns: 2}}}")
		for i, name := range []string{"active", "archive", "before", "behind", "elsewhere"} {
			other := newScene().CronJob
			other.Name, other.UID, other.Annotations = name, testUID(20+i), s.CronJob.Annotations
			s.Others = append(s.Others, *other)
		}
		s.Others[0].Status.LastScheduleTime = clockTime(12, 0)
		s.job(12, func(job *batchv1.Job) { job.Name, job.OwnerReferences[0].UID = "active-1", testUID(20) })
		s.CronJob.Status.Active = nil
		s.Others[2].Status.LastScheduleTime = clockTime(10, 0)
		s.Others[3].Name = "backup2"
		s.Others[4].Annotations = map[string]string{"jobpolicy.dev/policy": "{cronJob: {group: {name: other, maxActiveRuns: 1}}}"}
	},
	"group-of-cluster": func(s *scene) {
		s.waits("the run of 2026-03-28T12:00:00Z waits: group etl of the cluster has 3 of 3 active runs; 1 wait before it", clockTime(12, 0))
	},
	"group-of-cluster-before": func(s *scene) { // The run of 11:00 waited; nobody starts that of 12:00.
		s.waits("the run of 2026-03-28T11:00:00Z waits: group etl of the cluster has 3 of 3 active runs; 1 wait before it", clockTime(11, 40))
	},
	"group-of-cluster-by-hand": func(s *scene) {
		s.annotate("jobpolicy.dev/run-now", "please")
		s.waits("a manual run is requested; it waits: group etl of the cluster has 3 of 3 active runs; 1 wait before it", clockTime(12, 5))
	},
	"invalid-policy": func(s *scene) {
		s.annotate("jobpolicy.dev/policy", "{cronJob: {startJitterSeconds: 3600, repeatedHour: sometimes}}")
	},
	"last-valid-policy": func(s *scene) {
		s.annotate("jobpolicy.dev/policy", "{cronJob: {staggerSeconds: soon}}")
		s.annotate("jobpolicy.dev/last-valid-policy", `{"cronJob":{"staggerSeconds":600}}`)
	},
	"failed-in-a-row": func(s *scene) {
		s.CronJob.Status.LastScheduleTime = clockTime(12, 0)
		s.job(10, ended(batchv1.JobComplete, batchv1.JobReasonCompletionsReached))
		s.job(11, ended(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded))
		s.job(12, ended(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded))
	},
	"too-many-failures": func(s *scene) {
		s.annotate("jobpolicy.dev/policy", "{cronJob: {suspendAfterFailures: 2}}")
		s.CronJob.Status.LastScheduleTime = clockTime(12, 0)
		s.job(11, ended(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded))
		s.job(12, ended(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded))
	},
	"asked-for": func(s *scene) {
		s.annotate("jobpolicy.dev/run-now", "once more")
		s.CronJob.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent
		s.job(11)
	},
	"by-hand": func(s *scene) { // beside the policy Forbid, as kubectl create job --from makes it
		s.CronJob.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent
		s.CronJob.Status.LastScheduleTime = clockTime(12, 0)
		s.job(12, byHand("backup-manual-2"))
		s.job(11, byHand("backup-manual-1"), ended(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded))
		s.job(10, ended(batchv1.JobComplete, batchv1.JobReasonCompletionsReached))
		s.CronJob.Status.Active = nil
		s.warn("UnexpectedJob", "Saw a job that the controller did not create or forgot: backup-manual-2", clockTime(12, 1))
	},
	"by-hand-and-due": func(s *scene) {
		s.CronJob.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent
		s.Now = clockTime(12, 0).Add(2 * time.Second)
		s.job(11, byHand("backup-manual"))
		s.CronJob.Status.Active = nil
	},
	"copy-of-a-run": func(s *scene) { // with its annotation, and not listed by the built-in controller
		s.CronJob.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent
		s.CronJob.Status.LastScheduleTime = clockTime(12, 0)
		s.job(12, func(job *batchv1.Job) { job.Name = "copy" })
		s.CronJob.Status.Active = nil
	},
	"gone": func(s *scene) { // a Job of the active list that is not there
		s.CronJob.Status.LastScheduleTime = clockTime(12, 0)
		s.job(12)
		s.Jobs = nil
	},
	"overlapping": func(s *scene) {
		s.CronJob.Spec.JobTemplate.Spec.TTLSecondsAfterFinished = ptr.To[int32](60)
		s.CronJob.Status.LastScheduleTime = clockTime(12, 0)
		s.job(11)
		s.job(12, func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) })
	},
	"deleted": func(s *scene) {
		s.CronJob.DeletionTimestamp, s.CronJob.Finalizers = clockTime(12, 5), []string{"foregroundDeletion"}
	},
	"webhook-denies": func(s *scene) { // of a CronJob, the template can be changed
		s.warn("FailedCreate", `Error creating job: admission webhook "w" denied the request: label team is required.`, clockTime(12, 9))
	},
	"schedule-edited": func(s *scene) { // its new time has passed already, and starts at once
		s.CronJob.Spec.Schedule = "30 8 * * *"
		s.CronJob.Status.LastScheduleTime = &metav1.Time{Time: cronNow.Add(-24 * time.Hour)}
		s.edited(cronNow.Add(-5 * time.Second))
	},
	"many-missed": func(s *scene) {
		s.CronJob.Spec.Schedule, s.CronJob.Spec.ConcurrencyPolicy = "* * * * *", batchv1.ForbidConcurrent
		s.CronJob.Status.LastScheduleTime = clockTime(9, 0)
		s.job(9)
		s.warn("TooManyMissedTimes", "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew", clockTime(12, 9))
	},
	"beyond-history": func(s *scene) {
		s.CronJob.Spec.SuccessfulJobsHistoryLimit, s.CronJob.Status.LastScheduleTime = ptr.To[int32](1), clockTime(12, 0)
		for hour := 10; hour <= 12; hour++ {
			s.job(hour, ended(batchv1.JobComplete, batchv1.JobReasonCompletionsReached))
		}
	},
	"each-run-replaced": func(s *scene) {
		s.CronJob.Spec.ConcurrencyPolicy, s.CronJob.Status.LastScheduleTime = batchv1.ReplaceConcurrent, clockTime(12, 0)
		s.job(12)
	},
	"runs-are-suspended": func(s *scene) { // by the template
		s.CronJob.Spec.ConcurrencyPolicy, s.CronJob.Spec.JobTemplate.Spec.Suspend = batchv1.ForbidConcurrent, ptr.To(true)
		s.job(11, func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) })
	},
}

// Each situation of a CronJob is explained as its file in testdata/explain-cronjob
// says. Run with -rewrite after a change, and read the difference.
func TestExplainCronJob(t *testing.T) {
	for name, change := range cronScenes {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			change(s)
			report, err := explain.ExplainCronJob(s.CronFacts, cronjob.Decide)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := printCronJob(&out, report, true, s.Now); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata/explain-cronjob", name+".txt"), out.String())
		})
	}
}
