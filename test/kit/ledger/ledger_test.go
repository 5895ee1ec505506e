package ledger

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// jobAt is a version of a Job.
func jobAt(rv int, changes ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "j", ResourceVersion: strconv.Itoa(rv)}}
	for _, change := range changes {
		change(j)
	}
	return j
}

// podAtVersion is a version of a pod of that Job.
func podAtVersion(rv int, phase corev1.PodPhase, finalizers ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			UID: "p", Name: "p", ResourceVersion: strconv.Itoa(rv), Finalizers: finalizers,
			OwnerReferences: []metav1.OwnerReference{{UID: "j", Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func recorded(lists batchv1.UncountedTerminatedPods) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Status.UncountedTerminatedPods = &lists }
}

func declared(types ...batchv1.JobConditionType) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		for _, c := range types {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue})
		}
	}
}

func ofIndexes(completed, failed string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.CompletionMode = new(batchv1.IndexedCompletion)
		j.Status.CompletedIndexes, j.Status.FailedIndexes = completed, &failed
	}
}

func asksFor(completions int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.Completions = &completions }
}

func succeededOne(j *batchv1.Job) { j.Status.Succeeded = 1 }

// The checks of histories must find what they are made for.
func TestBrokenHistoriesAreNoticed(t *testing.T) {
	t.Parallel()
	success := recorded(batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"p"}})
	failure := recorded(batchv1.UncountedTerminatedPods{Failed: []types.UID{"p"}})
	both := recorded(batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"p"}, Failed: []types.UID{"p"}})
	moreReady := func(j *batchv1.Job) { j.Status.Ready = new(int32(1)) }
	holding := podAtVersion(5, corev1.PodSucceeded, batchv1.JobTrackingFinalizer)
	type brokenCase struct {
		jobs []*batchv1.Job
		pod  []*corev1.Pod
		gone uint64
		want Kind
	}
	cases := map[string]brokenCase{
		"a counter falls":               {jobs: []*batchv1.Job{jobAt(2, success), jobAt(10, succeededOne), jobAt(11)}, want: WrongSucceeded},
		"failed grows by nothing":       {jobs: []*batchv1.Job{jobAt(1), jobAt(2, func(j *batchv1.Job) { j.Status.Failed = 1 })}, want: WrongFailed},
		"more ready than active":        {jobs: []*batchv1.Job{jobAt(1, moreReady)}, want: MoreReady},
		"counted without record":        {jobs: []*batchv1.Job{jobAt(1), jobAt(2, succeededOne)}, want: WrongSucceeded},
		"recorded in both lists":        {jobs: []*batchv1.Job{jobAt(1, both)}, want: RecordedTwice},
		"changes its list":              {jobs: []*batchv1.Job{jobAt(1, success), jobAt(2, failure)}, want: RecordedTwice},
		"recorded after it was counted": {jobs: []*batchv1.Job{jobAt(1, success), jobAt(2, succeededOne), jobAt(3, succeededOne, success)}, want: RecordedAgain},
		"counted with its finalizer":    {jobs: []*batchv1.Job{jobAt(6, success), jobAt(7, succeededOne)}, pod: []*corev1.Pod{holding}, want: CountedHolder},
		"released without record":       {jobs: []*batchv1.Job{jobAt(1)}, pod: []*corev1.Pod{holding, podAtVersion(6, corev1.PodSucceeded)}, want: ReleasedTooSoon},
		"gone without record":           {jobs: []*batchv1.Job{jobAt(1)}, pod: []*corev1.Pod{holding}, gone: 6, want: ReleasedTooSoon},
		"a condition goes away":         {jobs: []*batchv1.Job{jobAt(1, declared(batchv1.JobFailureTarget)), jobAt(2)}, want: ConditionGone},
		"no pod has run any more": {jobs: []*batchv1.Job{jobAt(1, declared(started)), jobAt(2, func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: started, Status: corev1.ConditionFalse}}
		})}, want: ConditionGone},
		"no interim condition":         {jobs: []*batchv1.Job{jobAt(1), jobAt(2, declared(batchv1.JobFailed, batchv1.JobFailureTarget))}, want: NoInterim},
		"finished with a holder":       {jobs: []*batchv1.Job{jobAt(6, declared(batchv1.JobComplete))}, pod: []*corev1.Pod{holding}, want: EndBeforePod},
		"finished with a runner":       {jobs: []*batchv1.Job{jobAt(6, declared(batchv1.JobComplete))}, pod: []*corev1.Pod{podAtVersion(5, corev1.PodRunning)}, want: EndBeforePod},
		"leaves its list uncounted":    {jobs: []*batchv1.Job{jobAt(1, failure), jobAt(2)}, want: WrongFailed},
		"finished with an active pod":  {jobs: []*batchv1.Job{jobAt(1, func(j *batchv1.Job) { j.Status.Active = 1 }, declared(batchv1.JobComplete))}, want: EndWithPods},
		"fails after it had succeeded": {jobs: []*batchv1.Job{jobAt(1, declared(batchv1.JobSuccessCriteriaMet)), jobAt(2, declared(batchv1.JobSuccessCriteriaMet, batchv1.JobFailed))}, want: BothEnds},
		"both ends":                    {jobs: []*batchv1.Job{jobAt(1, declared(batchv1.JobFailureTarget)), jobAt(2, declared(batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet))}, want: BothEnds},
		"finished with a recorded pod": {jobs: []*batchv1.Job{jobAt(1, success), jobAt(2, success, declared(batchv1.JobComplete))}, want: EndWithPods},
		"twice in one list":            {jobs: []*batchv1.Job{jobAt(1, recorded(batchv1.UncountedTerminatedPods{Failed: []types.UID{"p", "p"}}))}, want: RecordedTwice},
		"more than its indexes":        {jobs: []*batchv1.Job{jobAt(1, ofIndexes("0-1", ""), succeededOne)}, want: WrongIndexes},
		"an index in both sets":        {jobs: []*batchv1.Job{jobAt(1, ofIndexes("0", "0,2"), succeededOne)}, want: IndexTwice},
		"an index that is asked for goes away": {jobs: []*batchv1.Job{
			jobAt(1, ofIndexes("0", ""), succeededOne, asksFor(1)), jobAt(2, ofIndexes("", ""), asksFor(1)),
		}, want: IndexGone},
		"a condition that no step is about":     {jobs: []*batchv1.Job{jobAt(1), jobAt(2, declared("Odd"))}, want: NoStep},
		"a completion time before the end":      {jobs: []*batchv1.Job{jobAt(1), jobAt(2, func(j *batchv1.Job) { j.Status.CompletionTime = new(metav1.Now()) })}, want: NoStep},
		"a completed index without Indexed":     {jobs: []*batchv1.Job{jobAt(1), jobAt(2, func(j *batchv1.Job) { j.Status.CompletedIndexes = "0" })}, want: NoStep},
		"a counter that nothing was counted in": {jobs: []*batchv1.Job{jobAt(1), jobAt(2, succeededOne)}, want: NoStep},
	}
	for _, r := range slices.Concat(ofStatus, ofPod[:1]) {
		for _, g := range r.guards {
			if !slices.ContainsFunc(slices.Collect(maps.Values(cases)), func(c brokenCase) bool { return c.want == g.kind }) {
				t.Errorf("no case breaks this guard of %s: %s", r.step, g.kind)
			}
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := &History{jobs: map[types.UID]*jobLife{"j": {versions: tc.jobs}}, pods: map[types.UID]*podLife{}}
			if tc.pod != nil {
				h.pods["p"] = &podLife{life[*corev1.Pod]{versions: tc.pod, gone: tc.gone}}
			}
			found := h.Problems()
			if !slices.ContainsFunc(found, func(problem string) bool { return strings.Contains(problem, string(tc.want)) }) {
				t.Errorf("want a problem that says %q; found %q", tc.want, found)
			}
		})
	}
}

// A pod that succeeded counts as failed only if it was recorded so when the Job failed: the controller
// had not seen its end.
func TestAPodThatEndsWhileItsJobFails(t *testing.T) {
	failure, success := recorded(batchv1.UncountedTerminatedPods{Failed: []types.UID{"p"}}), recorded(batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"p"}})
	failing, end := declared(batchv1.JobFailureTarget), declared(batchv1.JobFailureTarget, batchv1.JobFailed)
	for name, tc := range map[string]struct {
		jobs []*batchv1.Job
		want string
	}{
		"recorded when the Job failed":                  {jobs: []*batchv1.Job{jobAt(1), jobAt(5, failing, failure), jobAt(8, failing)}},
		"recorded as failed before the Job failed":      {jobs: []*batchv1.Job{jobAt(1), jobAt(3, failure), jobAt(5, failing, failure)}, want: "1 pods succeeded"},
		"recorded as succeeded before the Job failed":   {jobs: []*batchv1.Job{jobAt(1), jobAt(4, success), jobAt(5, failing, failure)}, want: "1 pods succeeded"},
		"counted as failed, and never recorded as such": {jobs: []*batchv1.Job{jobAt(1), jobAt(5, failing)}, want: "1 pods succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobAt(9, end, func(j *batchv1.Job) { j.Status.Failed = 1 })
			h := &History{jobs: map[types.UID]*jobLife{"j": {versions: append(tc.jobs, job)}}, pods: map[types.UID]*podLife{
				"p": {life[*corev1.Pod]{versions: []*corev1.Pod{podAtVersion(2, corev1.PodRunning), podAtVersion(4, corev1.PodSucceeded)}}},
			}}
			if found := strings.Join(h.Miscounts(job), "; "); tc.want == "" && found != "" || !strings.Contains(found, tc.want) {
				t.Errorf("found %q, want %q", found, tc.want)
			}
		})
	}
}

// aLife is what a test lets the history see of a pod: its phases one after the other, then its deletion.
type aLife struct {
	index         string
	phases        []corev1.PodPhase
	held          bool
	stopped, gone bool
}

var (
	ran    = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded}
	failed = []corev1.PodPhase{corev1.PodRunning, corev1.PodFailed}
	runs   = []corev1.PodPhase{corev1.PodRunning}
)

// seen is a history of pods that live one after the other, or all at the same time.
func seen(lives []aLife, together bool) *History {
	h := &History{jobs: map[types.UID]*jobLife{}, pods: map[types.UID]*podLife{}}
	for n, l := range lives {
		steps := len(l.phases)
		show := func(phase corev1.PodPhase, step int, event watch.EventType, deleted bool) {
			rv := 100*n + step
			if together {
				rv = 100*step + n
			}
			pod := podAtVersion(rv+1, phase)
			pod.UID, pod.Annotations = types.UID(strconv.Itoa(n)), map[string]string{batchv1.JobCompletionIndexAnnotation: l.index}
			if l.held {
				pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
			}
			if deleted {
				pod.DeletionTimestamp = new(metav1.Now())
			}
			h.see(watch.Event{Type: event, Object: pod})
		}
		for step, phase := range l.phases {
			show(phase, step, watch.Modified, false)
		}
		if l.stopped {
			show(l.phases[steps-1], steps, watch.Modified, true)
		}
		if l.gone {
			show(l.phases[steps-1], steps+1, watch.Deleted, l.stopped)
		}
	}
	return h
}

// The counts of a Job of two completions are held against what became of its pods.
func TestCountsAreHeldAgainstPods(t *testing.T) {
	cases := map[string]struct {
		indexed, together bool
		succeeded, failed int32
		completed         string
		lives             []aLife
		want              string // part of what is found; empty: nothing
	}{
		"all is well":                     {succeeded: 2, failed: 1, lives: []aLife{{phases: ran}, {phases: failed}, {phases: ran, gone: true}}},
		"all is well with indexes":        {indexed: true, succeeded: 2, completed: "0-1", lives: []aLife{{index: "0", phases: ran}, {index: "1", phases: ran}}},
		"a pod counted twice":             {succeeded: 2, lives: []aLife{{phases: ran}}, want: "1 pods succeeded"},
		"a pod that was lost":             {succeeded: 2, lives: []aLife{{phases: ran}, {phases: failed}, {phases: ran}}, want: "1 failed"},
		"a pod too many":                  {succeeded: 3, lives: []aLife{{phases: ran}, {phases: ran}, {phases: ran}}, want: "1 pods were active, and 2 had succeeded"},
		"a pod too many that was stopped": {succeeded: 2, failed: 1, lives: []aLife{{phases: ran}, {phases: ran}, {phases: runs, stopped: true, gone: true}}, want: "1 stopped"},
		"a pod that vanished":             {succeeded: 2, lives: []aLife{{phases: ran}, {phases: ran}, {phases: runs, gone: true}}, want: "1 stopped"},
		"an index that ran twice":         {indexed: true, succeeded: 1, completed: "0", lives: []aLife{{index: "0", phases: ran}, {index: "0", phases: ran}}, want: "or after it succeeded"},
		"an index that is not noted":      {indexed: true, succeeded: 1, lives: []aLife{{index: "0", phases: ran}}, want: "index 0 succeeded"},
		"a finalizer that stays":          {succeeded: 1, lives: []aLife{{phases: ran, held: true}}, want: "p is held"},
		"more at once than may be":        {together: true, succeeded: 2, lives: []aLife{{phases: ran}, {phases: ran}}, want: "2 pods were active"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			job := jobAt(1000, declared(batchv1.JobComplete))
			job.Spec.Parallelism, job.Spec.Completions = new(int32(1)), new(int32(2))
			if tc.indexed {
				job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
			}
			job.Status.Succeeded, job.Status.Failed, job.Status.CompletedIndexes = tc.succeeded, tc.failed, tc.completed
			h := seen(tc.lives, tc.together)
			found := append(h.Miscounts(job), h.TooMany(job)...)
			if pod := h.Unreleased(job.UID); pod != "" {
				found = append(found, pod+" is held")
			}
			if n := h.Stopped(job.UID); n > 0 {
				found = append(found, strconv.Itoa(n)+" stopped")
			}
			if all := strings.Join(found, "; "); tc.want == "" && all != "" || !strings.Contains(all, tc.want) {
				t.Errorf("found %q, want %q", all, tc.want)
			}
		})
	}
}
