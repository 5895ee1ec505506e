package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// statusSentences say what the status of a Job shows at its end, a few words each; a Job that
// is gone is nil.
func statusSentences(job *batchv1.Job) []string {
	if job == nil {
		return []string{"gone"}
	}
	s := job.Status
	said := []string{
		conditionSentence(s.Conditions),
		fmt.Sprintf("succeeded %d", s.Succeeded), fmt.Sprintf("failed %d", s.Failed),
	}
	if s.CompletedIndexes != "" {
		said = append(said, "completedIndexes "+s.CompletedIndexes)
	}
	if indexes := ptr.Deref(s.FailedIndexes, ""); indexes != "" {
		said = append(said, "failedIndexes "+indexes)
	}
	return append(said, contradictions(job)...)
}

// contradictions name the fields that contradict a Job's end; none is ever expected.
func contradictions(job *batchv1.Job) []string {
	var loose []string
	say := func(contradicts bool, format string, args ...any) {
		if contradicts {
			loose = append(loose, fmt.Sprintf(format, args...))
		}
	}
	s := job.Status
	complete, failed := conditionTrue(job, batchv1.JobComplete), conditionTrue(job, batchv1.JobFailed)
	say(s.Active != 0, "active %d", s.Active)
	say(ptr.Deref(s.Ready, 0) != 0, "ready %d", ptr.Deref(s.Ready, 0))
	say(ptr.Deref(s.Terminating, 0) != 0, "terminating %d", ptr.Deref(s.Terminating, 0))
	if u := s.UncountedTerminatedPods; u != nil {
		say(len(u.Succeeded)+len(u.Failed) > 0, "uncounted pods %d", len(u.Succeeded)+len(u.Failed))
	}
	say(complete && s.CompletionTime == nil, "no completionTime")
	say(!complete && s.CompletionTime != nil, "a completionTime")
	say((complete || failed) && s.StartTime == nil, "no startTime")
	say(!complete && !failed && s.StartTime != nil, "a startTime")
	return loose
}

// conditionSentence has all conditions in their order; what several of them give as their
// reason stands once.
func conditionSentence(conditions []batchv1.JobCondition) string {
	if len(conditions) == 0 {
		return "no condition"
	}
	var said []string
	for i, c := range conditions {
		text := string(c.Type)
		if c.Status != corev1.ConditionTrue {
			text = "not " + text
		}
		last := i == len(conditions)-1
		if last || conditions[i+1].Reason != c.Reason || conditions[i+1].Message != c.Message {
			text += fmt.Sprintf(" (%s: %s)", c.Reason, c.Message)
		}
		said = append(said, text)
	}
	return strings.Join(said, ", ")
}

// lifeSentences say what a Job's status does not show: what became of its pods, and their
// output. logs are those of the pods that are still there.
func lifeSentences(past history, logs []string) []string {
	var byIndex, stopped []int
	runs, selectors, memory := 0, []string{}, []string{}
	for _, pod := range past.pods {
		runs += 1 + int(pod.restarts)
		for pod.index >= len(byIndex) {
			byIndex = append(byIndex, 0)
		}
		if pod.index != noIndex {
			byIndex[pod.index]++
		}
		if pod.stopped {
			stopped = append(stopped, pod.index)
		}
		selectors = append(selectors, fmt.Sprint(pod.nodeSelector))
		memory = append(memory, pod.memory)
	}
	slices.Sort(stopped)
	slices.Sort(selectors)
	slices.Sort(memory)
	slices.Sort(logs)
	said := []string{
		fmt.Sprintf("active at most: %d", past.highest.active),
		fmt.Sprintf("alive at most: %d", past.highest.alive),
		fmt.Sprintf("seen terminating: %d", past.highest.terminating),
		fmt.Sprintf("pods in all: %d", len(past.pods)),
		fmt.Sprintf("container runs: %d", runs),
		"pods by index " + list(byIndex),
		"stopped pods of indexes " + list(stopped),
		"node selectors " + strings.Join(slices.Compact(selectors), ", "),
		"memory limits " + strings.Join(memory, ", "),
		"seconds before tries " + list(delaysOf(past.pods, func(pod podPast) time.Time { return pod.ended })),
		"seconds from due to the next pod " + list(delaysOf(past.pods, func(pod podPast) time.Time { return pod.due })),
		fmt.Sprintf("start times: %d", len(past.startTimes)),
		fmt.Sprintf("first pod %.0fs after the first start", firstPodAfter(past).Seconds()),
		fmt.Sprintf("pods left: %d", len(logs)),
		"output " + strings.Join(logs, "|"),
		"lines " + sortedLines(logs),
	}
	for _, series := range watchedSeries {
		said = append(said, fmt.Sprintf("%s at most %.0f", series, past.metrics[series]))
	}
	if past.gone {
		said = append(said, "before: "+conditionSentence(past.job.Status.Conditions))
		if deleted, completed := past.job.DeletionTimestamp, past.job.Status.CompletionTime; deleted != nil && completed != nil {
			said = append(said, fmt.Sprintf("deleted %.0fs after its end", deleted.Sub(completed.Time).Seconds()))
		}
	}
	return said
}

// firstPodAfter is how long after its first start the Job got its first pod; 0 without either.
func firstPodAfter(past history) time.Duration {
	if len(past.startTimes) == 0 || len(past.pods) == 0 {
		return 0
	}
	first := slices.MinFunc(past.pods, func(a, b podPast) int { return a.created.Compare(b.created) })
	return first.created.Sub(past.startTimes[0])
}

// delaysOf are the seconds from a time of each pod, such as its end, to the creation of the next. Pods that have no such time
// count for nothing.
func delaysOf(pods []podPast, of func(podPast) time.Time) []int {
	pods = slices.SortedFunc(slices.Values(pods), func(a, b podPast) int { return a.created.Compare(b.created) })
	var delays []int
	for i := 1; i < len(pods); i++ {
		if at := of(pods[i-1]); !at.IsZero() {
			delays = append(delays, int(pods[i].created.Sub(at).Seconds()))
		}
	}
	return delays
}

// sortedLines are all lines of all pods.
func sortedLines(logs []string) string {
	var lines []string
	for _, log := range logs {
		for line := range strings.Lines(log) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func list(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ","), "[]")
}

func conditionTrue(job *batchv1.Job, conditionType batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == conditionType && c.Status == corev1.ConditionTrue
	})
}

// podEnded reports whether no container of a pod runs any more.
func podEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
