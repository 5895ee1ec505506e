package cronjob

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const brokenPolicy = "{cronJob: 3}"

// annotated sets the policy of a CronJob, and its last valid options; empty: none.
func annotated(policy, last string) func(*batchv1.CronJob) {
	return func(cron *batchv1.CronJob) {
		if policy != "" {
			metav1.SetMetaDataAnnotation(&cron.ObjectMeta, wire.Policy, policy)
		}
		if last != "" {
			metav1.SetMetaDataAnnotation(&cron.ObjectMeta, wire.LastValidPolicy, last)
		}
	}
}

func (s *server) cron(t *testing.T) *batchv1.CronJob {
	t.Helper()
	cron, err := s.BatchV1().CronJobs(namespace).Get(t.Context(), "cron", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cron
}

// stagger is what a request says of the options: the offset, and whether they cannot be read.
func stagger(req *jobpolicyv1.DecideCronJobRequest) (seconds int32, problems bool) {
	return req.GetSpec().GetOptions().GetStaggerSeconds(), len(req.GetSpec().GetOptionProblems()) > 0
}

// A CronJob goes on with its last valid options, also in another process, which has them from its annotation: that is written
// once, before anything is decided with them.
func TestTheLastValidOptionsOutliveARestart(t *testing.T) {
	s, d := newServer(testCron(annotated("{cronJob: {staggerSeconds: 5}}", ""))), &script{}
	start(t, s, d)
	d.Await(t, 1)
	broken := s.cron(t)
	annotated(brokenPolicy, "")(broken)
	if _, err := s.BatchV1().CronJobs(namespace).Update(t.Context(), broken, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	const want = `{"cronJob":{"staggerSeconds":5}}`
	eventually(t, "the annotation has the last valid options", func() bool { return s.cron(t).Annotations[wire.LastValidPolicy] == want })
	d.Await(t, 3)
	if n := s.Tries("patch cronjobs"); n != 1 {
		t.Errorf("%d edits of the CronJob, want 1", n)
	}

	restarted, other := newServer(s.cron(t)), &script{}
	start(t, restarted, other)
	if seconds, problems := stagger(other.Await(t, 1)); seconds != 5 || !problems {
		t.Errorf("after a restart the offset is %d (problems: %t), want the last valid options", seconds, problems)
	}
	if n := restarted.Tries("patch cronjobs"); n != 0 {
		t.Errorf("%d edits of the CronJob after the restart, want none", n)
	}
}

// Without an annotation, and in a new process, nobody knows them.
func TestLastValidOptionsThatNobodyKnows(t *testing.T) {
	s, d := newServer(testCron(annotated(brokenPolicy, `{"cronJob":{"staggerSeconds":0}}`))), &script{}
	start(t, s, d)
	if req := d.Await(t, 1); req.GetSpec().GetOptions() != nil || len(req.GetSpec().GetOptionProblems()) == 0 {
		t.Errorf("options %v, problems %q, want problems only", req.GetSpec().GetOptions(), req.GetSpec().GetOptionProblems())
	}
}

// The options go with each status of a CronJob that asks for some.
func TestAStatusHasTheLastValidOptions(t *testing.T) {
	const stale = `{"cronJob":{"staggerSeconds":9}}`
	cases := map[string]struct{ policy, last, want string }{
		"valid":                    {policy: "{cronJob: {staggerSeconds: 5}}", last: stale, want: `{"cronJob":{"staggerSeconds":5}}`},
		"none for CronJobs":        {policy: "{}", want: `{"cronJob":{}}`},
		"nobody asks":              {},
		"nobody asks any more":     {last: stale},
		"invalid, and known":       {policy: brokenPolicy, last: stale, want: stale},
		"invalid, and never valid": {policy: brokenPolicy},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(testCron(annotated(tc.policy, tc.last)))
			status := &jobpolicyv1.CronJobStatus{LastScheduleTime: timestamppb.New(created)}
			start(t, s, &script{Answers: []reply{applying(&jobpolicyv1.DecideCronJobResponse{Status: status})}})
			eventually(t, "the status is written", func() bool { return s.cron(t).Status.LastScheduleTime != nil })
			if got := s.cron(t).Annotations[wire.LastValidPolicy]; got != tc.want || s.Tries("patch cronjobs") > 0 {
				t.Errorf("the annotation is %q after %d edits, want %q after none", got, s.Tries("patch cronjobs"), tc.want)
			}
		})
	}
}

// Without room for the annotation, a CronJob goes on all the same, and an older annotation goes.
func TestNoRoomForTheLastValidOptions(t *testing.T) {
	for name, last := range map[string]string{"none before": "", "older ones": `{"cronJob":{}}`} {
		t.Run(name, func(t *testing.T) {
			s := newServer(testCron(annotated("{cronJob: {staggerSeconds: 5}}", last)))
			d := &script{Otherwise: func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
				if seconds, problems := stagger(req); !problems || seconds != 5 || req.GetStatus().GetLastScheduleTime() != nil {
					return &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
				}
				return applying(&jobpolicyv1.DecideCronJobResponse{Status: &jobpolicyv1.CronJobStatus{LastScheduleTime: timestamppb.New(created)}})(req)
			}}
			s.PrependReactor("patch", "cronjobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
				full := strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), "staggerSeconds")
				return full, nil, apierrors.NewBadRequest("annotations are too long")
			})
			start(t, s, d)
			d.Await(t, 1)
			broken := s.cron(t)
			annotated(brokenPolicy, "")(broken)
			metav1.SetMetaDataAnnotation(&broken.ObjectMeta, "a", strings.Repeat("x", 256<<10-60))
			if _, err := s.BatchV1().CronJobs(namespace).Update(t.Context(), broken, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "a status by the last valid options", func() bool { return s.cron(t).Status.LastScheduleTime != nil })
			if got := s.cron(t).Annotations[wire.LastValidPolicy]; got != "" {
				t.Errorf("the annotation is %s, want none", got)
			}
		})
	}
}

// The next schedule time takes its room before the last valid options do.
func TestTheLastValidOptionsHaveRoomBesideTheNextScheduleTime(t *testing.T) {
	options := &jobpolicyv1.CronJobOptions{StaggerSeconds: new(int32(5))}
	for name, tc := range map[string]struct {
		left int // Room beside the other annotations, in bytes.
		want bool
	}{"for both": {200, true}, "for one": {80, false}} {
		req := &jobpolicyv1.DecideCronJobRequest{Spec: &jobpolicyv1.CronJobSpec{Options: options}}
		snap := snapshot{asks: true, req: req, cron: testCron(func(cron *batchv1.CronJob) {
			cron.Annotations = map[string]string{"a": strings.Repeat("x", 256<<10-tc.left)}
		})}
		cron, err := snap.withStatus(&jobpolicyv1.CronJobStatus{NextScheduleTime: timestamppb.New(created)})
		if err != nil {
			t.Fatal(err)
		}
		if _, has := cron.Annotations[wire.LastValidPolicy]; has != tc.want || cron.Annotations[wire.NextScheduleTime] == "" {
			t.Errorf("%s: room for the last valid options: %t, want %t, and the next schedule time", name, has, tc.want)
		}
		if err := validation.ValidateAnnotationsSize(cron.Annotations); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Options that become the last valid ones again are written again if a status has brought others meanwhile.
func TestTheSameOptionsBecomeTheLastValidOnesAgain(t *testing.T) {
	const first, second = `{"cronJob":{"staggerSeconds":5}}`, `{"cronJob":{"staggerSeconds":6}}`
	s := newServer(testCron(annotated(first, "")))
	d := &script{Otherwise: func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		if seconds, _ := stagger(req); seconds != 6 || req.GetStatus().GetLastScheduleTime() != nil {
			return &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
		}
		return applying(&jobpolicyv1.DecideCronJobResponse{Status: &jobpolicyv1.CronJobStatus{LastScheduleTime: timestamppb.New(created)}})(req)
	}}
	start(t, s, d)
	d.Await(t, 1)
	for _, step := range []struct{ policy, last string }{{brokenPolicy, first}, {second, second}, {first, second}, {brokenPolicy, first}} {
		cron, before := s.cron(t), len(d.Requests())
		annotated(step.policy, "")(cron)
		if _, err := s.BatchV1().CronJobs(namespace).Update(t.Context(), cron, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "policy "+step.policy+" leads to the last valid one "+step.last, func() bool {
			return len(d.Requests()) > before && s.cron(t).Annotations[wire.LastValidPolicy] == step.last
		})
	}
}
