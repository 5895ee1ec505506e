package simulate

import (
	"container/heap"
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

// maxDecisions bounds the decisions at one moment. Normally the engine has nothing left
// to do long before; if a defect makes it go on forever, the play ends with an error.
const maxDecisions = 10_000

// player is the state of a play.
type player struct {
	sc     Scenario
	now    time.Duration
	events agenda
	// planned counts events, and loops those of the agenda in which containers only restart.
	planned, loops int

	job    *jobpolicyv1.JobRef
	spec   *jobpolicyv1.JobSpec
	status *jobpolicyv1.JobStatus

	// pods are the pods that run or hold the finalizer, in the order of creation.
	pods    []*simPod
	counter *podfacts.Counter[*simPod]
	tracked map[string]bool
	// attempts counts the pods of an index, runs the runs of a container of an index (or of
	// a pod, if there are no indexes), restarts all restarts of containers.
	attempts map[int32]int
	runs     map[runKey]int
	restarts int
	quota    refusals

	result  *Result
	current []*Entry
	waits   string
	gone    bool
	// ended is when a condition last changed. At the end of the play that is when the
	// Job finished.
	ended time.Duration
}

// A runKey is a simPod.key and the name of a container.
type runKey struct {
	pod       int32
	container string
}

// Play plays a scenario to its end. The error names the field of the scenario that is
// wrong. How a Job ends is never an error.
func Play(sc Scenario) (*Result, error) {
	sc, err := sc.completed()
	if err != nil {
		return nil, err
	}
	p := newPlayer(sc)
	for {
		next, err := p.settle()
		if err != nil {
			return nil, err
		}
		if p.gone || (p.finished() && next == nil) {
			break
		}
		at, ok := p.nextMoment(next)
		if !ok {
			break
		}
		p.advance(at)
	}
	return p.finish(), nil
}

func newPlayer(sc Scenario) *player {
	p := &player{
		sc: sc, job: proto.CloneOf(sc.Job), spec: proto.CloneOf(sc.Spec),
		status:  &jobpolicyv1.JobStatus{},
		tracked: map[string]bool{}, attempts: map[int32]int{}, runs: map[runKey]int{}, result: &Result{},
	}
	p.counter = podfacts.New(podfacts.PolicyOf(p.spec), p.facts)
	if p.spec.GetOptions().GetNextTryResources() != nil {
		p.counter.KeepTries(func(func(*podfacts.Counted[*simPod]) bool) {})
	}
	if len(p.job.GetUid()) == 0 {
		p.job.Uid = podUID(-2)
	}
	for _, c := range sc.Changes {
		p.plan(c.At, func() { p.change(c) })
	}
	if sc.NodeLost > 0 {
		p.plan(sc.NodeLost, p.loseNode)
	}
	if sc.NodeBack > 0 {
		p.plan(sc.NodeBack, p.nodeBack)
	}
	return p
}

// never is later than every moment of a play.
const never = time.Duration(math.MaxInt64)

// plan schedules an event at a time, and in schedules it after a delay: never, if the
// time is beyond what a Duration holds.
func (p *player) plan(at time.Duration, do func()) {
	p.planned++
	heap.Push(&p.events, event{at, p.planned, do})
}

func (p *player) in(delay time.Duration, do func()) {
	at := never
	if delay < never-p.now {
		at = p.now + delay
	}
	p.plan(at, do)
}

// inLoop is onNodeIn for an event of a container.
func (p *player) inLoop(pod *simPod, c *simContainer, delay time.Duration, do func()) {
	if !c.loops {
		p.onNodeIn(pod, delay, do)
		return
	}
	p.loops++
	p.in(delay, func() { p.loops--; pod.onNode(do) })
}

// loopText says what keeps the Job open when containers restart, and nothing else will ever
// happen. A sidecar that restarts does not keep its pod from ending.
func (p *player) loopText() string {
	for _, pod := range p.pods {
		for _, c := range pod.containers {
			if c.loops && !c.sidecar() && pod.runs() {
				return fmt.Sprintf("container %s is restarted for ever: restarts do not count toward backoffLimit when the pod's restart policy is Never, "+
					"and neither the Job nor its pods have a deadline", c.Name)
			}
		}
	}
	return nothingHappens
}

const nothingHappens = "nothing more happens"

// nextMoment is the time of the next event. ok is false if there is none within the
// scenario's span.
func (p *player) nextMoment(requeue *time.Duration) (at time.Duration, ok bool) {
	if len(p.events) > 0 {
		at, ok = p.events[0].at, true
	}
	if requeue != nil && (!ok || *requeue < at) {
		at, ok = *requeue, true
	}
	switch {
	case p.tooManyPods():
		p.result.Stopped = fmt.Sprintf("more than %d pods were created", p.sc.MaxPods)
		return 0, false
	case p.restarts > p.sc.MaxPods:
		p.result.Stopped = fmt.Sprintf("containers were restarted more than %d times", p.sc.MaxPods)
		return 0, false
	case p.quota.tries > p.sc.MaxPods:
		p.result.Stopped = fmt.Sprintf("the quota refused pods more than %d times", p.sc.MaxPods)
		return 0, false
	case requeue == nil && p.loops == len(p.events) && p.loops > 0:
		p.result.Stopped = p.loopText()
		return 0, false
	case !ok:
		p.result.Stopped = nothingHappens
	case at > p.sc.Span || at == never:
		p.result.Stopped = fmt.Sprintf("the play may last %s", Clock(p.sc.Span))
		return 0, false
	}
	return at, ok
}

func (p *player) tooManyPods() bool { return len(p.result.Pods) > p.sc.MaxPods }

// advance moves to a moment and runs all events that are due.
func (p *player) advance(at time.Duration) {
	p.flush()
	p.now = at
	for len(p.events) > 0 && p.events[0].at <= at {
		heap.Pop(&p.events).(event).do()
	}
}

// settle asks for decisions and carries them out until nothing is left to do at this
// moment. It returns the requeue time of the last decision.
func (p *player) settle() (*time.Duration, error) {
	moment := &Moment{At: p.now}
	defer p.keep(moment)
	for range maxDecisions {
		resp, err := p.decide()
		if err != nil {
			return nil, err
		}
		p.result.Decisions++
		moment.Explanations = append(moment.Explanations, resp.GetExplanation())
		p.carryOut(resp)
		if p.tooManyPods() {
			return nil, nil // nextMoment stops the play.
		}
		if p.gone || resp.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_APPLY {
			p.sayWaits(resp.GetExplanation().GetWaits())
			p.result.Explanation = resp.GetExplanation()
			if resp.GetRequeueTime() == nil {
				return nil, nil
			}
			at := resp.GetRequeueTime().AsTime().Sub(p.sc.Start)
			return &at, nil
		}
	}
	return nil, fmt.Errorf("after %s the engine still asks for changes in decision %d", Clock(p.now), maxDecisions)
}

// keep adds a moment to the result, if the scenario asks for them.
func (p *player) keep(m *Moment) {
	if p.sc.Moments {
		m.Status, m.Spec = p.status, proto.CloneOf(p.spec)
		p.result.Moments = append(p.result.Moments, m)
	}
}

func (p *player) decide() (*jobpolicyv1.DecideJobResponse, error) {
	resp, err := engine.DecideJob(p.request(false))
	if err == nil && resp.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
		resp, err = engine.DecideJob(p.request(true))
	}
	return resp, err
}

// carryOut does what a decision asks for, in the contract's order.
func (p *player) carryOut(resp *jobpolicyv1.DecideJobResponse) {
	if p.refused(resp.GetCreate()) {
		return // What comes after it in the order is not done either.
	}
	p.create(resp.GetCreate())
	byUID := p.podsByUID(len(resp.GetDelete()) + len(resp.GetEnd()) + len(resp.GetRelease()))
	for _, d := range resp.GetDelete() {
		if pod := byUID[string(d.GetUid())]; pod != nil {
			p.remove(pod, d.GetReleaseFirst(), deleteReasons[d.GetReason()])
		}
	}
	for _, e := range resp.GetEnd() {
		if pod := byUID[string(e.GetUid())]; pod != nil {
			p.tellToEnd(pod, e)
		}
	}
	if next := resp.GetStatus(); next != nil {
		p.sayConditions(next)
		p.status = next
		p.result.StatusWrites++
	}
	for _, uid := range resp.GetRelease() {
		if pod := byUID[string(uid)]; pod != nil {
			p.release(pod)
		}
	}
	p.prune()
	if resp.GetDeleteJob() != nil {
		p.sayText(JobDeleted, "the Job is deleted: its time to live is over")
		p.gone = true
	}
	for _, e := range resp.GetEvents() {
		p.result.Events = append(p.result.Events, Event{
			At: p.now, Reason: e.GetReason(), Message: e.GetMessage(),
			Warning: e.GetType() == jobpolicyv1.EventType_EVENT_TYPE_WARNING,
		})
	}
}

var deleteReasons = map[jobpolicyv1.DeleteReason]string{
	jobpolicyv1.DeleteReason_DELETE_REASON_JOB_FINISHED:  "the Job is over",
	jobpolicyv1.DeleteReason_DELETE_REASON_SUSPENDED:     "the Job is suspended",
	jobpolicyv1.DeleteReason_DELETE_REASON_TOO_MANY:      "more run than are wanted",
	jobpolicyv1.DeleteReason_DELETE_REASON_BAD_INDEX:     "its index is taken or not asked for",
	jobpolicyv1.DeleteReason_DELETE_REASON_NEVER_STARTED: "it did not start in time",
}

func (p *player) create(c *jobpolicyv1.CreatePods) {
	for _, pod := range answer.NewPods(c) {
		p.addPod(c, pod)
	}
}

func (p *player) podsByUID(wanted int) map[string]*simPod {
	if wanted == 0 {
		return nil
	}
	byUID := make(map[string]*simPod, len(p.pods))
	for _, pod := range p.pods {
		byUID[string(pod.uid)] = pod
	}
	return byUID
}

// change does what the user does.
func (p *player) change(c Change) {
	if p.finished() {
		return
	}
	if c.Suspend != nil && *c.Suspend != p.spec.GetSuspend() {
		p.spec.Suspend = *c.Suspend
		p.sayText(UserChange, map[bool]string{true: "the user suspends the Job", false: "the user resumes the Job"}[*c.Suspend])
	}
	if c.Parallelism != nil {
		p.sayText(UserChange, fmt.Sprintf("the user sets parallelism from %d to %d", p.spec.GetParallelism(), *c.Parallelism))
		p.spec.Parallelism = *c.Parallelism
	}
	if c.Completions != nil {
		p.sayText(UserChange, fmt.Sprintf("the user sets completions from %d to %d", p.spec.GetCompletions(), *c.Completions))
		p.spec.Completions = proto.Int32(*c.Completions)
	}
	if c.Delete {
		p.sayText(UserChange, "the user deletes the Job")
		p.gone = true
	}
}

func (p *player) finished() bool { return terminalCondition(p.status) != nil }

func terminalCondition(status *jobpolicyv1.JobStatus) *jobpolicyv1.JobCondition {
	i := slices.IndexFunc(status.GetConditions(), func(c *jobpolicyv1.JobCondition) bool {
		return (c.GetType() == "Complete" || c.GetType() == "Failed") && c.GetStatus() == jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE
	})
	if i < 0 {
		return nil
	}
	return status.GetConditions()[i]
}

// An event is something that happens at a time. Events at the same time happen in the
// order in which they were planned.
type event struct {
	at    time.Duration
	order int
	do    func()
}

// agenda is a heap of events.
type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || (a[i].at == a[j].at && a[i].order < a[j].order)
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push implements heap.Interface.
func (a *agenda) Push(x any) { *a = append(*a, x.(event)) }

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}
