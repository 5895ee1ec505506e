package world

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/explain"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

var explainFlag = flag.Uint64("world.explain", 60, "number of worlds in which explain is held against what happens next")

// TestExplainNamesWhatHappensNext plays worlds in which nothing fails. Whenever a Job
// has been at rest for a while, it asks explain what comes next, with what a user can
// read at that time, and compares the answer with what the executors do next.
//
// explain cannot know everything that the executor has seen. So a creation may come earlier
// than said, or up to the longest retry delay later, if explain says so itself. It may also
// come later if somebody took a pod away from the Job by its labels or owner. A CronJob may
// delete its runs. A deadline that explain names among the ends may end before a creation that
// is hindered, and a status that only has other counts may come before what is told: Next leaves it out.
// Explain reads no quotas: a creation that a quota refuses for the first time has come all the same,
// if it was tried when it was told.
func TestExplainNamesWhatHappensNext(t *testing.T) {
	prepare()
	tally, crons, seen := map[string]int{}, map[string]int{}, map[string]int{}
	for seed := *fromFlag; seed < *fromFlag+*explainFlag; seed++ {
		p := draw(seed, drawOptions{faultless: true})
		e := play(t, p, false)
		r := newReader(p)
		r.read(e.journal)
		for _, b := range r.wrong {
			t.Errorf("world %d: %s", seed, b)
		}
		if len(r.wrong) > 0 && *seedFlag == seed {
			t.Logf("%s\n%s", p, e.journal.story())
		}
		addTo(tally, r.tally)
		addTo(seen, r.seen)
		c := newCronReader(p)
		c.read(e.journal)
		addTo(seen, c.seen)
		for _, b := range c.wrong {
			t.Errorf("world %d: %s", seed, b)
		}
		addTo(crons, c.tally)
	}
	t.Logf("rests by state and what came next: %v; of CronJobs: %v", tally, crons)
	for _, state := range []explain.State{
		explain.BackingOff, explain.Running, explain.Complete, explain.Failed, explain.Suspended, explain.Paused, explain.Blocked, explain.Waiting,
		explain.Failing, explain.Deleting, explain.Starting,
	} {
		if n := tally[string(state)]; n == 0 && *explainFlag >= 60 {
			t.Errorf("no Job was at rest in the state %s", state)
		}
	}
	t.Logf("facts: %v", seen)
	for _, fact := range []string{factDeleting, factReason, factRestarts, factByHand} {
		if seen[fact] == 0 && *explainFlag >= 60 {
			t.Errorf("no report was asked for when %s", fact)
		}
	}
	if crons["run as told"] == 0 && *explainFlag >= 60 {
		t.Error("no run of a CronJob was compared")
	}
}

func addTo(sum, counts map[string]int) {
	for what, n := range counts {
		sum[what] += n
	}
}

// recovery is how long after the last fault a world may still put right what faults did.
const recovery = 5 * time.Minute

// TestExplainAfterFaults plays worlds in which everything fails for a while: requests are
// lost, executors are killed, watches lag, quotas are full. It asks explain once that is
// over.
func TestExplainAfterFaults(t *testing.T) {
	prepare()
	tally, seen := map[string]int{}, map[string]int{}
	for seed := *fromFlag; seed < *fromFlag+5**explainFlag; seed++ {
		p := draw(seed, drawOptions{})
		e := play(t, p, false)
		r := newReader(p)
		r.from = p.begins.Add(p.calm + recovery)
		if p.executor.standDown {
			r.from = r.from.Add(executor.SecondControllerQuiet) // Until then they may leave Jobs alone.
		}
		r.read(e.journal)
		for _, b := range r.wrong {
			t.Errorf("world %d: %s", seed, b)
		}
		addTo(tally, r.tally)
		addTo(seen, r.seen)
	}
	t.Logf("rests by state and what came next: %v; facts: %v", tally, seen)
	for _, state := range []explain.State{
		explain.BackingOff, explain.Running, explain.Complete, explain.Failed, explain.Suspended, explain.Paused, explain.Waiting,
	} {
		if n := tally[string(state)]; n == 0 && *explainFlag >= 60 {
			t.Errorf("no Job was at rest in the state %s", state)
		}
	}
}

// TestExplainWhileWritesAreRefused plays worlds in which nothing fails, but the API server refuses one kind
// of write of some objects for the whole time. The executors tell of that by events, and explain must not
// say "now" of it.
func TestExplainWhileWritesAreRefused(t *testing.T) {
	prepare()
	refused, tally := map[string]int{}, map[string]int{}
	for seed := *fromFlag; seed < *fromFlag+2**explainFlag; seed++ {
		p := draw(seed, drawOptions{faultless: true})
		// Explain does not know these limits: pods that are not released leave no room for others.
		p.executor.maxUncounted, p.executor.maxRows, p.executor.leastRows = 0, 0, 0
		guard := []fault{
			{verb: "PATCH", resource: "pods"}, {verb: "PUT", resource: "jobs"}, {verb: "DELETE", resource: "jobs"}, {verb: "DELETE", resource: "pods"},
		}[seed%4]
		guard.kind, guard.percent, guard.to = guarded, 60, p.calm
		p.faults = append([]*fault{&guard}, p.faults...)
		r := newReader(p)
		r.read(play(t, p, false).journal)
		for _, b := range r.wrong {
			t.Errorf("world %d, %s %s refused: %s", seed, guard.verb, guard.resource, b)
		}
		for what, n := range r.tally {
			tally[what] += n
		}
		for kind, n := range r.refused {
			refused[string(kind)] += n
		}
	}
	t.Logf("rests by state and what came next: %v; refused at a rest: %v", tally, refused)
	for _, kind := range []writes.Kind{writes.ReleasePod, writes.UpdateStatus, writes.DeleteJob, writes.DeletePod} {
		if refused[string(kind)] == 0 && *explainFlag >= 60 {
			t.Errorf("explain told of no Job that %s is refused", kind)
		}
	}
}

// A reader reads a journal, and asks explain at each rest of a Job.
type reader struct {
	plan  *plan
	quiet time.Duration

	jobs   map[types.UID]*restingJob
	pods   map[types.UID]*corev1.Pod
	nodes  map[string]*corev1.Node
	events map[types.UID]map[types.NamespacedName]corev1.Event

	wrong []string
	tally map[string]int
	seen  map[string]int // facts that a report must not contradict
	// refused counts the refusals that explain told of, by kind of write.
	refused map[writes.Kind]int

	// from is when explain is asked for the first time.
	from time.Time
	// behind is how far the executors' clocks were behind the API server's at most. An executor
	// that planned with such a clock acts that much later, even if the clock is right by then:
	// what it plans is elapsed time.
	behind time.Duration
}

// A restingJob is a Job, and what explain said of it when it came to rest.
type restingJob struct {
	job     *batchv1.Job
	touched time.Time // When the Job or one of its pods was written last.
	// meddled: somebody took one of its pods away by labels or owner, so that the executor
	// has seen failures that neither pods nor the status show.
	meddled bool
	said    *explain.Report
	saidAt  time.Time
}

func newReader(p *plan) *reader {
	var behind time.Duration
	for _, s := range p.steps {
		if s.verb == "set the clock" {
			behind += max(0, -s.d)
		}
	}
	return &reader{
		behind: behind,
		plan:   p, quiet: p.calmLag(), jobs: map[types.UID]*restingJob{}, pods: map[types.UID]*corev1.Pod{}, nodes: map[string]*corev1.Node{},
		events: map[types.UID]map[types.NamespacedName]corev1.Event{}, tally: map[string]int{}, seen: map[string]int{}, refused: map[writes.Kind]int{},
	}
}

func (r *reader) read(j *journal) {
	for i := range j.lines {
		if w := j.lines[i].write; w != nil {
			r.explainUntil(w.Time)
			r.compare(w)
			r.note(w)
		}
	}
	end := j.lines[len(j.lines)-1].at.Add(r.quiet)
	r.explainUntil(end)
	for _, uid := range sortedUIDs(r.jobs) {
		r.passed(r.jobs[uid], end)
	}
}

// explainUntil explains the Jobs that have been at rest for a while by then.
func (r *reader) explainUntil(now time.Time) {
	for _, uid := range sortedUIDs(r.jobs) {
		j := r.jobs[uid]
		if at := latest(j.touched.Add(r.quiet), r.from); j.said == nil && at.Before(now) {
			r.explain(j, at)
		}
	}
}

// explain asks explain what it would tell a user.
func (r *reader) explain(j *restingJob, now time.Time) {
	f := explain.Facts{Job: r.recordedWrites(j.job), Now: now, PodEvents: map[string][]corev1.Event{}, Nodes: map[string]jobpolicyv1.NodeState{}}
	for _, uid := range sortedUIDs(r.pods) {
		if p := r.pods[uid]; controllerUID(p) == j.job.UID && selects(j.job, p) {
			f.Pods = append(f.Pods, *p)
			f.Nodes[p.Spec.NodeName] = wire.NodeState(r.nodes[p.Spec.NodeName])
		}
	}
	for _, e := range r.events[j.job.UID] {
		f.Events = append(f.Events, e)
	}
	report, err := explain.Explain(f, engine.DecideJob)
	if err != nil {
		r.wrong = append(r.wrong, fmt.Sprintf("%s of %s: %v", now, j.job.Name, err))
		return
	}
	j.said, j.saidAt = report, now
	for _, text := range contradictions(f, report, r.seen) {
		r.wrongly(j, now, "%s", text)
	}
	r.waits(j)
	r.tally[string(report.State)]++
	for _, refusal := range report.Refused {
		r.refused[refusal.Write]++
	}
}

// waits checks that the first wait that ends at a known time ends when the next thing happens. At the end of that
// for a pod that is being deleted, only counts of the status may change, which Next leaves out if anything else follows, such
// as a pod after the retry delay (world 1433); or nothing, if its node is Ready.
func (r *reader) waits(j *restingJob) {
	var first *time.Time
	var deleted []time.Time
	certain := false // Something happens then.
	for _, w := range j.said.Waits {
		switch {
		case w.Until == nil:
		case strings.Contains(w.For, ", which is being deleted, counts as "):
			deleted = append(deleted, *w.Until)
			certain = certain || !strings.HasSuffix(w.For, "if its node is not Ready")
		case first == nil || w.Until.Before(*first):
			first, certain = w.Until, true
		}
	}
	switch n := j.said.Next; {
	case n == nil && certain:
		r.wrongly(j, j.saidAt, "a wait ends at %s or %s, and nothing comes next", first, deleted)
	case n == nil || n.At == nil || first == nil || n.At.Equal(*first):
	case n.At.Before(*first) && slices.ContainsFunc(deleted, func(at time.Time) bool { return !at.After(*n.At) }):
	default:
		r.wrongly(j, j.saidAt, "a wait ends at %s, and the next thing is %v", first, n)
	}
}

// selects reports whether a Job's selector takes in a pod.
func selects(job *batchv1.Job, p *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(p.Labels))
}

func (r *reader) wrongly(j *restingJob, now time.Time, format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf("job %s, at rest at %s, %s later: %s\n    %s: %s", j.job.Name, stamp(j.saidAt.Sub(r.plan.begins)), now.Sub(j.saidAt),
		fmt.Sprintf(format, args...), j.said.State, j.said.Headline))
}

// recordedWrites is the Job with what an API server records of the executor's writes of its status, which that of
// the worlds does not.
func (r *reader) recordedWrites(job *batchv1.Job) *batchv1.Job {
	if !r.managed(job) || job.Status.StartTime == nil && len(job.Status.Conditions) == 0 {
		return job
	}
	out := *job
	out.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "jobpolicy-executor", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status"}}
	return &out
}

// managed reports whether the executors act on the Job.
func (r *reader) managed(job *batchv1.Job) bool {
	return valueOr(job.Spec.ManagedBy, batchv1.JobControllerName) == batchv1.JobControllerName && r.plan.executor.replace || valueOr(job.Spec.ManagedBy, "") == executor.ManagedBy
}

// note remembers a write.
func (r *reader) note(w *apiserver.Write) {
	switch w.Resource {
	case "jobs":
		if job, ok := w.New.(*batchv1.Job); ok {
			if r.jobs[job.UID] == nil {
				r.jobs[job.UID] = &restingJob{}
			}
			r.jobs[job.UID].job = job
		} else {
			delete(r.jobs, w.UID)
		}
	case "nodes":
		keep(r.nodes, w.Key.Name, *w)
		for _, j := range r.jobs {
			if explain.ReadsNodes(j.job) {
				j.touched, j.said = w.Time, nil
			}
		}
		return
	case "pods":
		keep(r.pods, w.UID, *w)
	case "events":
		if e, ok := w.New.(*corev1.Event); ok {
			on := e.InvolvedObject.UID
			if r.events[on] == nil {
				r.events[on] = map[types.NamespacedName]corev1.Event{}
			}
			r.events[on][w.Key] = *e
			if j := r.jobs[on]; j != nil && e.Reason == "FailedCreate" && isExecutor(w.By) {
				r.tried(j, w)
			}
		}
		return
	}
	for _, uid := range r.concerned(w) {
		if j := r.jobs[uid]; j != nil {
			if p, ok := w.New.(*corev1.Pod); ok && (controllerUID(p) != uid || !selects(j.job, p)) {
				j.meddled = true
			}
			j.touched, j.said = w.Time, nil
		}
	}
}

// concerned are the Jobs that a write of a Job or pod is about. A pod without owner
// concerns each Job that may adopt it.
func (r *reader) concerned(w *apiserver.Write) []types.UID {
	if w.Resource == "jobs" {
		return []types.UID{w.UID}
	}
	var uids []types.UID
	for _, uid := range sortedUIDs(r.jobs) {
		for _, obj := range []any{w.Old, w.New} {
			p, ok := obj.(*corev1.Pod)
			if !ok || slices.Contains(uids, uid) {
				continue
			}
			owner, job := controllerUID(p), r.jobs[uid].job
			if owner == uid || owner == "" && p.Namespace == job.Namespace && selects(job, p) {
				uids = append(uids, uid)
			}
		}
	}
	return uids
}
