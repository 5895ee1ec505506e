package views

import (
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/explain"
	"jobpolicy.dev/services/internal/timeline"
)

// maxBars is how many pods are drawn one by one. For a Job with more, only sums and ranges
// of indexes are drawn.
const maxBars = 300

// lifeJSON is all that is shown of one Job.
type lifeJSON struct {
	// Gone: the Job no longer exists, and nothing else is set.
	Gone   bool            `json:"gone,omitempty"`
	Report *explain.Report `json:"report,omitempty"`
	// Ended is the rule that decided how the Job ends.
	Ended *explain.Rule `json:"ended,omitempty"`
	// Options are those of a JobPolicy in one line; empty: the Job has none.
	Options string `json:"options,omitempty"`
	// Life has a bar for each pod that still exists, unless there are too many.
	Life  timeline.Picture `json:"life"`
	Pods  int              `json:"pods"`
	Cells []cell           `json:"cells,omitempty"`
}

func (h *hub) life(uid types.UID, now time.Time) lifeJSON {
	o, pods, ok := h.cfg.Jobs.Job(uid, maxBars)
	if !ok {
		return lifeJSON{Gone: true}
	}
	var explained []corev1.Pod
	all := explain.Facts{Job: o.Job, Now: now}
	for _, p := range pods.Pods {
		pod := podOf(p)
		all.Pods = append(all.Pods, pod)
		if tells(p) {
			explained = append(explained, pod)
		}
	}
	var many late
	if pods.Known > maxBars {
		many = h.lookout.late(o, now)
		explained = append(example(o), many.example()...)
	}
	chart := timeline.Of(all)
	sum := pods.Summary
	counts := explain.Counts{Active: sum.GetActive(), Ready: sum.GetReady(), Terminating: sum.GetTerminating()}
	life := lifeJSON{
		Report:  recorded(o, o.Decision.Explained(), explained, many, now, counts),
		Options: optionsText(h.cfg.Jobs.Options(uid)),
		Life:    chart.Picture(), Pods: pods.Known, Cells: cells(o.Job, pods),
	}
	for _, r := range o.Decision.Ended().GetRules() {
		if r.GetDecided() {
			life.Ended = &explain.Rule{Name: r.GetRule().Name(), Decides: true, Answer: r.GetDetail()}
		}
	}
	return life
}

// optionsText lists the options by which the executor goes: the last ones that could be read, if these cannot.
func optionsText(o executor.Options) string {
	list := explain.OptionsOf(o.From, o.Job, len(o.Problems) == 0)
	if list == nil {
		return ""
	}
	return list.String()
}

// tells reports whether the cache says something about a pod that a report needs: that it
// has ended, why it does not start, or since when it has been Pending.
func tells(p *podcache.Pod) bool {
	return p.Ended() || !p.Deleting && (p.Phase() == corev1.PodPending || p.WaitingReason() != "")
}

// recorded explains the last decision. explained are the pods that the cache can explain. They
// may include only one example of the late pods.
func recorded(o executor.Observation, e *jobpolicyv1.Explanation, explained []corev1.Pod, late late, now time.Time, counts explain.Counts) *explain.Report {
	facts := explain.Facts{Job: timeline.Dated(o.Job), Pods: explained, NotStarting: int(max(o.Hindered.Pods, late.pods)), Refusals: o.Refusals, Now: now}
	if o.Standstill.Why != "" {
		facts.Events = []corev1.Event{{Reason: executor.EventRunawayCreation, Message: o.Standstill.Why, LastTimestamp: metav1.NewTime(o.Standstill.At)}}
	}
	r := explain.Recorded(facts, e, counts)
	if o.Decision == nil && wire.FinishedCondition(o.Job) == nil {
		r.State, r.Headline = explain.Waiting, "The Job waits for its first decision since the executor started."
	}
	return r
}

// podOf makes a pod from what the cache holds of it.
func podOf(p *podcache.Pod) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace(), UID: p.UID, CreationTimestamp: metav1.NewTime(p.Created)},
		Status:     corev1.PodStatus{Phase: p.Phase(), Reason: p.Reason()},
	}
	if p.Index >= 0 {
		pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(int(p.Index))}
	}
	p.EachCondition(func(c podcache.Condition) {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return // hinder writes it with its reason
		}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status})
	})
	status := corev1.ContainerStatus{RestartCount: p.MaxRestarts}
	switch {
	case p.Ended():
		// The cache does not have the container's start time, so the bar begins at the pod's.
		ended := &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(p.Created), FinishedAt: metav1.NewTime(p.ContainersEnded)}
		for _, exit := range p.Exits {
			status.Name, ended.ExitCode = exit.Container, exit.Code
			break
		}
		status.State.Terminated = ended
	case p.Ready:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(p.ReadyChanged)}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	hinder(&pod, p.WaitingReason())
	return pod
}
