package cronjob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func uidBytes(t *testing.T, n int) []byte {
	t.Helper()
	b, err := wire.UIDBytes(testUID(n))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestARunIsPartOfTheNextSnapshotAtOnce(t *testing.T) {
	s := newServer(testCron())
	d := &script{Answers: []reply{starting("cron-1"), func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		return &jobpolicyv1.DecideCronJobResponse{
			Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY,
			Status: &jobpolicyv1.CronJobStatus{
				Active:           []*jobpolicyv1.ActiveJob{{Uid: req.GetJobs()[0].GetUid(), Name: req.GetJobs()[0].GetName()}},
				LastScheduleTime: timestamppb.New(created.Add(time.Minute)),
			},
			Events: []*jobpolicyv1.JobEvent{normal("FromTheEngine", "x")},
		}, nil
	}}}
	start(t, s, d)
	second := d.Await(t, 2)
	if len(second.GetJobs()) != 1 || second.GetJobs()[0].GetName() != "cron-1" {
		t.Fatalf("second question has jobs %v, want cron-1", second.GetJobs())
	}
	eventually(t, "status written", func() bool { return slices.Contains(s.Done(), "update cronjobs/status") })
	s.WantWrites(t, "create jobs", "update cronjobs/status")
	job, err := s.BatchV1().Jobs(namespace).Get(t.Context(), "cron-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	job.ManagedFields = nil // The fake server keeps them.
	want := metav1.ObjectMeta{
		Name: "cron-1", Namespace: namespace, UID: job.UID, ResourceVersion: job.ResourceVersion, CreationTimestamp: job.CreationTimestamp,
		Labels:      map[string]string{"of": "template"},
		Annotations: map[string]string{"also": "template", batchv1.CronJobScheduledTimestampAnnotation: created.Add(time.Minute).In(time.FixedZone("", 7200)).Format(time.RFC3339)},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "batch/v1", Kind: "CronJob", Name: "cron", UID: testUID(1), Controller: &yes, BlockOwnerDeletion: &yes,
		}},
	}
	if diff := cmp.Diff(want, job.ObjectMeta); diff != "" {
		t.Errorf("metadata of the Job (-want +got):\n%s", diff)
	}
	cron, err := s.BatchV1().CronJobs(namespace).Get(t.Context(), "cron", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	active := []corev1.ObjectReference{{
		APIVersion: "batch/v1", Kind: "Job", Namespace: namespace, Name: "cron-1", UID: job.UID, ResourceVersion: job.ResourceVersion,
	}}
	if diff := cmp.Diff(active, cron.Status.Active); diff != "" {
		t.Errorf("status.active (-want +got):\n%s", diff)
	}
	s.AwaitEvent(t, "FromTheEngine")
}

func TestAStartIsToldThoughWhatFollowsIsRefused(t *testing.T) {
	s := newServer(testCron())
	s.fail("patch cronjobs", apierrors.NewConflict(schema.GroupResource{Group: "batch", Resource: "cronjobs"}, "cron", nil))
	d := &script{Answers: []reply{applying(&jobpolicyv1.DecideCronJobResponse{
		Create: &jobpolicyv1.CreateJob{Name: "cron-1"},
		Edits:  &jobpolicyv1.CronJobEdits{ClearRunNow: true},
		Events: []*jobpolicyv1.JobEvent{normal("Started", "x")},
	})}}
	start(t, s, d)
	d.Await(t, 2)
	s.WantWrites(t, "create jobs", "patch cronjobs")
	s.AwaitEvent(t, "Started")
}

// creationsAnswered lets the creations of run cron-1 have these answers, and the last of them
// those after it. The Job is there all the time; the watch does not show it.
func (s *server) creationsAnswered(answers ...error) {
	s.Failures["create jobs"] = func(n int) error { return answers[min(n, len(answers))-1] }
	s.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, testJob(7, "cron-1", testUID(1)), nil
	})
}

// triesAgain decides to start cron-1 as long as its creation does not wait for its backoff.
func triesAgain(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	if d := req.GetDeferrals(); len(d) > 0 && d[0].GetUntil().AsTime().After(req.GetNow().AsTime()) {
		return &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED, RequeueTime: d[0].GetUntil()}, nil
	}
	if len(req.GetJobs()) > 0 {
		return &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
	}
	return applying(&jobpolicyv1.DecideCronJobResponse{
		Create: &jobpolicyv1.CreateJob{Name: "cron-1"},
		Events: []*jobpolicyv1.JobEvent{normal("SuccessfulCreate", "Created job cron-1")},
	})(req)
}

var (
	errNoAnswer = errors.New("connection reset by peer")
	errTaken    = apierrors.NewAlreadyExists(schema.GroupResource{Group: "batch", Resource: "jobs"}, "cron-1")
	errQuota    = apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "cron-1", errors.New("exceeded quota"))
)

// The answer to the creation of a run is lost, and it took effect. The watch does not show the
// run before the creation is tried again, and that may be refused before the API server looks
// at the name.
func TestAStartIsToldThoughItsAnswerIsLost(t *testing.T) {
	for name, answers := range map[string][]error{
		"then the name is taken":              {errNoAnswer, errTaken},
		"then the quota, then the name":       {errNoAnswer, errQuota, errTaken},
		"then no answer again, then the name": {errNoAnswer, errNoAnswer, errTaken},
		"after a refusal, and then the name":  {errQuota, errNoAnswer, errTaken},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(testCron())
			s.creationsAnswered(answers...)
			start(t, s, &script{Otherwise: triesAgain})
			s.AwaitEvent(t, "SuccessfulCreate")
		})
	}
}

// Somebody else started the run, and told of it. Whose Job has the name is not known at once.
func TestAStartBySomebodyElseIsNotToldAgain(t *testing.T) {
	s := newServer(testCron())
	s.creationsAnswered(errTaken)
	reads := 0
	s.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		reads++
		return reads == 1, nil, errNoAnswer
	})
	d := &script{Otherwise: triesAgain}
	start(t, s, d)
	for n := 1; len(d.Await(t, n).GetJobs()) == 0; n++ {
	}
	time.Sleep(50 * time.Millisecond)
	if events := s.Events(t); slices.Contains(events, "SuccessfulCreate") {
		t.Errorf("events %v about a run that somebody else started", events)
	}
}

// The answer to an edit is lost, and the edit took effect. No later decision tells of it.
func TestAnEditIsToldThoughItsAnswerIsLost(t *testing.T) {
	s := newServer(testCron())
	s.Failures["patch cronjobs"] = func(int) error {
		cron := testCron(func(c *batchv1.CronJob) { c.Spec.Suspend = new(true) })
		s.Stamp(cron)
		if err := s.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("cronjobs"), cron, namespace); err != nil {
			t.Error(err)
		}
		return errors.New("connection reset by peer")
	}
	start(t, s, &script{Answers: []reply{applying(&jobpolicyv1.DecideCronJobResponse{
		Edits:  &jobpolicyv1.CronJobEdits{Suspend: true},
		Events: []*jobpolicyv1.JobEvent{{Type: jobpolicyv1.EventType_EVENT_TYPE_WARNING, Reason: "SuspendedAfterFailures", Message: "x"}},
	})}})
	s.AwaitEvent(t, "SuspendedAfterFailures")
}

func TestANameThatIsThereMeansStartedOnlyIfItIsTheCronJobsOwn(t *testing.T) {
	cases := map[string]struct {
		job       *batchv1.Job
		wantTaken []string
	}{
		"made by it before a restart": {testJob(7, "cron-1", testUID(1)), nil},
		"somebody else's":             {testJob(7, "cron-1", testUID(9)), []string{"cron-1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(testCron(), tc.job)
			told := normal("SuccessfulCreate", "Created job cron-1")
			d := &script{Answers: []reply{applying(&jobpolicyv1.DecideCronJobResponse{
				Create: &jobpolicyv1.CreateJob{Name: "cron-1"}, Events: []*jobpolicyv1.JobEvent{told},
			})}}
			start(t, s, d)
			second := d.Await(t, 2)
			if !slices.Equal(second.GetNamesTaken(), tc.wantTaken) {
				t.Errorf("names_taken = %q, want %q", second.GetNamesTaken(), tc.wantTaken)
			}
			time.Sleep(50 * time.Millisecond)
			if events := s.Events(t); len(events) > 0 {
				t.Errorf("events %v about a run that was started before", events)
			}
			if got, want := len(second.GetJobs()) == 1, tc.wantTaken == nil; got != want {
				t.Errorf("the Job is in the snapshot: %v, want %v", got, want)
			}
		})
	}
}

func TestNothingIsStartedForACronJobThatChangedSinceTheDecision(t *testing.T) {
	s := newServer(testCron())
	s.PrependReactor("get", "cronjobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		cron := testCron(func(c *batchv1.CronJob) { c.ResourceVersion, c.Spec.Suspend = "999", new(true) })
		return true, cron, nil
	})
	d := &script{Answers: []reply{starting("cron-1")}}
	start(t, s, d)
	if second := d.Await(t, 2); !second.GetSpec().GetSuspend() {
		t.Error("the second question does not show what was read")
	}
	s.WantWrites(t)
}

// A run that somebody asks for may be refused for what it is. It must not hold up those of the
// schedule.
func TestAFailedCreationIsDeferredAndReported(t *testing.T) {
	cases := map[string]struct {
		first reply
		want  jobpolicyv1.Step
	}{
		"of a scheduled run": {starting("cron-1"), jobpolicyv1.Step_STEP_CREATE_JOB},
		"of a run that somebody asks for": {
			applying(&jobpolicyv1.DecideCronJobResponse{Create: &jobpolicyv1.CreateJob{Name: "cron-run-x"}}), jobpolicyv1.Step_STEP_CREATE_MANUAL_JOB,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(testCron())
			s.fail("create jobs", apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "cron-1", nil))
			d := &script{Answers: []reply{tc.first}}
			start(t, s, d, func(cfg *Config) { cfg.APIBackoff, cfg.MaxAPIBackoff = time.Minute, time.Minute })
			second := d.Await(t, 2)
			deferrals := second.GetDeferrals()
			if len(deferrals) != 1 || deferrals[0].GetStep() != tc.want || !deferrals[0].GetUntil().AsTime().After(second.GetNow().AsTime()) {
				t.Errorf("deferrals = %v, want %v until later", deferrals, tc.want)
			}
			s.AwaitEvent(t, "FailedCreate")
		})
	}
}

// Admission takes a new Job from its CronJob. It would count for no policy, and would stay for ever. So
// it is deleted, and its creation backs off.
func TestAJobThatAdmissionTakesFromItsCronJobIsDeleted(t *testing.T) {
	s := newServer(testCron())
	s.PrependReactor("create", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		action.(clienttesting.CreateAction).GetObject().(*batchv1.Job).OwnerReferences = nil
		return false, nil, nil
	})
	d := &script{Answers: []reply{starting("cron-1")}}
	start(t, s, d, func(cfg *Config) { cfg.APIBackoff, cfg.MaxAPIBackoff = time.Minute, time.Minute })
	second := d.Await(t, 2)
	if deferrals := second.GetDeferrals(); len(deferrals) != 1 || len(second.GetJobs()) != 0 {
		t.Errorf("deferrals %v, Jobs %v; want one deferral and no Job", deferrals, second.GetJobs())
	}
	s.WantWrites(t, "create jobs", "delete jobs")
	want := "Error creating job: admission changed the new Job: metadata.ownerReferences has no controller, want CronJob cron"
	if event := s.AwaitEvent(t, "FailedCreate"); event.Message != want {
		t.Errorf("event %q, want %q", event.Message, want)
	}
}

// Both names can be foreseen, so anybody can take both.
func TestEveryNameThatIsTakenIsToldForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(testCron(), testJob(7, "cron-1", testUID(9)), testJob(8, "cron-2", testUID(9)))
		d := &script{Answers: []reply{starting("cron-2"), starting("cron-1"), settled(created.Add(2 * time.Minute))}}
		began := time.Now()
		start(t, s, d, func(c *Config) { c.Now = func() time.Time { return created.Add(time.Since(began)) } })
		time.Sleep(5 * time.Minute)
		asked := d.Requests()
		if len(asked) < 4 {
			t.Fatalf("%d questions, want four", len(asked))
		}
		if got := asked[2].GetNamesTaken(); !slices.Equal(got, []string{"cron-1", "cron-2"}) {
			t.Errorf("names_taken = %q, want both", got)
		}
		if got := asked[3].GetNamesTaken(); len(got) > 0 {
			t.Errorf("names_taken = %q after two minutes, want none: their Jobs may be gone", got)
		}
	})
}

// Others have the names of more runs than a request has room for. Those found last are told, so that the run after
// them starts.
func TestARunStartsAfterMoreTakenNamesThanARequestHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const taken = maxTaken + 2
		run := func(i int) string { return fmt.Sprintf("cron-%02d", i) }
		var theirs []runtime.Object
		for i := range taken {
			theirs = append(theirs, testJob(10+i, run(i), testUID(9)))
		}
		s := newServer(append(theirs, testCron())...)
		began := time.Now()
		// As the engine does, it starts the first run after all those whose names it is told are taken.
		d := &script{Otherwise: func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
			if len(req.GetJobs()) > 0 {
				return settled(created.Add(time.Hour))(req)
			}
			next := 0
			for i := range taken {
				if slices.Contains(req.GetNamesTaken(), run(i)) {
					next = i + 1
				}
			}
			return starting(run(next))(req)
		}}
		start(t, s, d, func(c *Config) { c.Now = func() time.Time { return created.Add(time.Since(began)) } })
		time.Sleep(30 * time.Second)
		requests := d.Requests()
		last := requests[len(requests)-1]
		if names := jobNames(last); !slices.Equal(names, []string{run(taken)}) {
			t.Errorf("after %d requests the runs are %q, want %s", len(requests), names, run(taken))
		}
		if n := len(last.GetNamesTaken()); n != maxTaken {
			t.Errorf("%d names, want %d", n, maxTaken)
		}
	})
}

func TestDeletionsComeFirstAndNameTheUID(t *testing.T) {
	s := newServer(testCron(), testJob(7, "cron-0", testUID(1)))
	d := &script{Answers: []reply{deleting(t, "cron-1", map[int]string{7: "cron-0"})}}
	start(t, s, d)
	second := d.Await(t, 2)
	if names := jobNames(second); !slices.Equal(names, []string{"cron-1"}) {
		t.Errorf("jobs in the second snapshot: %v, want cron-1 alone", names)
	}
	s.WantWrites(t, "delete jobs", "create jobs")
	options := s.Writes()[0].(clienttesting.DeleteActionImpl).DeleteOptions
	uid, background := testUID(7), metav1.DeletePropagationBackground
	want := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background}
	if diff := cmp.Diff(want, options); diff != "" {
		t.Errorf("delete options (-want +got):\n%s", diff)
	}
}

// The Job to replace cannot be read. It is deleted all the same, and nothing tells of it.
func TestAJobToReplaceIsNotRead(t *testing.T) {
	s := newServer(testCron(), testJob(7, "cron-0", testUID(1)))
	s.PrependReactor("get", "jobs", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.(clienttesting.GetAction).GetName() == "cron-0", nil, errors.New("not to be read")
	})
	d := &script{Answers: []reply{deleting(t, "cron-1", map[int]string{7: "cron-0"})}}
	start(t, s, d)
	d.Await(t, 2)
	s.WantWrites(t, "delete jobs", "create jobs")
}

func TestNothingIsDeletedForARunWhoseNameIsTaken(t *testing.T) {
	s := newServer(testCron(), testJob(7, "cron-0", testUID(1)), testJob(8, "cron-1", testUID(9)))
	d := &script{Answers: []reply{deleting(t, "cron-1", map[int]string{7: "cron-0"})}}
	start(t, s, d)
	if taken := d.Await(t, 2).GetNamesTaken(); !slices.Equal(taken, []string{"cron-1"}) {
		t.Errorf("names_taken = %q, want cron-1", taken)
	}
	s.WantWrites(t)
}

func jobNames(req *jobpolicyv1.DecideCronJobRequest) []string {
	var names []string
	for _, job := range req.GetJobs() {
		names = append(names, job.GetName())
	}
	return names
}

func TestAJobThatIsOnlyInTheActiveListIsLookedForPastTheCache(t *testing.T) {
	listed := testCron(func(c *batchv1.CronJob) {
		c.Status.Active = []corev1.ObjectReference{{Name: "cron-0", UID: testUID(7)}, {Name: "cron-1", UID: testUID(8)}}
	})
	s := newServer(listed)
	s.PrependReactor("get", "jobs", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.(clienttesting.GetAction).GetName() != "cron-0" {
			return false, nil, nil
		}
		job := testJob(7, "cron-0", testUID(1))
		job.ResourceVersion = "5000" // Newer than anything that the watch has shown.
		return true, job, nil
	})
	d := &script{Answers: []reply{answering(&jobpolicyv1.DecideCronJobResponse{
		Disposition:  jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE,
		Requirements: []jobpolicyv1.Requirement{jobpolicyv1.Requirement_REQUIREMENT_ABSENT_JOBS},
	})}}
	start(t, s, d)
	second := d.Await(t, 2)
	if diff := cmp.Diff([][]byte{uidBytes(t, 8)}, second.GetAbsentJobs()); diff != "" {
		t.Errorf("absent_jobs (-want +got):\n%s", diff)
	}
	if names := jobNames(second); !slices.Equal(names, []string{"cron-0"}) {
		t.Errorf("jobs: %v, want the one that exists", names)
	}
}

// The Job exists, and the CronJob controls it no longer: it is in the active list, and otherwise of
// no concern to the decision.
func TestAnActiveJobThatTheCronJobNoLongerControlsIsAbsent(t *testing.T) {
	s := newServer(testJob(7, "cron-0", testUID(2)), testCron(func(c *batchv1.CronJob) {
		c.Status.Active = []corev1.ObjectReference{{Name: "cron-0", UID: testUID(7)}}
	}))
	d := &script{Answers: []reply{answering(&jobpolicyv1.DecideCronJobResponse{
		Disposition:  jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE,
		Requirements: []jobpolicyv1.Requirement{jobpolicyv1.Requirement_REQUIREMENT_ABSENT_JOBS},
	})}}
	start(t, s, d)
	second := d.Await(t, 2)
	if diff := cmp.Diff([][]byte{uidBytes(t, 7)}, second.GetAbsentJobs()); diff != "" || len(second.GetJobs()) > 0 {
		t.Errorf("the question has the Jobs %v, want none; absent_jobs (-want +got):\n%s", second.GetJobs(), diff)
	}
}

func TestAStatusThatIsRefusedIsDecidedAnew(t *testing.T) {
	s := newServer(testCron())
	s.fail("update cronjobs/status", apierrors.NewConflict(schema.GroupResource{Resource: "cronjobs"}, "cron", nil))
	d := &script{Answers: []reply{applying(&jobpolicyv1.DecideCronJobResponse{
		Status: &jobpolicyv1.CronJobStatus{LastScheduleTime: timestamppb.New(created)},
	})}}
	start(t, s, d)
	if second := d.Await(t, 2); second.GetStatus().GetLastScheduleTime() != nil {
		t.Errorf("the second question has %v as written", second.GetStatus())
	}
}

func TestEditsArePatchesOfTheVersionThatWasDecidedOn(t *testing.T) {
	handed := testCron(func(c *batchv1.CronJob) { c.Annotations = map[string]string{wire.CronJobManagedBy: us} })
	cases := map[string]struct {
		cron  *batchv1.CronJob
		edits *jobpolicyv1.CronJobEdits
		want  string
	}{
		"suspend": {
			cron: testCron(), edits: &jobpolicyv1.CronJobEdits{Suspend: true},
			want: `{"metadata":{"resourceVersion":"5","uid":"00000000-0000-0000-0000-000000000001"},"spec":{"suspend":true}}`,
		},
		"suspend one that is handed over": {
			cron: handed, edits: &jobpolicyv1.CronJobEdits{Suspend: true},
			want: `{"metadata":{"annotations":{"jobpolicy.dev/suspend":"true"},"resourceVersion":"5","uid":"00000000-0000-0000-0000-000000000001"}}`,
		},
		"a run on demand was started": {
			cron: testCron(), edits: &jobpolicyv1.CronJobEdits{ClearRunNow: true},
			want: `{"metadata":{"annotations":{"jobpolicy.dev/run-now":null},"resourceVersion":"5","uid":"00000000-0000-0000-0000-000000000001"}}`,
		},
		"a schedule was seen": {
			cron:  testCron(),
			edits: &jobpolicyv1.CronJobEdits{ObservedSchedule: &jobpolicyv1.ObservedSchedule{Since: timestamppb.New(created), Schedule: "- 0 * * * *"}},
			want:  `{"metadata":{"annotations":{"jobpolicy.dev/observed-schedule":"2026-05-04T10:00:00Z - 0 * * * *"},"resourceVersion":"5","uid":"00000000-0000-0000-0000-000000000001"}}`,
		},
		"failures were counted": {
			cron:  testCron(),
			edits: &jobpolicyv1.CronJobEdits{FailuresCountedUntil: timestamppb.New(created.Add(time.Millisecond))},
			want:  `{"metadata":{"annotations":{"jobpolicy.dev/failures-counted-until":"2026-05-04T10:00:00.001Z"},"resourceVersion":"5","uid":"00000000-0000-0000-0000-000000000001"}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.cron.ResourceVersion = "5"
			edit, err := (&applier{scope: controller.Scope{ManagedBy: us}}).edits(tc.cron, tc.edits)
			if err != nil {
				t.Fatal(err)
			}
			client := fake.NewClientset(tc.cron)
			if _, err := (&api.Client{Kubernetes: client}).EditCronJob(t.Context(), nil, tc.cron, edit); err != nil {
				t.Fatal(err)
			}
			if got := client.Actions()[0].(clienttesting.PatchAction).GetPatch(); string(got) != tc.want {
				t.Errorf("patch:\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

const runNow = "jobpolicy.dev/run-now"

func TestEditsWithoutATimeAreRefused(t *testing.T) {
	a := &applier{}
	for name, edits := range map[string]*jobpolicyv1.CronJobEdits{
		"a schedule seen at no time": {ObservedSchedule: &jobpolicyv1.ObservedSchedule{Schedule: "x"}},
		"failures beyond all times":  {FailuresCountedUntil: &timestamppb.Timestamp{Seconds: 1 << 60}},
	} {
		if edit, err := a.edits(testCron(), edits); !errors.Is(err, controller.ErrBadAnswer) {
			t.Errorf("%s: edit %v, error %v; want ErrBadAnswer", name, edit, err)
		}
	}
}

func TestASnapshotContainsTheCronJobAndItsJobs(t *testing.T) {
	zone, deadline := "Europe/Berlin", int64(30)
	cron := testCron(func(c *batchv1.CronJob) {
		c.Spec.TimeZone, c.Spec.StartingDeadlineSeconds = &zone, &deadline
		c.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent
		c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = new(int32(3)), new(int32(1))
		c.Annotations = map[string]string{
			wire.Policy: "{cronJob: {startJitterSeconds: 9}, job: {ttlSecondsAfterFailed: 7}}", runNow: "once", "example.com/other": "x",
			"jobpolicy.dev/observed-schedule": "2026-05-04T12:00:00+02:00 - 0 * * * *", "jobpolicy.dev/failures-counted-until": "2026-05-04T10:00:00.5Z",
		}
	})
	failed := testJob(7, "cron-0", testUID(1))
	ended := metav1.NewTime(created.Add(time.Minute))
	failed.Annotations = map[string]string{batchv1.CronJobScheduledTimestampAnnotation: "2026-05-04T12:00:00+02:00"}
	failed.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: ended}}
	s := newServer(cron, failed, testJob(8, "another", testUID(2)))
	d := &script{}
	start(t, s, d)
	got := d.Await(t, 1)
	want := &jobpolicyv1.DecideCronJobRequest{
		RequestId: got.GetRequestId(), Now: got.GetNow(),
		CronJob: &jobpolicyv1.CronJobRef{Uid: uidBytes(t, 1), Namespace: namespace, Name: "cron", Generation: 1},
		Spec: &jobpolicyv1.CronJobSpec{
			Schedule: "* * * * *", TimeZone: &zone, StartingDeadlineSeconds: &deadline,
			ConcurrencyPolicy:          jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_FORBID,
			SuccessfulJobsHistoryLimit: new(int32(3)), FailedJobsHistoryLimit: new(int32(1)),
			CreationTime: timestamppb.New(created),
			Options:      &jobpolicyv1.CronJobOptions{StartJitterSeconds: new(int32(9))}, RunNow: "once",
			ObservedSchedule:     &jobpolicyv1.ObservedSchedule{Since: timestamppb.New(created), Schedule: "- 0 * * * *"},
			FailuresCountedUntil: timestamppb.New(created.Add(time.Second / 2)),
		},
		Status: &jobpolicyv1.CronJobStatus{},
		Jobs: []*jobpolicyv1.OwnedJob{{
			Uid: uidBytes(t, 7), Name: "cron-0", Outcome: jobpolicyv1.JobOutcome_JOB_OUTCOME_FAILED,
			FinishTime: timestamppb.New(ended.Time), ScheduledTime: timestamppb.New(created),
		}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// A CronJob with more Jobs than a request may have still runs, and its history is deleted.
func TestARequestHasTheJobsThatMatterMost(t *testing.T) {
	listed := testJob(maxJobs+2, "listed", testUID(1))
	cron := testCron(func(c *batchv1.CronJob) {
		c.Status.Active = []corev1.ObjectReference{{Name: "listed", UID: listed.UID}}
	})
	jobs := []*batchv1.Job{listed}
	for n := range maxJobs + 1 {
		job := testJob(n+2, fmt.Sprintf("cron-%d", n), testUID(1))
		job.CreationTimestamp = metav1.NewTime(created.Add(time.Duration(n) * time.Minute))
		jobs = append(jobs, job)
	}
	for _, job := range append(jobs[2:], listed) { // The oldest runs.
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	}
	sent := map[string]bool{}
	for _, job := range withinLimit(jobs, cron) {
		sent[job.Name] = true
	}
	if len(sent) != maxJobs || !sent["listed"] || !sent["cron-0"] || sent["cron-1"] || sent["cron-2"] || !sent["cron-3"] || !sent[fmt.Sprintf("cron-%d", maxJobs)] {
		t.Errorf("%d Jobs are sent, want %d: the listed one, the one that runs, and the newest", len(sent), maxJobs)
	}
	few := jobs[:3]
	if got := withinLimit(few, cron); len(got) != 3 {
		t.Errorf("%d of 3 Jobs are sent", len(got))
	}
}

// The API server takes any references in the active list, any annotations and
// any times. None of them may keep a CronJob from being decided on.
func TestNothingThatTheAPIServerTakesMakesARequestInvalid(t *testing.T) {
	long, beyond := strings.Repeat("0", 5000), metav1.NewTime(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC))
	real := corev1.ObjectReference{Name: "cron-0", UID: testUID(7)}
	cron := testCron(func(c *batchv1.CronJob) {
		c.Annotations = map[string]string{
			wire.Policy: "{" + long, runNow: long, "jobpolicy.dev/failures-counted-until": "0000-01-01T00:00:00Z",
			"jobpolicy.dev/observed-schedule": "9999-12-31T23:59:59-23:00 " + long,
		}
		c.Status.LastScheduleTime = &beyond
		c.Status.Active = []corev1.ObjectReference{
			{}, {Name: "cron-1"}, {UID: testUID(8)}, {Name: long, UID: testUID(9)}, {Name: "cron-2", UID: "no"}, real,
		}
	})
	job := testJob(7, "cron-0", testUID(1))
	job.Annotations = map[string]string{runNow: long, batchv1.CronJobScheduledTimestampAnnotation: "9999-12-31T23:59:59-23:00"}
	s := newServer(cron, job)
	incomplete := answering(&jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE})
	d := &script{Answers: []reply{incomplete}}
	start(t, s, d)
	got := d.Await(t, 2) // with the absent ones looked for
	if diff := cmp.Diff([]*jobpolicyv1.ActiveJob{{Uid: uidBytes(t, 7), Name: "cron-0"}}, got.GetStatus().GetActive(), protocmp.Transform()); diff != "" {
		t.Errorf("active (-want +got):\n%s", diff)
	}
	cut := long[:4093] + "…"
	spec := got.GetSpec()
	for what, text := range map[string]string{
		"run_now": spec.GetRunNow(), "run_now of the Job": got.GetJobs()[0].GetRunNow(), "observed_schedule": spec.GetObservedSchedule().GetSchedule(),
	} {
		if text != cut {
			t.Errorf("%s has %d bytes, want %d that end in an ellipsis", what, len(text), len(cut))
		}
	}
	if problems := spec.GetOptionProblems(); len(problems) != 1 || len(problems[0]) > 1024 {
		t.Errorf("problems of the options: %q", problems)
	}
	if since, until := spec.GetObservedSchedule().GetSince(), spec.GetFailuresCountedUntil(); !since.IsValid() || !until.IsValid() {
		t.Errorf("the times %v and %v are not both valid", since, until)
	}
	if last, at := got.GetStatus().GetLastScheduleTime(), got.GetJobs()[0].GetScheduledTime(); !last.IsValid() || !at.IsValid() {
		t.Errorf("the times %v and %v are not both valid", last, at)
	}
}

// An answer that the contract does not allow does not mean that there is nothing to do: the
// controller asks again.
func TestAnUnknownDispositionIsRefused(t *testing.T) {
	for _, disposition := range []jobpolicyv1.Disposition{0, 99} {
		t.Run(disposition.String(), func(t *testing.T) {
			d := &script{Answers: []reply{answering(&jobpolicyv1.DecideCronJobResponse{Disposition: disposition})}}
			start(t, newServer(testCron()), d)
			d.Await(t, 2)
		})
	}
}

func TestEachCronJobIsObservedWithItsLastDecision(t *testing.T) {
	s := newServer(testCron(), testCron(func(c *batchv1.CronJob) {
		c.Name, c.UID, c.Annotations = "another", testUID(2), map[string]string{wire.Policy: "{cronJob: {staggerSeconds: 5}}"}
	}), testCron(func(c *batchv1.CronJob) {
		c.Name, c.UID = "unread", testUID(3)
		c.Annotations = map[string]string{wire.Policy: "gone", wire.LastValidPolicy: `{"cronJob":{"staggerSeconds":5}}`}
	}))
	explaining := func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		return &jobpolicyv1.DecideCronJobResponse{
			Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED,
			Explanation: &jobpolicyv1.CronJobExplanation{Summary: "nothing is due for " + req.GetCronJob().GetName()},
		}, nil
	}
	c := start(t, s, &script{Answers: []reply{explaining, explaining, explaining}})
	eventually(t, "all are decided", func() bool {
		decided := 0
		c.EachCronJob(func(o Observation) {
			if o.Explanation.GetSummary() == "nothing is due for "+o.CronJob.Name && !o.Suspended {
				decided++
			}
			if held := o.CronJob.Name != testCron().Name; (o.OptionsFrom != "") != held || o.Explanation != nil && (o.Options.GetStaggerSeconds() == 5) != held {
				t.Errorf("%s: options %v of %q, want them of those that have an annotation", o.CronJob.Name, o.Options, o.OptionsFrom)
			}
			if unread := o.CronJob.Name == "unread"; o.Explanation != nil && o.OptionsUnread != unread {
				t.Errorf("%s: unread %t, want %t", o.CronJob.Name, o.OptionsUnread, unread)
			}
		})
		return decided == 3
	})
}

// The list of active Jobs may name a Job wrongly.
func TestAReferenceIsTheJobsByUIDAndName(t *testing.T) {
	wrong := corev1.ObjectReference{Kind: "Job", Name: "other", UID: testUID(7)}
	snap := snapshot{cron: testCron(func(c *batchv1.CronJob) { c.Status.Active = []corev1.ObjectReference{wrong} })}
	if got := snap.reference(testUID(7), "other"); got != wrong {
		t.Errorf("reference = %v, want the one of the list: %v", got, wrong)
	}
	if got := snap.reference(testUID(7), "cron-1"); got.Name != "cron-1" || got.APIVersion != "batch/v1" {
		t.Errorf("reference = %v, want one of cron-1", got)
	}
}

// A user may delete a run before the status lists it. The request contains it until then, or
// the engine would start it again.
func TestARunThatIsDeletedAtOnceIsNotForgotten(t *testing.T) {
	s := newServer(testCron())
	var jobs cache.SharedIndexInformer
	s.PrependReactor("create", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		job := action.(clienttesting.CreateAction).GetObject().(*batchv1.Job)
		s.Stamp(job)
		resource := batchv1.SchemeGroupVersion.WithResource("jobs")
		if err := errors.Join(s.Tracker().Create(resource, job.DeepCopy(), namespace), s.Tracker().Delete(resource, namespace, job.Name)); err != nil {
			return true, nil, err
		}
		eventually(t, "the watch has shown the deletion", func() bool {
			store := jobs.GetStore()
			return store.LastStoreSyncResourceVersion() == job.ResourceVersion && len(store.ListKeys()) == 0
		})
		return true, job, nil
	})
	recording := applying(&jobpolicyv1.DecideCronJobResponse{Status: &jobpolicyv1.CronJobStatus{LastScheduleTime: timestamppb.New(created.Add(time.Minute))}})
	d := &script{Answers: []reply{starting("cron-1"), recording}}
	start(t, s, d, func(cfg *Config) { jobs = cfg.Jobs.In("ns") })
	if second := d.Await(t, 2); len(second.GetJobs()) != 1 || second.GetJobs()[0].GetName() != "cron-1" {
		t.Fatalf("second question has jobs %v, want cron-1", second.GetJobs())
	}
	if third := d.Await(t, 3); len(third.GetJobs()) != 0 {
		t.Errorf("third question has jobs %v, want none", third.GetJobs())
	}
}

// The answer to a creation may get lost, and a user may delete the run before the creation is
// tried again. What the watch has shown is enough to know that the run was started.
func TestARunThatWasSeenIsNotStartedAgainThoughTheAnswerWasLost(t *testing.T) {
	s := newServer(testCron())
	started := make(chan *Controller, 1)
	s.PrependReactor("create", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		job := action.(clienttesting.CreateAction).GetObject().(*batchv1.Job)
		s.Stamp(job)
		resource := batchv1.SchemeGroupVersion.WithResource("jobs")
		if err := s.Tracker().Create(resource, job.DeepCopy(), namespace); err != nil {
			return true, nil, err
		}
		c := <-started
		eventually(t, "the watch has shown the run", func() bool {
			state, _ := c.known(testUID(1))
			state.runs.mu.Lock()
			defer state.runs.mu.Unlock()
			return len(state.runs.created) > 0
		})
		if err := s.Tracker().Delete(resource, namespace, job.Name); err != nil {
			return true, nil, err
		}
		eventually(t, "the watch has shown the deletion", func() bool { return len(c.cfg.Jobs.In(namespace).GetStore().ListKeys()) == 0 })
		return true, nil, errors.New("connection reset by peer")
	})
	d := &script{Answers: []reply{starting("cron-1")}}
	started <- start(t, s, d)
	if second := d.Await(t, 2); len(second.GetJobs()) != 1 || second.GetJobs()[0].GetName() != "cron-1" {
		t.Errorf("second question has jobs %v, want cron-1", second.GetJobs())
	}
}

// With the policies Forbid and Replace, a run depends on the run before it. If the creation of
// that one was not answered, the watch may show it much later.
func TestARunWhoseCreationWasNotAnsweredIsLookedForBeforeTheNext(t *testing.T) {
	s := newServer(testCron())
	var tried []string
	s.PrependReactor("create", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		job := action.(clienttesting.CreateAction).GetObject().(*batchv1.Job)
		s.Stamp(job)
		tried = append(tried, job.Name)
		s.PrependReactor("get", "jobs", func(get clienttesting.Action) (bool, runtime.Object, error) {
			return get.(clienttesting.GetAction).GetName() == job.Name, job, nil // The watch never shows it.
		})
		return true, nil, apierrors.NewTimeoutError("request did not complete", 0)
	})
	// As soon as Jobs may be created again, the next run is due.
	next := func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		switch until := deferredUntil(req); {
		case len(req.GetJobs()) > 0:
			return &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
		case until.AsTime().After(req.GetNow().AsTime()):
			return &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED, RequeueTime: until}, nil
		default:
			return starting("cron-2")(req)
		}
	}
	d := &script{Answers: []reply{starting("cron-1")}, Otherwise: next}
	start(t, s, d)
	eventually(t, "a question has cron-1", func() bool {
		return slices.ContainsFunc(d.Requests(), func(req *jobpolicyv1.DecideCronJobRequest) bool {
			return len(req.GetJobs()) == 1 && req.GetJobs()[0].GetName() == "cron-1"
		})
	})
	if want := []string{"cron-1"}; !slices.Equal(tried, want) {
		t.Errorf("creation of Jobs %v was tried, want %v", tried, want)
	}
}

// The API server may answer that a name is taken although no Job has it: a webhook answers
// so, or the Job is deleted meanwhile. The next try waits, or it would be a hot loop.
func TestANameThatIsTakenByNoJobDefersCreation(t *testing.T) {
	s := newServer(testCron())
	s.PrependReactor("create", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewAlreadyExists(schema.GroupResource{Group: "batch", Resource: "jobs"}, "cron-1")
	})
	d := &script{Answers: []reply{starting("cron-1")}}
	start(t, s, d, func(cfg *Config) { cfg.APIBackoff, cfg.MaxAPIBackoff = time.Minute, time.Minute })
	second := d.Await(t, 2)
	if !deferredUntil(second).AsTime().After(second.GetNow().AsTime()) {
		t.Errorf("the next question holds creation until %v, want a time after %v", deferredUntil(second).AsTime(), second.GetNow().AsTime())
	}
}

// A conflict does not mean that the Job is gone: a webhook may have refused its deletion.
// The request contains the Job until it is gone.
func TestADeletionThatMetAConflictIsTriedAgain(t *testing.T) {
	s := newServer(testCron(), testJob(7, "cron-1", testUID(1)))
	refused := false
	s.PrependReactor("delete", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		if refused {
			return false, nil, nil
		}
		refused = true
		return true, nil, apierrors.NewConflict(schema.GroupResource{Group: "batch", Resource: "jobs"}, "cron-1", errors.New("the webhook wants it so"))
	})
	again := func() reply { return deleting(t, "", map[int]string{7: "cron-1"}) }
	d := &script{Answers: []reply{again(), again()}}
	start(t, s, d)
	if second := d.Await(t, 2); len(second.GetJobs()) != 1 {
		t.Fatalf("the question after the conflict has jobs %v, want cron-1", second.GetJobs())
	}
	if third := d.Await(t, 3); len(third.GetJobs()) != 0 {
		t.Errorf("the question after the deletion has jobs %v, want none", third.GetJobs())
	}
}

// A policy that refuses one deletion of the history holds up neither the others nor the next run.
func TestADeletionThatIsRefusedHoldsUpNothing(t *testing.T) {
	s := newServer(testCron(), testJob(7, "cron-1", testUID(1)), testJob(8, "cron-2", testUID(1)))
	refuse(s, "cron-1")
	soon := func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		resp, err := deleting(t, "", map[int]string{7: "cron-1", 8: "cron-2"})(req)
		resp.RequeueTime = timestamppb.New(req.GetNow().AsTime().Add(time.Second))
		return resp, err
	}
	d := &script{Answers: []reply{soon, starting("cron-3")}}
	start(t, s, d, func(cfg *Config) { cfg.APIBackoff, cfg.MaxAPIBackoff = time.Hour, time.Hour })
	if names := jobNames(d.Await(t, 2)); !slices.Equal(names, []string{"cron-1"}) {
		t.Errorf("jobs in the second snapshot: %v, want cron-1 alone", names)
	}
	eventually(t, "the run, and the events of both deletions", func() bool {
		events := s.Events(t)
		return slices.Contains(s.Done(), "create jobs") && slices.Contains(events, "FailedDelete") && slices.Contains(events, "SuccessfulDelete")
	})
}

// refuse lets a policy refuse the deletion of a Job.
func refuse(s *server, name string) {
	s.PrependReactor("delete", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.(clienttesting.DeleteAction).GetName() != name {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, name, errors.New("it must stay"))
	})
}

// If a Job cannot be deleted to make room for a run, the run does not start.
func TestARunWaitsForEachJobThatItReplaces(t *testing.T) {
	s := newServer(testCron(), testJob(7, "cron-1", testUID(1)), testJob(8, "cron-2", testUID(1)))
	refuse(s, "cron-1")
	d := &script{Answers: []reply{deleting(t, "cron-3", map[int]string{7: "cron-1", 8: "cron-2"})}}
	start(t, s, d)
	if names := jobNames(d.Await(t, 2)); !slices.Equal(names, []string{"cron-1", "cron-2"}) {
		t.Errorf("jobs in the second snapshot: %v, want both", names)
	}
}

func TestADeletionIsToldThoughTheRunCannotBeCreated(t *testing.T) {
	s := newServer(testCron(), testJob(7, "cron-0", testUID(1)))
	s.fail("create jobs", apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "cron-1", nil))
	d := &script{Answers: []reply{deleting(t, "cron-1", map[int]string{7: "cron-0"})}}
	start(t, s, d)
	d.Await(t, 2)
	eventually(t, "both events", func() bool {
		return slices.Contains(s.Events(t), "FailedCreate") && slices.Contains(s.Events(t), "SuccessfulDelete")
	})
	if slices.Contains(s.Events(t), "SuccessfulCreate") {
		t.Errorf("events %v, and no run was created", s.Events(t))
	}
}

func TestAnEventIsMissing(t *testing.T) {
	d := &script{Answers: []reply{applying(&jobpolicyv1.DecideCronJobResponse{Delete: []*jobpolicyv1.DeleteJob{{Uid: uidBytes(t, 7), Name: "cron-1"}}})}}
	s := newServer(testCron(), testJob(7, "cron-1", testUID(1)))
	start(t, s, d)
	d.Await(t, 2)
	s.WantWrites(t)
}

// The status of a decision does not overwrite what somebody else wrote after it.
func TestAStatusIsWrittenToTheVersionThatWasDecidedOn(t *testing.T) {
	s := newServer(testCron())
	var version string
	var written []string
	s.PrependReactor("update", "cronjobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		written = append(written, action.(clienttesting.UpdateAction).GetObject().(*batchv1.CronJob).ResourceVersion)
		return false, nil, nil
	})
	d := &script{Answers: []reply{func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		stored, err := s.BatchV1().CronJobs(namespace).Get(t.Context(), "cron", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		version = stored.ResourceVersion
		other := stored.DeepCopy()
		other.Labels = map[string]string{"by": "another controller"}
		s.Stamp(other)
		if err := s.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("cronjobs"), other, namespace); err != nil {
			return nil, err
		}
		time.Sleep(50 * time.Millisecond) // The watch shows it.
		return applying(&jobpolicyv1.DecideCronJobResponse{Status: &jobpolicyv1.CronJobStatus{LastScheduleTime: timestamppb.New(created)}})(req)
	}}}
	start(t, s, d)
	d.Await(t, 2)
	if diff := cmp.Diff([]string{version}, written); diff != "" {
		t.Errorf("versions of the CronJob that statuses were written to (-want +got):\n%s", diff)
	}
}

// A finalizer may keep a deleted Job for a long time. Once the watch shows that the Job is
// being deleted, the request contains it again.
func TestADeletedJobThatStaysIsShownAsDeleting(t *testing.T) {
	s := newServer(testCron(), testJob(7, "cron-1", testUID(1)))
	s.PrependReactor("delete", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		now := metav1.NewTime(created)
		job := testJob(7, "cron-1", testUID(1))
		job.DeletionTimestamp, job.Finalizers = &now, []string{"example.com/hook"}
		s.Stamp(job)
		return true, nil, s.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), job, namespace)
	})
	d := &script{Answers: []reply{deleting(t, "", map[int]string{7: "cron-1"})}}
	start(t, s, d)
	eventually(t, "a question with the Job that is being deleted", func() bool {
		return slices.ContainsFunc(d.Requests(), func(req *jobpolicyv1.DecideCronJobRequest) bool {
			return len(req.GetJobs()) == 1 && req.GetJobs()[0].GetDeleting()
		})
	})
}

// A failures log collects what is recorded of decisions that were not carried out.
type failures chan string

func (f failures) Record(_ context.Context, record *jobpolicyv1.DecisionRecord) {
	if record.GetFailure() != "" {
		f <- record.GetFailure()
	}
}

func TestTheDecisionLogSaysWhyARunWasNotStarted(t *testing.T) {
	s := newServer(testCron())
	s.fail("create jobs", errors.New("no quota"))
	recorded := make(failures, 1)
	start(t, s, &script{Answers: []reply{starting("cron-1")}}, func(cfg *Config) { cfg.DecisionLog = recorded })
	if got, want := <-recorded, "the job of the run was not created: no quota"; got != want {
		t.Errorf("failure %q, want %q", got, want)
	}
}

// A request has the options that can be read, or the last ones that could be; none at all if nobody knows them.
func TestOptionsThatCannotBeReadAnyMore(t *testing.T) {
	s, problems := newCronState(testCron()), []string{"it does not exist"}
	read := &jobpolicyv1.CronJobOptions{StaggerSeconds: new(int32(5))}
	if got := s.lastOptions(nil, problems); got != nil {
		t.Errorf("options that were never known: %v, want none", got)
	}
	if got := s.lastOptions(nil, nil); got != nil {
		t.Errorf("options of a CronJob without any: %v, want none", got)
	}
	if got := s.lastOptions(nil, problems); got == nil || got.StaggerSeconds != nil {
		t.Errorf("the last options: %v, want empty ones", got)
	}
	s.lastOptions(read, nil)
	if got := s.lastOptions(nil, problems); got != read {
		t.Errorf("the last options: %v, want %v", got, read)
	}
}

// A status is written with the annotation that says when the next run is due, or without it; other annotations stay.
func TestAStatusHasTheNextRun(t *testing.T) {
	snap := snapshot{cron: testCron(func(c *batchv1.CronJob) {
		c.Annotations = map[string]string{"other": "x", wire.NextScheduleTime: "old"}
	})}
	cases := map[string]struct {
		next *timestamppb.Timestamp
		want map[string]string // nil: an error
	}{
		"a run":     {timestamppb.New(created), map[string]string{"other": "x", wire.NextScheduleTime: "2026-05-04T10:00:00Z"}},
		"none":      {nil, map[string]string{"other": "x"}},
		"no time":   {&timestamppb.Timestamp{Nanos: -1}, nil},
		"no minute": {&timestamppb.Timestamp{Seconds: 1}, map[string]string{"other": "x", wire.NextScheduleTime: "1970-01-01T00:00:01Z"}},
	}
	for name, tc := range cases {
		cron, err := snap.withStatus(&jobpolicyv1.CronJobStatus{NextScheduleTime: tc.next})
		if (err != nil) != (tc.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && !maps.Equal(cron.Annotations, tc.want) {
			t.Errorf("%s: annotations %v, want %v", name, cron.Annotations, tc.want)
		}
		if err == nil && tc.next != nil && !wire.CronJobStatus(cron).GetNextScheduleTime().AsTime().Equal(tc.next.AsTime()) {
			t.Errorf("%s: read as %v", name, wire.CronJobStatus(cron).GetNextScheduleTime())
		}
	}
	if snap.cron.Annotations[wire.NextScheduleTime] != "old" {
		t.Error("the CronJob that was decided on is changed")
	}
}
