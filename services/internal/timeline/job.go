package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	"jobpolicy.dev/services/explain"
)

// Of is the chart of a Job: its pods, conditions and warnings, and its options.
func Of(f explain.Facts) Chart {
	f.Job = Dated(f.Job)
	var bars []Bar
	for i := range f.Pods {
		bar := barOf(&f.Pods[i])
		bar.Line = lineOf(f.Job, &f.Pods[i])
		bars = append(bars, bar)
	}
	c := New("Job "+f.Job.Namespace+"/"+f.Job.Name, f.Now, bars, marksOf(f))
	c.Options = f.Options()
	return c
}

// Dated is a Job whose conditions all have a time, and all times are within the bounds of
// wire.Time. The API does not demand that; a condition without a time gets that of the Job's
// end, start or creation. The Job itself stays as it is.
func Dated(job *batchv1.Job) *batchv1.Job {
	job = &batchv1.Job{TypeMeta: job.TypeMeta, ObjectMeta: job.ObjectMeta, Spec: job.Spec, Status: *job.Status.DeepCopy()}
	at := job.CreationTimestamp
	for _, later := range []*metav1.Time{job.Status.StartTime, job.Status.CompletionTime} {
		if later == nil {
			continue
		}
		if later.Time = wire.Time(later.Time); !later.IsZero() {
			at = *later
		}
	}
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = at
		} else {
			c.LastTransitionTime.Time = wire.Time(c.LastTransitionTime.Time)
		}
	}
	return job
}

// lineOf is the pod's index. A Job without indexes has one line if it runs one pod at a time.
func lineOf(job *batchv1.Job, p *corev1.Pod) int {
	if index := podcache.Index(p); index != podcache.NoIndex {
		return int(index)
	}
	if !wire.Indexed(job) && ptr.Deref(job.Spec.Parallelism, 1) == 1 {
		return 0
	}
	return -1
}

func barOf(p *corev1.Pod) Bar {
	b := Bar{Name: p.Name, Created: p.CreationTimestamp.Time, Text: string(p.Status.Phase)}
	restarts, exit, itself := int32(0), "", ""
	if reason := p.Status.Reason; reason != "" { // It says more than how a container was ended.
		itself = ", " + reason
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		restarts += s.RestartCount
		if running := s.State.Running; running != nil {
			b.Started = answer.Earlier(b.Started, running.StartedAt.Time)
		}
		t := s.State.Terminated
		if t == nil {
			continue
		}
		b.Started = answer.Earlier(b.Started, t.StartedAt.Time)
		if t.FinishedAt.After(b.Ended) {
			b.Ended = t.FinishedAt.Time
		}
		if t.ExitCode != 0 {
			exit = fmt.Sprintf(", exit code %d", t.ExitCode)
		}
	}
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		b.Outcome, b.Text = "succeeded", "succeeded"
	case corev1.PodFailed:
		b.Outcome, b.Text = "failed", "failed"+itself+exit
	default:
		b.Ended = time.Time{} // a container may have ended, but the pod has not
	}
	if b.Outcome != "" && b.Ended.IsZero() {
		b.Ended = b.Created
	}
	b.Started, b.Ended = wire.Time(b.Started), wire.Time(b.Ended)
	if restarts > 0 {
		b.Text += fmt.Sprintf(", restarts %d", restarts)
	}
	return b
}

// marksOf are the Job's start, conditions and events.
func marksOf(f explain.Facts) []Mark {
	marks := []Mark{{At: f.Job.CreationTimestamp.Time, Text: "created"}}
	if start := f.Job.Status.StartTime; start != nil {
		marks = append(marks, Mark{At: start.Time, Text: "started"})
	}
	for _, condition := range f.Job.Status.Conditions {
		text := fmt.Sprintf("%s (%s)", condition.Type, condition.Reason)
		if condition.Status != corev1.ConditionTrue {
			text = fmt.Sprintf("%s=%s (%s)", condition.Type, condition.Status, condition.Reason)
		}
		marks = append(marks, Mark{At: condition.LastTransitionTime.Time, Text: strings.TrimSuffix(text+": "+condition.Message, ": ")})
	}
	marks = append(marks, warnings("", f.Events)...)
	for i := range f.Pods {
		marks = append(marks, warnings(f.Pods[i].Name+": ", f.PodEvents[f.Pods[i].Name])...)
	}
	return marks
}

// warnings are the events of the type Warning.
func warnings(of string, events []corev1.Event) []Mark {
	var marks []Mark
	for i := range events {
		if e := &events[i]; e.Type == corev1.EventTypeWarning {
			marks = append(marks, Mark{At: explain.Seen(e), Text: of + e.Reason + ": " + e.Message})
		}
	}
	return marks
}
