package cronjob

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// faultTest runs a Controller of a group against an engine that answers after a millisecond.
func faultTest(t *testing.T, answer reply, objects []runtime.Object, play func(s *server), refused ...refusal) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(objects...)
		for _, r := range refused {
			s.PrependReactor(r.verb, r.resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, r.err })
		}
		stop := run(t, s, &script{Otherwise: func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
			time.Sleep(time.Millisecond)
			return answer(req)
		}})
		play(s)
		stop()
		time.Sleep(time.Minute) // Until the events are told.
	})
}

// A refusal is the answer to all requests of a kind.
type refusal struct {
	verb, resource string
	err            error
}

// change changes a CronJob, as its user does.
func (s *server) change(t *testing.T, object runtime.Object, edit func(*batchv1.CronJob)) {
	t.Helper()
	cron := object.(*batchv1.CronJob).DeepCopy()
	edit(cron)
	s.Stamp(cron)
	if err := s.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("cronjobs"), cron, namespace); err != nil {
		t.Fatal(err)
	}
}

// wantRuns checks which runs were created. Those for which there is room at once start in any order.
func wantRuns(t *testing.T, s *server, want ...string) {
	t.Helper()
	if names, _ := runsOf(t, s); !slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(want))) {
		t.Errorf("created %v, want %v", names, want)
	}
}

// A start that fails takes the place in the line away, and the next decision gives it back. That alone is no reason to try again.
func TestAStartThatFailsBacksOffInAGroup(t *testing.T) {
	ending := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "x", nil)
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	replacing := func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		d, err := deleting(t, "cron-000-1", map[int]string{50: "old"})(req)
		d.GroupClaim = &jobpolicyv1.GroupClaim{CronJob: "cron-000", Since: timestamppb.New(created), From: timestamppb.New(created)}
		return d, err
	}
	recording := func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		return &jobpolicyv1.DecideCronJobResponse{
			Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY, FollowUp: jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE,
			Status:     &jobpolicyv1.CronJobStatus{LastScheduleTime: timestamppb.New(created)},
			GroupClaim: &jobpolicyv1.GroupClaim{CronJob: "cron-000", Since: timestamppb.New(created), From: timestamppb.New(created)},
		}, nil
	}
	for name, tc := range map[string]struct {
		answer  reply
		refused refusal
	}{
		"the namespace is being deleted":      {oneEach, refusal{"create", "jobs", ending}},
		"the CronJob cannot be read":          {oneEach, refusal{"get", "cronjobs", errNoAnswer}},
		"the run before it cannot be deleted": {replacing, refusal{"delete", "jobs", errQuota}},
		"its status has to be written first":  {recording, refusal{"update", "cronjobs", errQuota}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			count := func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
				asked++
				return tc.answer(req)
			}
			faultTest(t, count, etlCrons(1), func(*server) { time.Sleep(15 * time.Second) }, tc.refused)
			if asked != 2 {
				t.Errorf("asked %d times in 15 s, want 2: the backoff is 10 s", asked)
			}
		})
	}
}

// failsFor is oneEach in a group of one run at once, except that the engine fails for cron-000, from its nth answer on.
func failsFor(n int) reply {
	asked := 0
	return func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		if req.GetCronJob().GetName() != "cron-000" {
			time.Sleep(10 * time.Millisecond)
		} else if asked++; asked >= n {
			return nil, status.Error(codes.Internal, "panic")
		}
		return oneEach(req)
	}
}

// Others of the group wait for a minute for a CronJob about which the engine does not answer: it may be away.
func TestAGroupDoesNotWaitForeverForTheEngine(t *testing.T) {
	for name, n := range map[string]int{"it has never answered": 1, "it has answered that it is the next": 2} {
		t.Run(name, func(t *testing.T) {
			crons := etlCrons(3)
			faultTest(t, failsFor(n), crons, func(s *server) {
				time.Sleep(enginePatience - 20*time.Second)
				if names, _ := runsOf(t, s); len(names) > 1 {
					t.Errorf("created %v: the engine may be away", names)
				}
				time.Sleep(40 * time.Second)
				wantRuns(t, s, "cron-001-1", "cron-002-1")
			})
		})
	}
}

// Others wait for the first decision on a CronJob. If it is not run any more before that, or not in this group, they go on.
func TestAGroupGoesOnWithoutOneThatWasNotDecidedOn(t *testing.T) {
	for name, leave := range map[string]func(*testing.T, *server, runtime.Object){
		"deleted": func(t *testing.T, s *server, _ runtime.Object) {
			if err := s.Tracker().Delete(batchv1.SchemeGroupVersion.WithResource("cronjobs"), namespace, "cron-000"); err != nil {
				t.Fatal(err)
			}
		},
		"in another group": func(t *testing.T, s *server, cron runtime.Object) {
			s.change(t, cron, func(c *batchv1.CronJob) {
				c.Annotations[wire.Policy] = `{cronJob: {group: {name: other, maxActiveRuns: 2}}}`
			})
		},
		"handed to another controller": func(t *testing.T, s *server, cron runtime.Object) {
			s.change(t, cron, func(c *batchv1.CronJob) { c.Annotations[wire.CronJobManagedBy] = "example.com/other" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			crons := etlCrons(2)
			faultTest(t, failsFor(1), crons, func(s *server) {
				time.Sleep(time.Second)
				wantRuns(t, s)
				leave(t, s, crons[0])
				time.Sleep(20 * time.Second)
				wantRuns(t, s, "cron-001-1")
			})
		})
	}
}

// cron-000 waits. Something of what is decided meanwhile cannot be done: it still is the next.
func TestAWriteThatFailsKeepsThePlaceInTheLine(t *testing.T) {
	tidies := func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		d, err := oneEach(req)
		if req.GetCronJob().GetName() == "cron-000" && d.GetCreate() == nil {
			tidy, _ := deleting(t, "", map[int]string{50: "old"})(req)
			tidy.GroupClaim = d.GetGroupClaim()
			return tidy, nil
		}
		return d, err
	}
	faultTest(t, tidies, etlCrons(4)[1:], func(s *server) {
		time.Sleep(time.Second)
		wantActive(t, s, 2)
		first := etlCrons(1)[0].(*batchv1.CronJob)
		s.Stamp(first)
		if err := s.Tracker().Add(first); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		names, _ := runsOf(t, s)
		complete(t, s, names[0])
		time.Sleep(time.Second)
		wantRuns(t, s, append(names, "cron-000-1")...)
	}, refusal{"delete", "jobs", errQuota})
}

func wantActive(t *testing.T, s *server, want int) {
	t.Helper()
	if names, active := runsOf(t, s); active != want {
		t.Errorf("created %v, %d active, want %d", names, active, want)
	}
}

// The answer to a creation is lost, and from then on a quota refuses it. A refusal says nothing of what was sent before, so that
// is looked up.
func TestARefusalEndsTheDoubtAboutACreationInItsGroup(t *testing.T) {
	for name, made := range map[string]bool{"it had no effect": false, "it took effect": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(etlCrons(3)...)
				tries := 0
				s.PrependReactor("create", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
					if action.(clienttesting.CreateAction).GetObject().(*batchv1.Job).Name != "cron-000-1" {
						return false, nil, nil
					}
					if tries++; tries == 1 {
						return true, nil, apierrors.NewTimeoutError("request did not complete", 0)
					}
					return true, nil, errQuota
				})
				s.PrependReactor("get", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
					job := testJob(70, "cron-000-1", testUID(1000))
					job.ResourceVersion = "5000" // The watch does not show it yet.
					job.Annotations = map[string]string{batchv1.CronJobScheduledTimestampAnnotation: created.Format(time.RFC3339)}
					is := made && action.(clienttesting.GetAction).GetName() == "cron-000-1"
					return is, job, nil
				})
				stop := run(t, s, &script{Otherwise: oneEach})
				time.Sleep(time.Hour)
				want := 2 // Of these the watch shows.
				if made {
					want = 1
				}
				wantActive(t, s, want)
				stop()
				time.Sleep(time.Minute)
			})
		})
	}
}

// A deletion that fails says nothing about a creation that was not answered, nor about one that is only being sent.
func TestADeletionThatFailsLeavesACreationInDoubt(t *testing.T) {
	s := newServer(testCron())
	c := start(t, s, &script{Otherwise: applying(&jobpolicyv1.DecideCronJobResponse{})})
	eventually(t, "the CronJob is known", func() bool { _, ok := c.known(testUID(1)); return ok })
	state, _ := c.known(testUID(1))
	state.runs.beginCreation("cron-1")
	s.fail("delete jobs", errQuota)
	d, err := deleting(t, "", map[int]string{50: "old"})(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.applier.changeJobs(t.Context(), state, snapshot{cron: testCron()}, d); err == nil {
		t.Fatal("the deletion did not fail")
	}
	if got := state.runs.unresolved(""); got != "cron-1" {
		t.Errorf("in doubt: %q, want cron-1", got)
	}
}
