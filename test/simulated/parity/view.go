package parity

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A view is one side at rest, as lines that can be compared: placeholders replace names
// and UIDs, and times only say whether they are set.
type view struct {
	lines []string
	// events are the kinds of events on the Job; told is how many there were.
	events []string
	told   int
	// facts for choosing steps.
	facts facts
}

// facts are what the choice of the next step depends on.
type facts struct {
	exists, finished, suspended bool
	// remaining is the number of missing successes; -1 for a work queue.
	remaining               int32
	active, pending, ending []handle
}

// A handle is a pod on one side, with a class that equal pods share.
type handle struct {
	*seenPod
	index int
	class string
}

func (s *side) view() view {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc, v := &s.scene, view{}
	v.lines = append(v.lines, sc.jobLines()...)
	v.lines = append(v.lines, sc.podLines()...)
	v.events, v.told = sc.eventLines(), sc.told
	v.facts = sc.facts()
	return v
}

func (sc *scene) jobLines() []string {
	if sc.job == nil {
		return []string{"job: absent"}
	}
	job, st := sc.job, sc.job.Status
	state := "present"
	if job.DeletionTimestamp != nil {
		state = "deleting"
	}
	failed := fmt.Sprint(st.Failed)
	if job.DeletionTimestamp != nil {
		// If the garbage collector deletes pods before the controller releases them,
		// they count as failed. This is a race between the two.
		failed = "?"
	}
	lines := []string{
		fmt.Sprintf("job: %s finalizers=%v", state, job.Finalizers),
		fmt.Sprintf("active=%d ready=%s terminating=%s succeeded=%d failed=%s", st.Active, text(st.Ready), text(st.Terminating), st.Succeeded, failed),
		fmt.Sprintf("completedIndexes=%q failedIndexes=%s", st.CompletedIndexes, text(st.FailedIndexes)),
		fmt.Sprintf("startTime=%t completionTime=%t", st.StartTime != nil, st.CompletionTime != nil),
		"uncounted: " + uncounted(st.UncountedTerminatedPods),
	}
	if len(sc.jobs) > 1 {
		lines = append(lines, fmt.Sprintf("Jobs of this name so far: %d", len(sc.jobs)))
	}
	for i, c := range st.Conditions {
		lines = append(lines, fmt.Sprintf("condition %d: %s=%s %s %q", i+1, c.Type, c.Status, c.Reason, sc.anonymous(c.Message)))
	}
	return lines
}

func text[T any](p *T) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%v", *p)
}

func uncounted(u *batchv1.UncountedTerminatedPods) string {
	if u == nil {
		return "-"
	}
	return fmt.Sprintf("succeeded=%d failed=%d", len(u.Succeeded), len(u.Failed))
}

// podLines say how many pods of each class exist, and how many ever existed.
func (sc *scene) podLines() []string {
	classes, created := map[string]int{}, map[string]int{}
	for _, p := range sc.pods {
		classes[p.class()]++
		created[indexSuffix(p.Pod)]++
	}
	lines := []string{fmt.Sprintf("pods created: %d", len(sc.pods))}
	for index, n := range created {
		if index != "" {
			lines = append(lines, fmt.Sprintf("pods created for index%s: %d", index, n))
		}
	}
	for class, n := range classes {
		lines = append(lines, fmt.Sprintf("%s: %d", class, n))
	}
	slices.Sort(lines)
	return lines
}

func (p *seenPod) class() string {
	words := []string{"pod" + indexSuffix(p.Pod), string(p.Status.Phase)}
	if p.gone {
		words = append(words, "gone")
	}
	if p.DeletionTimestamp != nil && !p.gone {
		words = append(words, "deleting")
	}
	if p.tracked() {
		words = append(words, "tracked")
	}
	if podReady(p.Pod) {
		words = append(words, "ready")
	}
	if n := restarts(p.Pod); n > 0 {
		words = append(words, fmt.Sprintf("restarts=%d", n))
	}
	for _, key := range []string{batchv1.JobIndexFailureCountAnnotation, batchv1.JobIndexIgnoredFailureCountAnnotation} {
		if n, ok := p.Annotations[key]; ok {
			words = append(words, strings.TrimPrefix(key, "batch.kubernetes.io/")+"="+n)
		}
	}
	if len(p.Spec.SchedulingGates) > 0 {
		words = append(words, "gated")
	}
	switch owner := metav1.GetControllerOf(p.Pod); {
	case owner == nil:
		words = append(words, "orphan")
	case owner.Kind != "Job":
		words = append(words, "owned by "+owner.Kind)
	}
	return strings.Join(words, " ")
}

// tracked reports whether the pod exists and has the tracking finalizer. The last version of
// a pod that is gone may still have it.
func (p *seenPod) tracked() bool {
	return !p.gone && slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer)
}

func indexSuffix(pod *corev1.Pod) string {
	if index, ok := pod.Annotations[batchv1.JobCompletionIndexAnnotation]; ok {
		return " " + index
	}
	return ""
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func restarts(pod *corev1.Pod) (n int32) {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		n += c.RestartCount
	}
	return n
}

// eventLines are the kinds of events on the Job, each once.
func (sc *scene) eventLines() []string {
	kinds := map[string]bool{}
	for e := range sc.said {
		kinds[fmt.Sprintf("event: %s %s %q", e.kind, e.reason, sc.anonymous(e.message))] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}

// anonymous replaces the pods' names.
func (sc *scene) anonymous(message string) string {
	for name, stands := range sc.names {
		message = strings.ReplaceAll(message, name, stands)
	}
	return message
}

func (sc *scene) facts() facts {
	f := facts{remaining: -1}
	if sc.job != nil {
		if wanted := sc.job.Spec.Completions; wanted != nil {
			f.remaining = *wanted - sc.job.Status.Succeeded
		}
		f.exists = sc.job.DeletionTimestamp == nil
		f.finished = finished(sc.job)
		f.suspended = sc.job.Spec.Suspend != nil && *sc.job.Spec.Suspend
	}
	for _, p := range sc.pods {
		h := handle{seenPod: p, index: indexOf(p.Pod), class: p.class()}
		over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		switch {
		case p.gone, over:
		case p.DeletionTimestamp != nil:
			f.ending = append(f.ending, h)
		case p.Status.Phase == corev1.PodRunning:
			f.active = append(f.active, h)
		default:
			f.pending = append(f.pending, h)
		}
	}
	for _, handles := range [][]handle{f.active, f.pending, f.ending} {
		slices.SortFunc(handles, func(a, b handle) int {
			if a.index != b.index {
				return a.index - b.index
			}
			return strings.Compare(a.class+a.Name, b.class+b.Name)
		})
	}
	return f
}

func finished(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

func indexOf(pod *corev1.Pod) int {
	index, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return -1
	}
	return index
}
