package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A cluster is a model of one Job in an API server, of its pods and of an
// executor. It knows the truth; the executor's view may lag behind it.
type cluster struct {
	t        *rapid.T
	now      time.Time
	spec     *jobpolicyv1.JobSpec
	status   *jobpolicyv1.JobStatus
	settings *jobpolicyv1.Settings
	pods     []*modelPod
	// began is when the Job last started or resumed. Its start time has whole seconds only.
	began time.Time
	// ghosts are the indexes of creations that failed without the executor's knowledge;
	// nil for a pod without an index.
	ghosts []*int32
	// createAfter is when the executor tries again to create pods.
	createAfter time.Time
	// quietUntil is until when the executor wants no routine status.
	quietUntil time.Time
	// recordsUntil is until when the executor wants no pods recorded.
	recordsUntil time.Time
	// stale: the executor's view does not show its own last status. It does not ask.
	stale bool
	// rowLimit is how many finished pods the executor lists; 0: all.
	rowLimit int
	// faulty turns on faults.
	faulty bool
	// counted holds the UIDs that went into the counters, and the verdict.
	counted map[string]string
	// intact is false once an index lost its history by a suspension, a scale
	// down or a stray pod.
	intact bool
}

func (c *cluster) logf(format string, args ...any) { c.t.Logf(format, args...) }

// A modelPod is a pod as the API server has it.
type modelPod struct {
	uid               []byte
	index             *int32
	phase             jobpolicyv1.PodPhase
	scheduled, ready  bool
	deleting, tracked bool
	gone              bool
	restarts          int32
	created, finished time.Time
	// due is when the pod was to be gone, if it is being deleted.
	due time.Time
	// node is the state of its node.
	node              jobpolicyv1.NodeState
	failures, ignored int32
	// deadline is for how many seconds it may be active; nil: for ever.
	deadline  *int64
	exitCode  int32
	disrupted bool
	// ran is when the pod began to run, or ended without that; zero before.
	ran time.Time
	// seen is false while the creation is in flight for the executor.
	seen bool
	// releaseSeen is true when the executor knows that the finalizer is gone.
	releaseSeen bool
	// releasedFirst is true for a pod that was released before it was deleted.
	releasedFirst bool
	// lateEnd is true for a pod that ended after it was released, that was released uncounted
	// because it is deleted with its Job, or that ended after the Job was finished.
	lateEnd bool
	// forgotten is true for a pod whose index was out of range for a while.
	forgotten bool
	// pruned is true for a pod that the Job has not kept.
	pruned bool
	// flipped is true for a pod that succeeded and now says that it failed.
	flipped bool
}

func (p *modelPod) terminal() bool {
	return p.phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED || p.phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED
}

func (p *modelPod) active() bool { return !p.gone && !p.terminal() && !p.deleting }

func (p *modelPod) terminating() bool { return !p.gone && !p.terminal() && p.deleting }

// holds reports whether the executor believes that the pod has the finalizer.
func (p *modelPod) holds() bool { return p.tracked || !p.releaseSeen }

func (p *modelPod) failure() *jobpolicyv1.PodFailure {
	f := &jobpolicyv1.PodFailure{PodName: fmt.Sprintf("pod-%x", p.uid)}
	if p.exitCode != 0 {
		f.ContainerExits = []*jobpolicyv1.ContainerExit{{ContainerName: "main", ExitCode: p.exitCode, TerminationMessage: "said by a pod\u202e\n"}}
	}
	if p.disrupted {
		f.Conditions = []*jobpolicyv1.PodConditionPattern{pattern("DisruptionTarget")}
	}
	return f
}

func (c *cluster) indexed() bool {
	return c.spec.GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
}

func (c *cluster) replaceFailedOnly() bool {
	return c.spec.GetPodFailurePolicy() != nil ||
		c.spec.GetPodReplacementPolicy() == jobpolicyv1.PodReplacementPolicy_POD_REPLACEMENT_POLICY_FAILED
}

func (c *cluster) inRange(p *modelPod) bool {
	return !c.indexed() || (p.index != nil && *p.index < c.spec.GetCompletions())
}

func (c *cluster) pod(uid []byte) *modelPod {
	for _, p := range c.pods {
		if bytes.Equal(p.uid, uid) {
			return p
		}
	}
	return nil
}

func (c *cluster) podsThat(want func(*modelPod) bool) []*modelPod {
	var found []*modelPod
	for _, p := range c.pods {
		if want(p) {
			found = append(found, p)
		}
	}
	return found
}

func (c *cluster) addPod(index *int32) *modelPod {
	p := &modelPod{
		uid: numberedUID(len(c.pods)), index: index, phase: jobpolicyv1.PodPhase_POD_PHASE_PENDING,
		tracked: true, created: c.now, seen: true,
	}
	c.pods = append(c.pods, p)
	return p
}

func (p *modelPod) end(now time.Time, phase jobpolicyv1.PodPhase) {
	p.phase, p.ready, p.finished = phase, false, now
	// A pod that is being deleted does not begin to run. Once it is released, nobody looks
	// at how it ends.
	if p.ran.IsZero() && (p.tracked || !p.deleting) {
		p.ran = now
	}
	if phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED && p.exitCode == 0 {
		p.exitCode = 1
	}
	p.leaveIfDone()
}

// leaveIfDone removes a pod from the API server when nothing keeps it there.
func (p *modelPod) leaveIfDone() {
	if p.deleting && p.terminal() && !p.tracked {
		p.gone = true
	}
}

// observe builds the executor's request.
func (c *cluster) observe() *jobpolicyv1.DecideJobRequest {
	req := &jobpolicyv1.DecideJobRequest{
		RequestId: "model",
		Now:       timestamppb.New(c.now),
		Job:       &jobpolicyv1.JobRef{Uid: uid("job"), Namespace: "ns", Name: "job"},
		Spec:      proto.CloneOf(c.spec),
		Status:    proto.CloneOf(c.status),
		Pods:      &jobpolicyv1.PodSummary{},
		InFlight:  &jobpolicyv1.InFlight{},
		Retry:     &jobpolicyv1.RetryFacts{},
		Settings:  proto.CloneOf(c.settings),
	}
	if !c.createAfter.IsZero() {
		deferUntil(req, createPods, timestamppb.New(c.createAfter))
	}
	if !c.quietUntil.IsZero() {
		deferUntil(req, writeRoutineStatus, timestamppb.New(c.quietUntil))
		deferUntil(req, recordPods, timestamppb.New(c.recordsUntil))
	}
	c.observePods(req)
	c.observeInFlight(req)
	c.observeRetry(req)
	c.observeReleases(req)
	c.observeFinished(req)
	return req
}

func (c *cluster) observePods(req *jobpolicyv1.DecideJobRequest) {
	var active, terminating []int32
	for _, p := range c.pods {
		if p.gone || !p.seen {
			continue
		}
		if !p.terminal() && p.phase != jobpolicyv1.PodPhase_POD_PHASE_UNKNOWN {
			req.Pods.Restarts += int64(p.restarts)
		}
		if c.spec.GetOptions().GetStartDeadlineSeconds() > 0 && (p.active() || p.holds()) && !p.ran.IsZero() {
			req.Pods.HasRun = true
		}
		if p.active() {
			req.Pods.Active++
			req.Pods.Ready += count(p.ready)
			req.Pods.TrackedActive += count(p.tracked)
			active = appendIndex(active, p)
		}
		if p.terminating() {
			req.Pods.Terminating++
			terminating = appendIndex(terminating, p)
			c.observeTermination(req, p)
		}
		if !p.active() && p.holds() {
			req.UnaccountedPods = append(req.UnaccountedPods, c.row(p))
		}
	}
	if c.indexed() {
		req.Pods.ActiveIndexes = indexset.Of(active...).Message()
		req.Pods.TerminatingIndexes = indexset.Of(terminating...).Message()
	}
}

func (c *cluster) row(p *modelPod) *jobpolicyv1.UnaccountedPod {
	finished := p.finished
	if finished.IsZero() {
		finished = p.created
	}
	return &jobpolicyv1.UnaccountedPod{
		Uid: p.uid, Phase: p.phase, Deleting: p.deleting, Index: p.index, FinishedTime: timestamppb.New(finished),
		Failure: p.failure(), IndexFailureCount: p.failures, IndexIgnoredFailureCount: p.ignored,
	}
}

func (c *cluster) observeInFlight(req *jobpolicyv1.DecideJobRequest) {
	var creating []int32
	for _, p := range c.pods {
		if !p.seen {
			req.InFlight.Creates++
			creating = appendIndex(creating, p)
		}
	}
	for _, ghost := range c.ghosts {
		req.InFlight.Creates++
		creating = appendIndex(creating, &modelPod{index: ghost})
	}
	if c.indexed() {
		req.InFlight.CreateIndexes = indexset.Of(creating...).Message()
	}
}

func (c *cluster) observeRetry(req *jobpolicyv1.DecideJobRequest) {
	for _, p := range c.pods {
		if p.gone || !p.seen || !p.terminal() && !c.takenAsFailed(p) {
			continue
		}
		if p.phase != jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED {
			req.Retry.RecentFailures = append(req.Retry.RecentFailures,
				&jobpolicyv1.PodFailureFact{FinishedTime: timestamppb.New(p.finished), Failure: p.failure()})
			continue
		}
		if last := req.Retry.GetLastSuccessTime(); last == nil || p.finished.After(last.AsTime()) {
			req.Retry.LastSuccessTime = timestamppb.New(p.finished)
		}
	}
	slices.SortFunc(req.Retry.RecentFailures, func(a, b *jobpolicyv1.PodFailureFact) int {
		return b.GetFinishedTime().AsTime().Compare(a.GetFinishedTime().AsTime())
	})
	if len(req.Retry.RecentFailures) > 64 {
		req.Retry.RecentFailures = req.Retry.RecentFailures[:64]
	}
}

func (c *cluster) observeReleases(req *jobpolicyv1.DecideJobRequest) {
	uncounted := req.GetStatus().GetUncounted()
	for _, uid := range slices.Concat(uncounted.GetSucceeded(), uncounted.GetFailed()) {
		if p := c.pod(uid); p == nil || p.gone || !p.holds() {
			req.ConfirmedReleases = append(req.ConfirmedReleases, uid)
		}
	}
}

// withRows adds the rows of the active pods, in answer to the requirement.
func (c *cluster) withRows(req *jobpolicyv1.DecideJobRequest) *jobpolicyv1.DecideJobRequest {
	req = proto.CloneOf(req)
	req.ActivePods = &jobpolicyv1.ActivePods{}
	for _, p := range c.pods {
		if !p.active() || !p.seen {
			continue
		}
		row := &jobpolicyv1.ActivePod{
			Uid: p.uid, Phase: p.phase, Index: p.index, Scheduled: p.scheduled, Ready: p.ready,
			MaxRestarts: p.restarts, CreatedTime: timestamppb.New(p.created), Tracked: p.tracked,
		}
		c.observeDeadline(row, p)
		req.ActivePods.Pods = append(req.ActivePods.Pods, row)
	}
	return req
}

func count(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func appendIndex(list []int32, p *modelPod) []int32 {
	if p.index == nil {
		return list
	}
	return append(list, *p.index)
}

func drawSettings(t *rapid.T) *jobpolicyv1.Settings {
	return &jobpolicyv1.Settings{
		MaxUncountedPods:       rapid.SampledFrom([]int32{0, 1, 2, 3, 5}).Draw(t, "maxUncounted"),
		MaxPodChanges:          rapid.SampledFrom([]int32{0, 1, 2, 4}).Draw(t, "maxChanges"),
		PodGroups:              rapid.SampledFrom([]jobpolicyv1.PodGroups{0, 0, 1, 2}).Draw(t, "podGroups"),
		KeepStartTimeOnSuspend: rapid.Bool().Draw(t, "keepStartTime"),
		PodFailureBackoff:      rapid.SampledFrom([]*durationpb.Duration{nil, durationpb.New(time.Second), durationpb.New(time.Millisecond)}).Draw(t, "backoff"),
	}
}
