package cronjob

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// groupFull lets a run wait while its group has no room for it: the others that wait
// before it take the first places that are free. A run that replaces others takes their place.
func groupFull(f facts) answer {
	switch {
	case f.options.GetGroup() == nil:
		return no("the CronJob has no group")
	case len(f.replaced()) > 0:
		return no("the run takes the place of one that it replaces")
	}
	room, text := f.room(f.claim(f.placeSince(), f.due.start))
	if room {
		return no("%s", text)
	}
	missed, _ := f.startDeadline(f.due)
	return decided("the run of %s waits: %s%s", clockText(f.due.at), text, f.due.laterText()).
		waiting(jobpolicyv1.WaitReason_WAIT_REASON_RUN_GROUP, missed)
}

// manualWaits is the answer for a run that was asked for by hand, if its group has no room for it.
func (f facts) manualWaits() (a answer, is bool) {
	if f.options.GetGroup() == nil || len(f.replaced()) > 0 {
		return answer{}, false
	}
	room, text := f.room(f.manualClaim())
	return decided("a manual run is requested; it waits: %s", text).waiting(jobpolicyv1.WaitReason_WAIT_REASON_RUN_GROUP, time.Time{}), !room
}

// room reports whether the group has room for a run with a place in the line that it needs now, and says why.
func (f facts) room(own *jobpolicyv1.GroupClaim) (is bool, text string) {
	group, others := f.options.GetGroup(), f.req.GetGroup()
	most := int(group.GetMaxActiveRuns())
	if n := int(others.GetMaxActiveRuns()); n > 0 {
		most = min(most, n)
	}
	active, before := len(f.runs.active)+int(others.GetActiveRuns()), f.waitBefore(own)
	whose := ""
	if others.GetOfCluster() {
		whose = " of the cluster"
	}
	text = fmt.Sprintf("group %s%s has %d of %d active runs; %d wait before it", group.GetName(), whose, active, most, before)
	if n := others.GetUndecided(); n > 0 && active+before < most {
		return false, fmt.Sprintf("%s; CronJobs of the group that have to be looked at first: %d", text, n)
	}
	return active+before < most, text
}

// waitBefore counts the others that need a place now and come before this one.
func (s *snapshot) waitBefore(own *jobpolicyv1.GroupClaim) int {
	n := 0
	for _, other := range s.req.GetGroup().GetClaims() {
		if !other.GetFrom().AsTime().After(s.now) && options.CompareClaims(other, own) < 0 {
			n++
		}
	}
	return n
}

// placeSince is since when the CronJob waits: the first time that was due since its last run. So a run that starts in
// place of an earlier one keeps its place.
func (f facts) placeSince() time.Time {
	first, _ := f.schedule.Next(f.due.after)
	return first
}

// claim is a place in the line.
func (s *snapshot) claim(since, from time.Time) *jobpolicyv1.GroupClaim {
	claim := s.manualClaim()
	claim.Since, claim.From = timestamppb.New(since), timestamppb.New(from)
	return claim
}

// manualClaim is the place of a run that was asked for by hand, at once: before all others, or, in a group of
// the cluster, behind those that wait for longer.
func (s *snapshot) manualClaim() *jobpolicyv1.GroupClaim {
	claim := &jobpolicyv1.GroupClaim{CronJob: s.req.GetCronJob().GetName(), From: proto.CloneOf(s.spec.GetCreationTime())}
	if group := s.req.GetGroup(); group.GetOfCluster() {
		claim.Namespace, claim.Since = s.req.GetCronJob().GetNamespace(), proto.CloneOf(group.GetRunNowSince())
	}
	return claim
}

// groupClaim is the CronJob's place in the line of its group, by the rule that decided: now, or from the
// time on at which nothing else keeps its next run from starting. nil: it has none.
func (f facts) groupClaim(rule jobpolicyv1.Rule, last answer) *jobpolicyv1.GroupClaim {
	if f.options.GetGroup() == nil {
		return nil
	}
	switch rule {
	case jobpolicyv1.Rule_RULE_MANUAL_RUN_REQUESTED:
		if f.forbidden() {
			return nil
		}
		return f.manualClaim()
	case jobpolicyv1.Rule_RULE_GROUP_FULL, jobpolicyv1.Rule_RULE_RUN_DUE, jobpolicyv1.Rule_RULE_START_JITTER:
		return f.claim(f.placeSince(), f.due.start)
	case jobpolicyv1.Rule_RULE_CREATION_DEFERRED:
		until, _ := f.creationDeferredUntil()
		return f.claim(f.placeSince(), until)
	case jobpolicyv1.Rule_RULE_NOTHING_DUE, jobpolicyv1.Rule_RULE_STARTING_DEADLINE_PASSED, jobpolicyv1.Rule_RULE_MISSED_RUN,
		jobpolicyv1.Rule_RULE_ALREADY_STARTED, jobpolicyv1.Rule_RULE_NAME_TAKEN:
		return f.nextClaim(last)
	}
	return nil
}

// nextClaim is the place of the next run that is not due yet.
func (f facts) nextClaim(last answer) *jobpolicyv1.GroupClaim {
	next := f.due.next
	if next.IsZero() {
		return nil
	}
	since := next
	if !f.due.at.IsZero() && !last.processed {
		since = f.placeSince()
	}
	after, _ := f.schedule.Next(next)
	return f.claim(since, next.Add(StartDelayOf(f.req.GetCronJob(), f.options, next, after).Total()))
}
