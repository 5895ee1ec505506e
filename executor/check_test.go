package executor

import (
	"context"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"pgregory.net/rapid"

	"jobpolicy.dev/executor/internal/limit"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func ranges(bounds ...int32) *jobpolicyv1.IndexSet {
	set := &jobpolicyv1.IndexSet{}
	for i := 0; i < len(bounds); i += 2 {
		set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: bounds[i], Last: bounds[i+1]})
	}
	return set
}

type response = jobpolicyv1.DecideJobResponse

// never is a time that no calendar has.
var never = &timestamppb.Timestamp{Seconds: math.MaxInt64}

// A wrongAnswer spoils one field of an answer.
type wrongAnswer struct {
	spoil func(*response)
	field string
}

func refuseEach(t *testing.T, cases map[string]wrongAnswer) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &response{
				RequestId: "1", Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY, Status: recorded(t, 2), Release: uidsOf(t, 2),
			}
			d.Status.Conditions = []*jobpolicyv1.JobCondition{{Type: "Suspended", Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE}}
			if err := wire.CheckDecision(nil, d); err != nil {
				t.Fatalf("the answer is refused as it is: %v", err)
			}
			tc.spoil(d)
			if err := wire.CheckDecision(nil, d); err == nil || !strings.HasPrefix(err.Error(), tc.field+" ") {
				t.Errorf("got error %v, want one about %s", err, tc.field)
			}
		})
	}
}

// An answer with one wrong field is refused, and the error names the field.
func TestAnAnswerWithAWrongFieldIsRefused(t *testing.T) {
	refuseEach(t, map[string]wrongAnswer{
		"an impossible requeue time":    {spoil: func(d *response) { d.RequeueTime = never }, field: "requeue_time"},
		"the Job is deleted":            {spoil: func(d *response) { d.DeleteJob = &jobpolicyv1.DeleteJob{} }, field: "delete_job"},
		"a gang that was not asked for": {spoil: func(d *response) { d.Gang = &jobpolicyv1.Gang{MinCount: 2} }, field: "gang"},
		"an event of no type":           {spoil: func(d *response) { d.Events = []*jobpolicyv1.JobEvent{{Reason: "x"}} }, field: "events[0].type"},
		"an event that is no text": {
			spoil: func(d *response) { d.Events = []*jobpolicyv1.JobEvent{{Type: 1, Message: "\xff"}} },
			field: "events[0]",
		},
		"a count of failures that would count down": {
			spoil: func(d *response) {
				d.PodFailureActions = []*jobpolicyv1.PodFailureActionCount{{Action: 1, Count: -1}}
			},
			field: "pod_failure_actions[0].count",
		},
		"an unknown action": {
			spoil: func(d *response) { d.PodFailureActions = []*jobpolicyv1.PodFailureActionCount{{Action: 99, Count: 1}} },
			field: "pod_failure_actions[0].action",
		},
	})
}

func TestAnAnswerWithWrongDeletionsOrReleasesIsRefused(t *testing.T) {
	uid := uidsOf(t, 2)[0]
	refuseEach(t, map[string]wrongAnswer{
		"a deletion without a UID": {spoil: func(d *response) { d.Delete = []*jobpolicyv1.DeletePod{{}} }, field: "delete[0].uid"},
		"a pod is deleted twice": {
			spoil: func(d *response) { d.Delete = []*jobpolicyv1.DeletePod{{Uid: uid}, {Uid: uid}} },
			field: "delete[1].uid",
		},
		"a release of a short UID": {spoil: func(d *response) { d.Release = [][]byte{uid, uid[1:]} }, field: "release[1]"},
		"a pod is released twice":  {spoil: func(d *response) { d.Release = [][]byte{uid, uid} }, field: "release[1]"},
	})
}

func TestAnAnswerWithAWrongStatusIsRefused(t *testing.T) {
	status := func(spoil func(*jobpolicyv1.JobStatus)) func(*response) {
		return func(d *response) { spoil(d.Status) }
	}
	condition := func(spoil func(*jobpolicyv1.JobCondition)) func(*response) {
		return func(d *response) { spoil(d.Status.Conditions[0]) }
	}
	uid := uidsOf(t, 2)[0]
	refuseEach(t, map[string]wrongAnswer{
		"fewer active pods than none":    {spoil: status(func(s *jobpolicyv1.JobStatus) { s.Active = -1 }), field: "status.active"},
		"fewer ready pods than none":     {spoil: status(func(s *jobpolicyv1.JobStatus) { s.Ready = proto.Int32(-1) }), field: "status.ready"},
		"fewer succeeded pods than none": {spoil: status(func(s *jobpolicyv1.JobStatus) { s.Succeeded = -1 }), field: "status.succeeded"},
		"fewer failed pods than none":    {spoil: status(func(s *jobpolicyv1.JobStatus) { s.Failed = -1 }), field: "status.failed"},
		"a pod that ended in two ways": {
			spoil: status(func(s *jobpolicyv1.JobStatus) { s.Uncounted.Succeeded = [][]byte{uid} }),
			field: "status.uncounted[1]",
		},
		"an impossible start time": {spoil: status(func(s *jobpolicyv1.JobStatus) { s.StartTime = never }), field: "status.start_time"},
		"an impossible completion time": {
			spoil: status(func(s *jobpolicyv1.JobStatus) { s.CompletionTime = never }),
			field: "status.completion_time",
		},
		"completed indexes out of order": {
			spoil: status(func(s *jobpolicyv1.JobStatus) { s.CompletedIndexes = ranges(3, 3, 1, 1) }),
			field: "status.completed_indexes.ranges[1]",
		},
		"failed indexes below 0": {
			spoil: status(func(s *jobpolicyv1.JobStatus) { s.FailedIndexes = ranges(-3, -3) }),
			field: "status.failed_indexes.ranges[0]",
		},
		"a condition of others": {spoil: condition(func(c *jobpolicyv1.JobCondition) { c.Type = "Ready" }), field: "status.conditions[0].type"},
		"a condition twice": {
			spoil: status(func(s *jobpolicyv1.JobStatus) { s.Conditions = append(s.Conditions, s.Conditions[0]) }),
			field: "status.conditions[1].type",
		},
		"a condition without a status": {
			spoil: condition(func(c *jobpolicyv1.JobCondition) { c.Status = 0 }),
			field: "status.conditions[0].status",
		},
		"a reason that is too long": {
			spoil: condition(func(c *jobpolicyv1.JobCondition) { c.Reason = strings.Repeat("x", 1025) }),
			field: "status.conditions[0]",
		},
		"an impossible time of condition": {
			spoil: condition(func(c *jobpolicyv1.JobCondition) { c.LastTransitionTime = never }),
			field: "status.conditions[0].last_transition_time",
		},
	})
}

// carrier carries answers out against an API server that does whatever it is asked.
type carrier struct{ e *Executor }

func newCarrier(t testing.TB) carrier {
	t.Helper()
	client := fake.NewClientset()
	version := 1000
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch a := action.(type) {
		case clienttesting.CreateAction: // Updates are of this type, too.
			version++
			m, err := meta.Accessor(a.GetObject())
			must(err)
			m.SetResourceVersion(strconv.Itoa(version))
			if m.GetUID() == "" {
				m.SetUID(testUID(version))
			}
			return true, a.GetObject(), nil
		case clienttesting.PatchActionImpl:
			version++
			return true, testPod(2, func(pod *corev1.Pod) { pod.Finalizers, pod.ResourceVersion = nil, strconv.Itoa(version) }), nil
		}
		return true, nil, nil
	})
	cfg := testConfig(newServer(), &script{})
	cfg.Client, cfg.Settings = client, &jobpolicyv1.Settings{MaxPodChanges: 5}
	return carrier{build(t, cfg)}
}

// carryOut carries an answer about a Job with three pods out if it passes.
func (c carrier) carryOut(t interface{ Helper() }, job *batchv1.Job, d *jobpolicyv1.DecideJobResponse) {
	t.Helper()
	job.ResourceVersion = "1"
	s := tracker.New(tracker.KeyOf(job), limit.NewPool(limit.Config{Total: 8, PerJob: 8}))
	s.Observe(job, tracker.Watch)
	for n := 2; n < 5; n++ {
		s.ObservePod(cachedPod(n, func(pod *corev1.Pod) { pod.ResourceVersion = "2" }), tracker.Watch)
	}
	snap, err := c.e.decider.snapshot(s, true)
	must(err)
	if d != nil {
		d.RequestId = snap.req.GetRequestId()
	}
	if answer.Check(snap.req, d) != nil || wire.CheckDecision(snap.req, d) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.e.reconciler.report.remember(ctx, s, snap, d)
	_, _ = c.e.reconciler.applier.apply(ctx, s, c.e.reconciler.calls(s), snap, d) // Whether it is refused is not the question.
}

// oddJobs are Jobs of each kind that answers are checked by.
func oddJobs() []*batchv1.Job {
	indexed, three := batchv1.IndexedCompletion, int32(3)
	ofIndexes := func(job *batchv1.Job) { job.Spec.CompletionMode, job.Spec.Completions = &indexed, &three }
	return []*batchv1.Job{testJob(), testJob(ofIndexes), testJob(ofIndexes, func(job *batchv1.Job) { job.Spec.BackoffLimitPerIndex = &three })}
}

// No answer that passes the check makes the executor panic.
func TestWhateverPassesTheCheckCanBeCarriedOut(t *testing.T) {
	c := newCarrier(t)
	rapid.Check(t, func(t *rapid.T) {
		job := oddJobs()[rapid.IntRange(0, 2).Draw(t, "kind of job")]
		c.carryOut(t, job, drawAnswer(t, job))
	})
}

// FuzzAnswers does the same for any bytes.
func FuzzAnswers(f *testing.F) {
	c := newCarrier(f)
	for n, job := range oddJobs() {
		d := &jobpolicyv1.DecideJobResponse{
			Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY, Create: &jobpolicyv1.CreatePods{Count: 2}, RequeueTime: timestamppb.New(time.Unix(0, 0)),
			Status: &jobpolicyv1.JobStatus{Active: 2, Conditions: []*jobpolicyv1.JobCondition{{Type: "Failed", Status: 1}}},
			Events: []*jobpolicyv1.JobEvent{{Type: 1, Reason: "x"}},
		}
		if wire.Indexed(job) {
			d.Create.Indexes = ranges(0, 1)
			d.Status.CompletedIndexes = ranges(2, 2)
		}
		seed, err := proto.Marshal(d)
		must(err)
		f.Add(uint8(n), seed)
	}
	f.Fuzz(func(t *testing.T, kind uint8, encoded []byte) {
		d := &jobpolicyv1.DecideJobResponse{}
		if proto.Unmarshal(encoded, d) != nil {
			return
		}
		jobs := oddJobs()
		c.carryOut(t, jobs[int(kind)%len(jobs)], d)
	})
}

// drawAnswer draws an answer with any of its fields. At most one value is out of range.
func drawAnswer(t *rapid.T, job *batchv1.Job) *jobpolicyv1.DecideJobResponse {
	a := &answerDrawer{T: t, odd: rapid.IntRange(0, 60).Draw(t, "odd one")}
	d := &jobpolicyv1.DecideJobResponse{
		Disposition: draw(a, []jobpolicyv1.Disposition{1, 1, 1, 2, 3}, 0, 99),
		RequeueTime: a.time(),
		Explanation: draw(a, []*jobpolicyv1.Explanation{nil, {}}, &jobpolicyv1.Explanation{DecidingRule: 999}, &jobpolicyv1.Explanation{Summary: "\xff"}),
		FollowUp:    draw(a, []jobpolicyv1.FollowUp{0, 1, 2, 3}, 99),
		Verdict:     draw(a, []*jobpolicyv1.Verdict{nil, {Rule: jobpolicyv1.Rule_RULE_DEADLINE_PASSED}, {Repeated: true}}, &jobpolicyv1.Verdict{Rule: 999}),
		Gang:        draw(a, []*jobpolicyv1.Gang{nil}, &jobpolicyv1.Gang{MinCount: -1}),
	}
	switch rapid.IntRange(0, 2).Draw(t, "change") {
	case 1:
		d.Create = a.create(job)
	case 2:
		for _, n := range []int{2, 3, 4} {
			d.Delete = append(d.Delete, draw(a, []*jobpolicyv1.DeletePod{{Uid: a.uid(n)}, {Uid: a.uid(n), ReleaseFirst: true}}, nil))
		}
	}
	if rapid.Bool().Draw(t, "status") {
		d.Status = a.status()
		d.Release = [][]byte{a.uid(2), a.uid(4)}
	}
	if rapid.Bool().Draw(t, "reports") {
		d.Events = []*jobpolicyv1.JobEvent{draw(a, []*jobpolicyv1.JobEvent{{Type: 1}, {Type: 2, Message: a.text()}}, nil, &jobpolicyv1.JobEvent{Type: -1})}
		d.PodFailureActions = []*jobpolicyv1.PodFailureActionCount{draw(a, []*jobpolicyv1.PodFailureActionCount{
			{Action: 1, Count: a.number()},
		}, nil, &jobpolicyv1.PodFailureActionCount{Action: 99, Count: 1})}
	}
	return d
}

// answerDrawer draws values. The value with the number odd is out of range.
type answerDrawer struct {
	*rapid.T
	drawn, odd int
}

func draw[T any](a *answerDrawer, sound []T, odd ...T) T {
	a.drawn++
	if a.drawn == a.odd {
		return rapid.SampledFrom(odd).Draw(a.T, "odd")
	}
	return rapid.SampledFrom(sound).Draw(a.T, "sound")
}

func (a *answerDrawer) number() int32 {
	return draw(a, []int32{1, 2, 3}, 0, 5, 6, -1, math.MinInt32, math.MaxInt32-1, math.MaxInt32)
}

func (a *answerDrawer) text() string {
	return draw(a, []string{"", "x"}, "\xff", strings.Repeat("x", 40000))
}

func (a *answerDrawer) time() *timestamppb.Timestamp {
	return draw(a, []*timestamppb.Timestamp{nil, {}, timestamppb.Now()}, &timestamppb.Timestamp{Seconds: math.MinInt64}, &timestamppb.Timestamp{Seconds: math.MaxInt64, Nanos: -1})
}

func (a *answerDrawer) uid(n int) []byte {
	known, err := wire.UIDBytes(testUID(n))
	must(err)
	other, err := wire.UIDBytes(testUID(99))
	must(err)
	return draw(a, [][]byte{known}, other, nil, known[1:])
}

// set draws a set of n indexes.
func (a *answerDrawer) set(n int32) *jobpolicyv1.IndexSet {
	whole, parts := ranges(0, n-1), ranges()
	for ix := range n {
		parts.Ranges = append(parts.Ranges, &jobpolicyv1.IndexRange{First: ix, Last: ix})
	}
	return draw(a, []*jobpolicyv1.IndexSet{whole, parts}, nil, ranges(-n, -1), ranges(0, math.MaxInt32), ranges(0, n, n-1, n-2),
		ranges(2, 2, 1, 1), ranges(math.MinInt32, math.MaxInt32), &jobpolicyv1.IndexSet{Ranges: []*jobpolicyv1.IndexRange{nil, nil}})
}

func (a *answerDrawer) create(job *batchv1.Job) *jobpolicyv1.CreatePods {
	n := rapid.Int32Range(1, 3).Draw(a.T, "pods")
	d := &jobpolicyv1.CreatePods{Count: draw(a, []int32{n}, a.number())}
	if wire.Indexed(job) {
		d.Indexes = a.set(n)
	}
	if job.Spec.BackoffLimitPerIndex != nil {
		d.FailureCounts = []*jobpolicyv1.IndexFailureCount{draw(a, []*jobpolicyv1.IndexFailureCount{
			{Index: 0, Failures: a.number(), IgnoredFailures: a.number()},
		}, nil, &jobpolicyv1.IndexFailureCount{Index: -1})}
	}
	return d
}

func (a *answerDrawer) status() *jobpolicyv1.JobStatus {
	ready, terminating := a.number(), a.number()
	return &jobpolicyv1.JobStatus{
		StartTime: a.time(), CompletionTime: a.time(), Active: a.number(), Ready: &ready, Terminating: &terminating,
		Succeeded: a.number(), Failed: a.number(), CompletedIndexes: a.set(2), FailedIndexes: a.set(1),
		Uncounted: &jobpolicyv1.UncountedTerminatedPods{Succeeded: [][]byte{a.uid(2)}, Failed: [][]byte{a.uid(3)}},
		Conditions: []*jobpolicyv1.JobCondition{draw(a, []*jobpolicyv1.JobCondition{{
			Type: draw(a, []string{"Failed", "Suspended", "Complete"}, "", "Foo", "\xff"), Status: jobpolicyv1.ConditionStatus(a.number()),
			Reason: a.text(), Message: a.text(), LastProbeTime: a.time(), LastTransitionTime: a.time(),
		}}, nil)},
	}
}
