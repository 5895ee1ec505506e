package engine

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/engine/internal/waits"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Defaults of Settings, as in the upstream job controller v1.37.
const (
	defaultPodFailureBackoff    = 10 * time.Second
	defaultMaxPodFailureBackoff = 10 * time.Minute
	defaultMaxUncountedPods     = 500
	defaultMaxPodChanges        = 500
)

// A snapshot is a request that passed validation, with its defaults filled in and its
// index sets and times parsed. It is made by newSnapshot only, and never changed.
// Later code may rely on this:
//
//  1. every message that it reads is present;
//  2. counts and indexes are not negative, enums have known values;
//  3. no two rows share a UID;
//  4. an INDEXED job has completions;
//  5. ready and trackedActive are not more than active.
type snapshot struct {
	req *jobpolicyv1.DecideJobRequest
	lifetime
	pods    *jobpolicyv1.PodSummary
	indexed bool

	// Index sets as the request holds them; those of the status hold only indexes below
	// spec.completions, because a Job may have been scaled down.
	completed, failedIndexes      indexset.Set
	active, terminating, inFlight indexset.Set
	// Indexes of pods without a row. Those of failed ones matter only with limits
	// per index.
	unlistedSucceeded, unlistedFailed indexset.Set
	failurePolicy                     failurePolicy
	recordedSucceeded                 map[string]bool
	recordedFailed                    map[string]bool
	confirmed                         map[string]bool
	backoff                           backoff
	// unstarted are in the order in which their time is over.
	unstarted                       []unstartedPod
	maxUncountedPods, maxPodChanges int
	// Pods that are overdue count in pods.terminating and in terminating no more.
	terminations
}

func newSnapshot(req *jobpolicyv1.DecideJobRequest) *snapshot {
	s := &snapshot{
		req:      req,
		lifetime: newLifetime(req.GetSpec(), req.GetStatus(), req.GetNow()),
		pods:     req.GetPods(),
		indexed:  req.GetSpec().GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED,
	}
	if s.pods == nil {
		s.pods = &jobpolicyv1.PodSummary{}
	}
	s.readSettings(req.GetSettings())
	s.readSets()
	s.readTerminations()
	s.failurePolicy = readFailurePolicy(s.spec.GetPodFailurePolicy(), req.GetJob().GetNamespace())
	s.unstarted = readUnstarted(s)
	return s
}

func (s *snapshot) readSettings(settings *jobpolicyv1.Settings) {
	s.backoff = readBackoff(settings, s.spec.GetOptions().GetRetryDelay(), s.req.GetJob().GetUid())
	s.maxUncountedPods = defaultMaxUncountedPods
	if n := settings.GetMaxUncountedPods(); n > 0 {
		s.maxUncountedPods = int(n)
	}
	s.maxPodChanges = defaultMaxPodChanges
	if n := settings.GetMaxPodChanges(); n > 0 {
		s.maxPodChanges = int(n)
	}
}

func (s *snapshot) readSets() {
	s.recordedSucceeded = uidSet(s.status.GetUncounted().GetSucceeded())
	s.recordedFailed = uidSet(s.status.GetUncounted().GetFailed())
	s.confirmed = uidSet(s.req.GetConfirmedReleases())
	if !s.indexed {
		return
	}
	completions := s.spec.GetCompletions()
	s.completed = readSet(s.status.GetCompletedIndexes()).Below(completions)
	s.failedIndexes = readSet(s.status.GetFailedIndexes()).Below(completions)
	s.active = readSet(s.pods.GetActiveIndexes()).Below(completions)
	s.terminating = readSet(s.pods.GetTerminatingIndexes()).Below(completions)
	s.inFlight = readSet(s.req.GetInFlight().GetCreateIndexes()).Below(completions)
	s.unlistedSucceeded = readSet(s.unlisted().GetSucceededIndexes()).Below(completions)
	s.unlistedFailed = readSet(s.req.GetUnlistedPods().GetFailedIndexes()).Below(completions)
}

// perIndex reports whether failures are limited per index.
func (s *snapshot) perIndex() bool { return s.spec.BackoffLimitPerIndex != nil }

// replaceFailedOnly reports whether the Job waits until a pod that is being deleted has
// ended: only then the pod counts as failed, and only then it is replaced. A pod failure
// policy implies this, because the policy looks at how a pod ended (upstream
// onlyReplaceFailedPods until v1.36; since v1.37 it relies on the API server, which sets the default FAILED
// with a policy and refuses anything else. Other callers may leave it out).
func (s *snapshot) replaceFailedOnly() bool {
	return s.spec.GetPodReplacementPolicy() == jobpolicyv1.PodReplacementPolicy_POD_REPLACEMENT_POLICY_FAILED ||
		s.spec.GetPodFailurePolicy() != nil
}

// inRange reports whether a pod's index is one of the Job's indexes. Pods of a
// NON_INDEXED Job have no index and are always in range.
func (s *snapshot) inRange(index *int32) bool {
	return !s.indexed || hasIndexBelow(index, s.spec.GetCompletions())
}

func hasIndexBelow(index *int32, completions int32) bool { return index != nil && *index < completions }

// creating is the number of creations in flight.
func (s *snapshot) creating() int32 { return s.req.GetInFlight().GetCreates() }

// second is the decision's time as the API stores times: in whole seconds.
func (s *snapshot) second() *timestamppb.Timestamp {
	return timestamppb.New(s.now.Truncate(time.Second))
}

// deleting reports whether the Job or its namespace is being deleted.
func (s *snapshot) deleting() bool { return s.spec.GetDeleting() || s.req.GetNamespaceDeleting() }

// deferredUntil returns the earliest time at which the caller wants a step. asked is
// false if the caller did not defer the step.
func (s *snapshot) deferredUntil(step jobpolicyv1.Step) (until time.Time, asked bool) {
	return waits.DeferredUntil(s.req.GetDeferrals(), step)
}

// deferred says that a step is left for later because the caller asked for that; nil
// if the step may be taken now.
func (s *snapshot) deferred(step jobpolicyv1.Step, format string, args ...any) *jobpolicyv1.Wait {
	until, asked := s.deferredUntil(step)
	if !asked || !until.After(s.now) {
		return nil
	}
	w := waitUntil(jobpolicyv1.WaitReason_WAIT_REASON_DEFERRED, until, format, args...)
	w.Step = step
	return w
}

// spacesStatuses reports whether the caller leaves time between routine statuses.
func (s *snapshot) spacesStatuses() bool {
	_, asked := s.deferredUntil(jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS)
	return asked
}

func uidSet(uids [][]byte) map[string]bool {
	set := make(map[string]bool, len(uids))
	for _, uid := range uids {
		set[string(uid)] = true
	}
	return set
}

// readSet reads a set that passed validation.
func readSet(m *jobpolicyv1.IndexSet) indexset.Set {
	set, _ := indexset.Read(m)
	return set
}
