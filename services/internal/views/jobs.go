package views

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/explain"
	"jobpolicy.dev/services/internal/timeline"
)

// jobJSON is one row of the list of Jobs.
type jobJSON struct {
	UID       types.UID     `json:"uid"`
	Namespace string        `json:"ns"`
	Name      string        `json:"name"`
	State     explain.State `json:"state"`
	// Reason is the engine's summary. For a finished Job it says why the Job ended.
	Reason string   `json:"reason"`
	Rule   string   `json:"rule,omitempty"`
	Waits  []string `json:"waits,omitempty"`
	// Until is when the first of the waits ends by itself.
	Until   *time.Time `json:"until,omitempty"`
	Created time.Time  `json:"created"`
	Ended   *time.Time `json:"ended,omitempty"`
	explain.Counts
}

// jobRow is the row of a Job. late are its pods that have been Pending for long, if nothing
// says why.
func jobRow(o executor.Observation, late late, now time.Time) json.RawMessage {
	o.Job = timeline.Dated(o.Job)
	e := o.Decision.Explained()
	counts := statusCounts(o.Job)
	counts.Active = max(counts.Active, o.Hindered.Pods, late.pods)
	report := recorded(o, e, append(example(o), late.example()...), late, now, counts)
	row := jobJSON{
		UID: o.Job.UID, Namespace: o.Job.Namespace, Name: o.Job.Name, State: report.State,
		Reason: e.GetSummary(), Rule: e.GetDecidingRule().Name(), Created: o.Job.CreationTimestamp.Time, Counts: report.Counts,
	}
	if report.State == explain.Stuck || report.State == explain.Blocked {
		row.Reason = report.Cause // the column is narrow, so no whole sentence
	}
	switch {
	case o.Hindered.Pods > 0:
		row.Waits = append(row.Waits, o.Hindered.Reason)
	case late.pods > 0:
		row.Waits = append(row.Waits, string(corev1.PodPending))
	}
	if c := wire.FinishedCondition(o.Job); c != nil {
		row.Ended = &c.LastTransitionTime.Time
		row.Reason = strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
	}
	for _, wait := range e.GetWaits() {
		if word := waitWord(wait.GetReason()); !slices.Contains(row.Waits, word) {
			row.Waits = append(row.Waits, word)
		}
		if wait.GetUntil() == nil {
			continue
		}
		if at := wire.Time(wait.GetUntil().AsTime()); row.Until == nil || at.Before(*row.Until) {
			row.Until = &at
		}
	}
	return encoded(row)
}

// example makes a pod that stands for those that cannot start. The executor knows only
// their number and their reason.
func example(o executor.Observation) []corev1.Pod {
	if o.Hindered.Pods == 0 {
		return nil
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.Job.Namespace, CreationTimestamp: metav1.Now()}, Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: make([]corev1.ContainerStatus, 1)}}
	hinder(&pod, o.Hindered.Reason)
	return []corev1.Pod{pod}
}

// hinder writes why a pod cannot start into the fields in which the scheduler and the
// kubelet write it. The pod must have a container.
func hinder(pod *corev1.Pod, reason string) {
	switch reason {
	case "":
	case corev1.PodReasonUnschedulable, corev1.PodReasonSchedulingGated, corev1.PodReasonSchedulerError:
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason})
	default:
		pod.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason}
	}
}

// waitWord is the word for a wait reason on the page.
func waitWord(r jobpolicyv1.WaitReason) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(r.String(), "WAIT_REASON_"), "_", " "))
}

func statusCounts(job *batchv1.Job) explain.Counts {
	s := &job.Status
	return explain.Counts{Active: s.Active, Ready: ptr.Deref(s.Ready, 0), Terminating: ptr.Deref(s.Terminating, 0)}
}
