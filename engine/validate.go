package engine

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/deferral"
	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Limits of the contract. The proto files state each one at its field.
const (
	maxRequestIDBytes   = 128
	maxNameBytes        = 253
	maxTypeBytes        = 317
	maxReasonBytes      = 1024
	maxMessageBytes     = 32768
	maxRows             = 100_000
	maxReleases         = 2 * maxRows
	maxRanges           = 200_000
	maxConditions       = 100
	maxPolicyRules      = 20
	maxPolicyPatterns   = 20
	maxExitCodes        = 255
	maxContainerExits   = 1000
	maxRetryFacts       = 64
	maxBackoffSeconds   = 24 * 60 * 60
	maxLimitSetting     = 100_000
	maxUIDBytes         = 64
	maxListedViolations = 100
)

// A checker collects violations. It continues after the first one, so that a caller
// can correct all of them at once. A request may hold 100000 rows, nearly always
// valid ones, so texts are made only for violations.
type checker struct {
	violations []FieldViolation
	// items are the list elements and messages that are being checked, outermost first.
	// Field names in checks are relative to the last one.
	items []item
}

// An item is an element of a list, or a message.
type item struct {
	list  string
	index int
}

// noIndex is the index of a message that is not in a list.
const noIndex = -1

// enter makes field names relative to an element of a list.
func (c *checker) enter(list string, index int) {
	c.items = append(c.items, item{list, index})
}

// leave undoes the last enter.
func (c *checker) leave() { c.items = c.items[:len(c.items)-1] }

// within makes field names relative to a message, until leave.
func (c *checker) within(message string) { c.enter(message, noIndex) }

// path is the full name of a field of the current element; of the element
// itself if field is empty.
func (c *checker) path(field string) string {
	var b strings.Builder
	for _, item := range c.items {
		b.WriteString(item.list)
		if item.index != noIndex {
			fmt.Fprintf(&b, "[%d]", item.index)
		}
		b.WriteByte('.')
	}
	b.WriteString(field)
	return strings.TrimSuffix(b.String(), ".")
}

// violated records a violation of field.
func (c *checker) violated(field, format string, args ...any) {
	if !c.full() {
		c.violations = append(c.violations, FieldViolation{Field: c.path(field), Description: fmt.Sprintf(format, args...)})
	}
}

// require records a violation of field unless ok.
func (c *checker) require(ok bool, field, format string, args ...any) bool {
	if !ok {
		c.violated(field, format, args...)
	}
	return ok
}

// full reports that no further violation would be listed, so that the rest of a long
// list need not be checked.
func (c *checker) full() bool { return len(c.violations) >= maxListedViolations }

// check is the only way into the engine. It refuses a request that has fields or
// values that this engine does not know, and one in which validate finds violations.
func check(req proto.Message, validate func(*checker)) error {
	if err := CheckKnown(req); err != nil {
		return err
	}
	c := &checker{}
	validate(c)
	if len(c.violations) > 0 {
		return &InvalidRequestError{Violations: c.violations}
	}
	return nil
}

// each checks the items of a list, and that there are no more than most.
func each[T any](c *checker, list string, most int, items []T, checkItem func(T)) {
	if !c.length(list, len(items), most) {
		return
	}
	for i, item := range items {
		if c.full() {
			return
		}
		c.enter(list, i)
		checkItem(item)
		c.leave()
	}
}

// decideJob checks everything that a decision relies on (the invariants of snapshot),
// in time linear in the request.
func (c *checker) decideJob(req *jobpolicyv1.DecideJobRequest) {
	c.require(len(req.GetRequestId()) <= maxRequestIDBytes, "request_id",
		"must have at most %d bytes, has %d", maxRequestIDBytes, len(req.GetRequestId()))
	c.requiredTime("now", req.GetNow())
	c.job(req.GetJob())
	c.spec(req.GetSpec())
	c.status(req.GetStatus())
	c.pods(req.GetPods())
	c.rows(req)
	c.unlisted(req.GetUnlistedPods())
	c.inFlight(req.GetInFlight())
	c.retry(req.GetRetry())
	c.settings(req.GetSettings())
	c.deferrals(req.GetDeferrals())
	c.annotations("namespace_annotations", req.GetNamespaceAnnotations())
}

func (c *checker) deferrals(deferrals []*jobpolicyv1.Deferral) {
	if !c.length("deferrals", len(deferrals), deferral.MaxEntries) {
		return
	}
	deferral.Check(deferrals, func(index int, field, text string) {
		c.enter("deferrals", index)
		c.violated(field, "%s", text)
		c.leave()
	})
}

func (c *checker) job(job *jobpolicyv1.JobRef) {
	if !c.require(job != nil, "job", "is required") {
		return
	}
	c.uid("job.uid", job.GetUid())
	c.bytesBetween("job.namespace", job.GetNamespace(), 0, maxNameBytes)
	c.bytesBetween("job.name", job.GetName(), 1, maxNameBytes)
	c.notNegative("job.generation", job.GetGeneration())
}

func (c *checker) settings(s *jobpolicyv1.Settings) {
	base := c.backoff("settings.pod_failure_backoff", s.GetPodFailureBackoff(), 0.001)
	if d := s.GetMaxPodFailureBackoff(); d != nil {
		c.backoff("settings.max_pod_failure_backoff", d, max(base, 0.001))
	}
	c.between("settings.max_uncounted_pods", int64(s.GetMaxUncountedPods()), 0, maxLimitSetting)
	c.between("settings.max_pod_changes", int64(s.GetMaxPodChanges()), 0, maxLimitSetting)
}

// backoff checks an optional duration and returns it in seconds: the default of
// settings.pod_failure_backoff if it is absent, the least allowed one if it is wrong.
func (c *checker) backoff(field string, d *durationpb.Duration, least float64) float64 {
	if d == nil {
		return defaultPodFailureBackoff.Seconds()
	}
	if !c.require(d.CheckValid() == nil, field, "is not a valid duration") {
		return least
	}
	seconds := d.AsDuration().Seconds()
	if !c.require(seconds >= least && seconds <= maxBackoffSeconds, field,
		"must be between %gs and %ds, is %gs", least, maxBackoffSeconds, seconds) {
		return least
	}
	return seconds
}

func (c *checker) inFlight(f *jobpolicyv1.InFlight) {
	c.notNegative("in_flight.creates", int64(f.GetCreates()))
	c.indexesOf("in_flight.creates", f.GetCreates(), "in_flight.create_indexes", f.GetCreateIndexes())
}

func (c *checker) retry(r *jobpolicyv1.RetryFacts) {
	c.optionalTime("retry.last_success_time", r.GetLastSuccessTime())
	each(c, "retry.recent_failures", maxRetryFacts, r.GetRecentFailures(), func(f *jobpolicyv1.PodFailureFact) {
		c.requiredTime("finished_time", f.GetFinishedTime())
		c.within("failure")
		c.failure(f.GetFailure())
		c.leave()
	})
}

// indexSet checks a set and returns it; the empty set if it is wrong.
func (c *checker) indexSet(field string, m *jobpolicyv1.IndexSet) indexset.Set {
	if !c.length(field+".ranges", len(m.GetRanges()), maxRanges) {
		return indexset.Set{}
	}
	set, ok := indexset.FromRanges(readRanges(m))
	c.require(ok, field+".ranges",
		"must be in ascending order, must not overlap, and first and last must satisfy 0 <= first <= last <= %d", indexset.Max)
	return set
}

// indexesOf checks the indexes of pods, and that there are no more of them than pods.
func (c *checker) indexesOf(counter string, pods int32, field string, m *jobpolicyv1.IndexSet) {
	if set := c.indexSet(field, m); set.Len() > int64(pods) {
		c.violated(field, "must not have more indexes than %s (%d), has %d", counter, pods, set.Len())
	}
}

// The checks below run for every field of every row. They hand values to
// require and violated only when something is wrong, because that allocates.

func (c *checker) uid(field string, uid []byte) bool {
	if len(uid) >= 1 && len(uid) <= maxUIDBytes {
		return true
	}
	return c.require(false, field, "must have 1 to %d bytes, has %d", maxUIDBytes, len(uid))
}

func (c *checker) bytesBetween(field, s string, low, high int) {
	if len(s) < low || len(s) > high {
		c.violated(field, "must have %d to %d bytes, has %d", low, high, len(s))
	}
}

func (c *checker) length(field string, n, most int) bool {
	if n <= most {
		return true
	}
	return c.require(false, field, "must have at most %d entries, has %d", most, n)
}

func (c *checker) notNegative(field string, n int64) {
	if n < 0 {
		c.violated(field, "must not be negative, is %d", n)
	}
}

func (c *checker) between(field string, n, low, high int64) {
	if n < low || n > high {
		c.violated(field, "must be between %d and %d, is %d", low, high, n)
	}
}

func (c *checker) requiredTime(field string, t *timestamppb.Timestamp) {
	if c.require(t != nil, field, "is required") {
		c.optionalTime(field, t)
	}
}

func (c *checker) optionalTime(field string, t *timestamppb.Timestamp) {
	if t != nil && !t.IsValid() {
		c.violated(field, "must be a time between the years 1 and 9999")
	}
}
