package engine

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/engine/internal/check"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Limits of the contract. The proto files state each one at its field.
const (
	maxTypeBytes      = 317
	maxReasonBytes    = 1024
	maxMessageBytes   = 32768
	maxRows           = 100_000
	maxUnstarted      = 10_000
	maxReleases       = 2 * maxRows
	maxRanges         = 200_000
	maxConditions     = 100
	maxPolicyRules    = 20
	maxPolicyPatterns = 20
	maxExitCodes      = 255
	maxContainerExits = 1000
	maxRetryFacts     = 64
	maxBackoffSeconds = 24 * 60 * 60
	maxLimitSetting   = 100_000
	maxUIDBytes       = 64
	maxRuleNameBytes  = 63

	maxTemplateNameBytes = 4096
)

// A checker checks the messages of the contract that are about Jobs.
type checker struct{ *check.Checker }

// checkRequest is the only way into this package.
func checkRequest(req proto.Message, validate func(checker)) error {
	return check.Request(req, func(c *check.Checker) { validate(checker{c}) })
}

// decideJob checks everything that a decision relies on (the invariants of snapshot),
// in time linear in the request.
func (c checker) decideJob(req *jobpolicyv1.DecideJobRequest) {
	c.RequestID(req.GetRequestId())
	c.RequiredTime("now", req.GetNow())
	c.job(req.GetJob())
	c.spec(req.GetSpec())
	c.status(req.GetStatus())
	c.pods(req.GetPods())
	c.rows(req)
	c.terminatingPods(req)
	c.finishedPods(req.GetFinishedPods())
	c.unlisted(req.GetUnlistedPods())
	c.inFlight(req.GetInFlight())
	c.retry(req.GetRetry())
	c.settings(req.GetSettings())
	c.Deferrals(req.GetDeferrals())
}

func (c checker) job(job *jobpolicyv1.JobRef) {
	if !c.Require(job != nil, "job", "is required") {
		return
	}
	c.uid("job.uid", job.GetUid())
	c.BytesBetween("job.namespace", job.GetNamespace(), 0, check.MaxNameBytes)
	c.BytesBetween("job.name", job.GetName(), 1, check.MaxNameBytes)
	c.NotNegative("job.generation", job.GetGeneration())
}

func (c checker) settings(s *jobpolicyv1.Settings) {
	base := c.backoff("settings.pod_failure_backoff", s.GetPodFailureBackoff(), 0.001)
	if d := s.GetMaxPodFailureBackoff(); d != nil {
		c.backoff("settings.max_pod_failure_backoff", d, max(base, 0.001))
	}
	c.Between("settings.max_uncounted_pods", int64(s.GetMaxUncountedPods()), 0, maxLimitSetting)
	c.Between("settings.max_pod_changes", int64(s.GetMaxPodChanges()), 0, maxLimitSetting)
}

// backoff checks an optional duration and returns it in seconds: the default of
// settings.pod_failure_backoff if it is absent, the least allowed one if it is wrong.
func (c checker) backoff(field string, d *durationpb.Duration, least float64) float64 {
	if d == nil {
		return defaultPodFailureBackoff.Seconds()
	}
	if !c.Require(d.CheckValid() == nil, field, "is not a valid duration") {
		return least
	}
	seconds := d.AsDuration().Seconds()
	if !c.Require(seconds >= least && seconds <= maxBackoffSeconds, field,
		"must be between %gs and %ds, is %gs", least, maxBackoffSeconds, seconds) {
		return least
	}
	return seconds
}

func (c checker) inFlight(f *jobpolicyv1.InFlight) {
	c.NotNegative("in_flight.creates", int64(f.GetCreates()))
	c.indexesOf("in_flight.creates", f.GetCreates(), "in_flight.create_indexes", f.GetCreateIndexes())
}

func (c checker) retry(r *jobpolicyv1.RetryFacts) {
	c.OptionalTime("retry.last_success_time", r.GetLastSuccessTime())
	check.Each(c.Checker, "retry.recent_failures", maxRetryFacts, r.GetRecentFailures(), func(f *jobpolicyv1.PodFailureFact) {
		c.RequiredTime("finished_time", f.GetFinishedTime())
		c.Within("failure")
		c.failure(f.GetFailure())
		c.Leave()
		if f != nil {
			c.index(f.Index)
		}
	})
	check.Each(c.Checker, "retry.failed_tries", maxRows, r.GetFailedTries(), func(f *jobpolicyv1.FailedTry) {
		if !c.Require(f != nil, "", "is required") {
			return
		}
		c.Between("resource_step", int64(f.GetResourceStep()), 0, maxResourceStep)
		c.exits(f.GetContainerExits())
		c.index(f.Index)
	})
}

// indexSet checks a set and returns it; the empty set if it is wrong.
func (c checker) indexSet(field string, m *jobpolicyv1.IndexSet) indexset.Set {
	if !c.Length(field+".ranges", len(m.GetRanges()), maxRanges) {
		return indexset.Set{}
	}
	set, ok := indexset.Read(m)
	c.Require(ok, field+".ranges",
		"must be in ascending order, must not overlap, and first and last must satisfy 0 <= first <= last <= %d", indexset.Max)
	return set
}

// indexesOf checks the indexes of pods, and that there are no more of them than pods.
func (c checker) indexesOf(counter string, pods int32, field string, m *jobpolicyv1.IndexSet) {
	if set := c.indexSet(field, m); set.Len() > int64(pods) {
		c.Violated(field, "must not have more indexes than %s (%d), has %d", counter, pods, set.Len())
	}
}

// uid runs for every row; see the fields of package check.
func (c checker) uid(field string, uid []byte) bool {
	if len(uid) >= 1 && len(uid) <= maxUIDBytes {
		return true
	}
	return c.Require(false, field, "must have 1 to %d bytes, has %d", maxUIDBytes, len(uid))
}
