package cronjob

import (
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/fakes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	us        = "jobpolicy.dev/executor"
	namespace = "ns"
)

var created = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

func testUID(n int) types.UID { return fakes.UID(n) }

type (
	script = fakes.Script[*jobpolicyv1.DecideCronJobRequest, *jobpolicyv1.DecideCronJobResponse]
	reply  = func(*jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error)
)

// answering answers with a decision.
func answering(d *jobpolicyv1.DecideCronJobResponse) reply {
	return func(*jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) { return d, nil }
}

// applying answers with a decision to carry out. As with the engine's, what else is due
// follows at once.
func applying(d *jobpolicyv1.DecideCronJobResponse) reply {
	d.Disposition, d.FollowUp = jobpolicyv1.Disposition_DISPOSITION_APPLY, jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE
	return answering(d)
}

// normal is an event that the engine decides on.
func normal(reason, message string) *jobpolicyv1.JobEvent {
	return &jobpolicyv1.JobEvent{Type: jobpolicyv1.EventType_EVENT_TYPE_NORMAL, Reason: reason, Message: message}
}

// starting asks for a run of the schedule's time.
func starting(name string) reply {
	return applying(&jobpolicyv1.DecideCronJobResponse{Create: &jobpolicyv1.CreateJob{
		Name: name, ScheduledTime: timestamppb.New(created.Add(time.Minute)), UtcOffsetSeconds: 7200,
	}})
}

// deleting asks for deletions, with their events, and for the creation of a run unless it is
// empty. jobs are names by the number of the UID.
func deleting(t *testing.T, run string, jobs map[int]string) reply {
	t.Helper()
	d := &jobpolicyv1.DecideCronJobResponse{}
	for _, n := range slices.Sorted(maps.Keys(jobs)) {
		d.Delete = append(d.Delete, &jobpolicyv1.DeleteJob{Uid: uidBytes(t, n), Name: jobs[n]})
		d.Events = append(d.Events, normal("SuccessfulDelete", "Deleted job "+jobs[n]))
	}
	if run != "" {
		d.Create = &jobpolicyv1.CreateJob{Name: run}
		d.Events = append(d.Events, normal("SuccessfulCreate", "Created job "+run))
	}
	return applying(d)
}

// server is the fakes' API server.
type server struct{ *fakes.Server }

func newServer(objects ...runtime.Object) *server { return &server{fakes.NewServer(objects...)} }

// fail fails the first try of a write.
func (s *server) fail(write string, err error) { s.Failures[write] = fakes.FailFirst(1, err) }

func testCron(change ...func(*batchv1.CronJob)) *batchv1.CronJob {
	cron := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{
			Name: "cron", Namespace: namespace, UID: testUID(1), Generation: 1,
			CreationTimestamp: metav1.NewTime(created),
		},
		Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *",
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"of": "template"}, Annotations: map[string]string{"also": "template"}},
				Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
					Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c"}}},
				}},
			},
		},
	}
	for _, f := range change {
		f(cron)
	}
	return cron
}

// testJob is a Job that the CronJob of the UID controls.
func testJob(n int, name string, controller types.UID) *batchv1.Job {
	yes := true
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: testUID(n),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "cron", UID: controller, Controller: &yes}},
	}}
}

// start runs a Controller in place of the built-in one, and an informer of Jobs,
// for the length of the test.
func start(t *testing.T, s *server, d controller.Decider, change ...func(*Config)) *Controller {
	t.Helper()
	jobs := batchinformers.NewJobInformer(s, metav1.NamespaceAll, 0, cache.Indexers{})
	cfg := Config{Config: fakes.Config(s, d), Jobs: controller.OneInformer(jobs)}
	cfg.ManagedBy, cfg.ReplaceBuiltin = us, true
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	fakes.Run(t, fakes.Informing(jobs.RunWithContext), c.Run)
	return c
}

var eventually = fakes.Eventually

// deferredUntil is until when a request asks to leave the creation of scheduled runs; nil if
// it does not.
func deferredUntil(req *jobpolicyv1.DecideCronJobRequest) *timestamppb.Timestamp {
	for _, d := range req.GetDeferrals() {
		if d.GetStep() == jobpolicyv1.Step_STEP_CREATE_JOB {
			return d.GetUntil()
		}
	}
	return nil
}
