package ttl

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/fakes"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const us = "jobpolicy.dev/executor"

var ended = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

type script = fakes.Script[*jobpolicyv1.DecideJobRequest, *jobpolicyv1.DecideJobResponse]

// due is an engine that has every Job deleted from a time on.
func due(at time.Time) *script {
	return &script{Otherwise: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		if req.GetNow().AsTime().Before(at) {
			return &jobpolicyv1.DecideJobResponse{
				Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED, RequeueTime: timestamppb.New(at),
			}, nil
		}
		return &jobpolicyv1.DecideJobResponse{
			Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY,
			DeleteJob:   &jobpolicyv1.DeleteJob{Uid: req.GetJob().GetUid(), Name: req.GetJob().GetName(), DueTime: timestamppb.New(at)},
		}, nil
	}}
}

func testJob(change ...func(*batchv1.Job)) *batchv1.Job {
	manager := us
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "00000000-0000-0000-0000-000000000001", ResourceVersion: "5"},
		Spec: batchv1.JobSpec{
			ManagedBy: &manager, TTLSecondsAfterFinished: new(int32(60)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}},
		},
		Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ended)},
		}},
	}
	for _, f := range change {
		f(job)
	}
	return job
}

// newController makes a Controller, and an informer of Jobs that does not run yet.
func newController(t *testing.T, client *fake.Clientset, d controller.Decider, change ...func(*Config)) (*Controller, cache.SharedIndexInformer) {
	t.Helper()
	jobs := batchinformers.NewJobInformer(client, metav1.NamespaceAll, 0, cache.Indexers{})
	cfg := Config{Config: fakes.Config(client, d), Jobs: controller.OneInformer(jobs)}
	cfg.ManagedBy, cfg.Now = us, func() time.Time { return ended.Add(2 * time.Minute) }
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c, jobs
}

// start runs a Controller for the length of the test.
func start(t *testing.T, client *fake.Clientset, d controller.Decider, change ...func(*Config)) {
	t.Helper()
	c, jobs := newController(t, client, d, change...)
	fakes.Run(t, fakes.Informing(jobs.RunWithContext), c.Run)
}

var eventually = fakes.Eventually

func deletions(client *fake.Clientset) []metav1.DeleteOptions {
	var out []metav1.DeleteOptions
	for _, a := range client.Actions() {
		if del, ok := a.(clienttesting.DeleteActionImpl); ok {
			out = append(out, del.DeleteOptions)
		}
	}
	return out
}

func TestTheVersionThatWasReadLastIsDeletedInTheForeground(t *testing.T) {
	client := fake.NewClientset(testJob())
	// The cache shows version 5; the API server has version 6.
	client.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, testJob(func(j *batchv1.Job) { j.ResourceVersion = "6" }), nil
	})
	d := due(ended.Add(time.Minute))
	start(t, client, d)
	eventually(t, "deletion", func() bool { return len(deletions(client)) > 0 })
	job, foreground := testJob(), metav1.DeletePropagationForeground
	version := "6"
	want := []metav1.DeleteOptions{{Preconditions: &metav1.Preconditions{UID: &job.UID, ResourceVersion: &version}, PropagationPolicy: &foreground}}
	if diff := cmp.Diff(want, deletions(client)); diff != "" {
		t.Errorf("deletions (-want +got):\n%s", diff)
	}
	if n := len(d.Requests()); n != 2 {
		t.Errorf("%d questions, want 2: one from the cache, one from the read", n)
	}
}

// A deletion is decided on twice, the second time on the Job as it was just read. The events
// are those of the decision that is carried out.
func TestEachReconcileSendsTheEventsOfOneDecision(t *testing.T) {
	job := testJob()
	for name, tc := range map[string]struct {
		due       time.Time
		questions int
	}{
		"the Job is deleted": {ended, 2},
		"the Job is kept":    {ended.Add(time.Hour), 1},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(job)
			engine := due(tc.due)
			answer := engine.Otherwise
			engine.Otherwise = func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
				d, err := answer(req)
				d.Events = []*jobpolicyv1.JobEvent{{Reason: "InvalidPolicy"}}
				return d, err
			}
			c, _ := newController(t, client, engine)
			events := record.NewFakeRecorder(10)
			c.base.Recorder = events
			if _, err := c.reconcile(t.Context(), jobKey{namespace: job.Namespace, name: job.Name, uid: job.UID}, job); err != nil {
				t.Fatal(err)
			}
			if n := len(engine.Requests()); n != tc.questions {
				t.Errorf("%d questions, want %d", n, tc.questions)
			}
			if n := len(events.Events); n != 1 {
				t.Errorf("%d events, want 1", n)
			}
		})
	}
}

// A deletion that is refused because somebody has changed the Job since it was read is decided on again
// at once. A conflict that has another cause backs off.
func TestAfterAConflictAChangedJobIsDecidedOnAtOnce(t *testing.T) {
	for name, changed := range map[string]bool{"it has changed": true, "it has not changed": false} {
		t.Run(name, func(t *testing.T) {
			job := testJob()
			client := fake.NewClientset(job)
			version := job.ResourceVersion
			client.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, testJob(func(j *batchv1.Job) { j.ResourceVersion = version }), nil
			})
			client.PrependReactor("delete", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
				if changed {
					version = "7"
				}
				return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "job", errors.New("newer"))
			})
			c, _ := newController(t, client, due(ended))
			result, err := c.reconcile(t.Context(), jobKey{namespace: job.Namespace, name: job.Name, uid: job.UID}, job)
			if result.Requeue != changed || (err == nil) != changed {
				t.Errorf("reconcile() = %+v, %v; want it at once: %t", result, err, changed)
			}
		})
	}
}

func TestAJobWhoseTimeToLiveGrewIsKept(t *testing.T) {
	client := fake.NewClientset(testJob())
	client.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, testJob(func(j *batchv1.Job) { j.UID = "00000000-0000-0000-0000-000000000002" }), nil
	})
	d := due(ended)
	start(t, client, d)
	eventually(t, "read", func() bool {
		return slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.Matches("get", "jobs") })
	})
	if got := deletions(client); len(got) > 0 {
		t.Errorf("deleted %v, a Job made anew under the name", got)
	}
}

func TestTheEarlierOfTwoClocksCounts(t *testing.T) {
	cases := map[string]struct {
		server     time.Time
		wantDelete bool
	}{
		"the API server's clock is behind":        {ended.Add(10 * time.Second), false},
		"the API server's clock is ahead":         {ended.Add(time.Hour), true},
		"the API server's clock is not known yet": {time.Time{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(testJob())
			d := due(ended.Add(time.Minute))
			start(t, client, d, func(c *Config) { c.ServerNow = func() time.Time { return tc.server } })
			question := d.Await(t, 1)
			if !tc.wantDelete {
				if now := question.GetNow().AsTime(); !now.Equal(tc.server) {
					t.Errorf("asked for %s, want %s", now, tc.server)
				}
				return
			}
			eventually(t, "deletion", func() bool { return len(deletions(client)) > 0 })
		})
	}
}

func TestTheQuestionHasTheJobsOptions(t *testing.T) {
	cases := map[string]struct {
		policy   string
		want     *jobpolicyv1.JobOptions
		problems int
	}{
		"a policy":                   {policy: "{job: {ttlSecondsAfterComplete: 60}}", want: &jobpolicyv1.JobOptions{TtlSecondsAfterComplete: new(int32(60))}},
		"one that is only of others": {policy: "{cronJob: {startJitterSeconds: 60}}"},
		"one that does not fit":      {policy: "{job: {ttlSecondsAfterComplete: 60, failureRuleNames: [a]}}", problems: 1},
		"one that cannot be read":    {policy: "{job: {ttlSecondsAfterComplete: 1 minute, ttlSecondsAfterFailed: -1}}", problems: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(testJob(func(j *batchv1.Job) {
				j.Spec.TTLSecondsAfterFinished, j.Annotations = nil, map[string]string{wire.Policy: tc.policy}
			}))
			d := due(ended.Add(time.Hour))
			start(t, client, d)
			spec := d.Await(t, 1).GetSpec()
			if diff := cmp.Diff(tc.want, spec.GetOptions(), protocmp.Transform()); diff != "" || len(spec.GetOptionProblems()) != tc.problems {
				t.Errorf("problems %q, want %d; options (-want +got):\n%s", spec.GetOptionProblems(), tc.problems, diff)
			}
		})
	}
}

func TestConfigNamesWhatIsMissing(t *testing.T) {
	_, err := New(Config{})
	if got, want := fmt.Sprint(err), "TTL after finished: no Jobs: invalid configuration"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNothingIsAskedAboutAJobThatNothingLimits(t *testing.T) {
	kept := testJob(func(j *batchv1.Job) {
		j.Name, j.UID, j.Spec.TTLSecondsAfterFinished = "a-kept", "00000000-0000-0000-0000-00000000000a", nil
	})
	client := fake.NewClientset(kept, testJob())
	d := due(ended.Add(time.Hour))
	start(t, client, d, func(cfg *Config) { cfg.Workers = 1 })
	d.Await(t, 1)
	limited := kept.DeepCopy()
	limited.ResourceVersion, limited.Annotations = "2", map[string]string{wire.Policy: "{job: {ttlSecondsAfterFailed: 7}}"}
	if _, err := client.BatchV1().Jobs(kept.Namespace).Update(t.Context(), limited, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a question about each", func() bool { return len(d.Requests()) == 2 })
	for i, want := range []string{"job", "a-kept"} {
		if got := d.Requests()[i].GetJob().GetName(); got != want {
			t.Errorf("question %d is about %s, want %s", i, got, want)
		}
	}
	if d.Requests()[1].GetSpec().GetOptions() == nil {
		t.Error("a question about a Job before anything limits it")
	}
}
