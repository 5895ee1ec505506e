package engine

import (
	"math"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// With options.when_job_fails END_PODS, the pods that are active when a Job fails are ended and stay, with
// their logs: the time for which each may be active becomes what it has been active for, and its node
// ends it (reason DeadlineExceeded). What stands on the pod says whether that was done, so nothing is
// remembered here. Until a pod has ended it is active, and the Job waits for it as for any other
// (terminalWait); from then on it counts as failed, as a pod that is deleted does (podRow.ended).

const (
	// endingMargin is how long after its grace period a pod may take to end. A node that has not ended it by then
	// cannot be relied on to do so, and the pod is deleted.
	endingMargin = time.Minute
	// tellingMargin is for how long after the Job has failed a pod is told to end. If an admission policy refuses
	// or undoes that for longer, or nobody asks for longer what to do, the pod is deleted.
	tellingMargin = time.Hour
)

// endsPods reports whether the pods that are active when the Job has failed are ended, and not deleted.
func (s *snapshot) endsPods(v verdict) bool {
	return v.kind == fails && !s.spec.GetSuspend() &&
		s.spec.GetOptions().GetWhenJobFails() == jobpolicyv1.WhenJobFails_WHEN_JOB_FAILS_END_PODS
}

// endedWithJob reports whether a pod that failed was told to end because the Job has failed. A pod that
// a deadline of its own ends meanwhile looks the same, and nothing asks how it ended any more.
func (s *snapshot) endedWithJob(pod *jobpolicyv1.UnaccountedPod) bool {
	_, declared := trueCondition(s.status, conditionFailureTarget)
	return declared && pod.GetFailure().GetReason() == podDeadlineExceeded &&
		s.spec.GetOptions().GetWhenJobFails() == jobpolicyv1.WhenJobFails_WHEN_JOB_FAILS_END_PODS
}

// A podEnd is how a pod is ended.
type podEnd struct {
	pod *jobpolicyv1.ActivePod
	// seconds is for how long the pod may be active. That time is over, or is in less than a second.
	seconds int64
	// told: the pod has no longer time already.
	told bool
	// overdue is when the pod is deleted if it has been told and has not ended.
	overdue time.Time
}

// endOf is how a pod is ended; ok is false if it is to be deleted: no node has taken it, or its end is overdue.
func (s *snapshot) endOf(pod *jobpolicyv1.ActivePod) (e podEnd, ok bool) {
	if pod.GetStartTime() == nil {
		return podEnd{}, false
	}
	start := pod.GetStartTime().AsTime()
	if start.After(s.now) {
		start = s.now // The node's clock is ahead.
	}
	e = podEnd{pod: pod, seconds: max(1, min(s.now.Unix()-start.Unix(), math.MaxInt32))}
	if pod.ActiveDeadlineSeconds != nil && pod.GetActiveDeadlineSeconds() <= e.seconds {
		e.seconds, e.told = pod.GetActiveDeadlineSeconds(), true
	}
	grace := min(pod.GetGracePeriodSeconds(), math.MaxInt32)
	e.overdue = start.Add(time.Duration(e.seconds+grace)*time.Second + endingMargin)
	return e, e.overdue.After(s.now) && (e.told || s.failedAt().Add(tellingMargin).After(s.now))
}

// failedAt is when the status said that the Job fails; now if that is not known.
func (s *snapshot) failedAt() time.Time {
	condition, _ := trueCondition(s.status, conditionFailureTarget)
	if at := condition.GetLastTransitionTime(); at != nil && at.AsTime().Before(s.now) {
		return at.AsTime()
	}
	return s.now
}

// endPods plans to end those of the pods to delete that their nodes can end.
func (p plan) endPods(s *snapshot) plan {
	var deletions []deletion
	var next podEnd
	ending := 0
	for _, d := range p.deletions {
		e, ok := s.endOf(d.pod)
		if !ok {
			deletions = append(deletions, d)
			continue
		}
		if ending++; ending == 1 || e.overdue.Before(next.overdue) {
			next = e
		}
		if !e.told {
			p.ends = append(p.ends, e)
		}
	}
	p.deletions = deletions
	if ending > 0 {
		p.waits = append(p.waits, waitUntil(jobpolicyv1.WaitReason_WAIT_REASON_ENDING_PODS, next.overdue,
			"pods that their nodes end, so that their logs stay: %d; pod %s is deleted if it has not ended by then", ending, next.pod.GetPodName()))
	}
	return p
}

func (e podEnd) message() *jobpolicyv1.EndPod {
	return &jobpolicyv1.EndPod{Uid: e.pod.GetUid(), ActiveDeadlineSeconds: e.seconds}
}
