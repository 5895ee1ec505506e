package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// A view is one side at rest, in lines that can be compared: names and UIDs
// are replaced by what they stand for, times by whether they are set.
type view struct {
	lines   []string
	changed time.Time
	// facts for choosing steps.
	facts facts
}

// facts are what the choice of the next step depends on.
type facts struct {
	exists, finished, suspended bool
	parallelism                 int32
	completions                 *int32
	active, pending, ending     []handle
}

// A handle is a pod on one side, with the class that makes it alike to others.
type handle struct {
	*seenPod
	index int
	class string
}

func (s *side) view(namespace string) view {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.scene(namespace)
	v := view{changed: sc.changed}
	v.lines = append(v.lines, sc.jobLines()...)
	v.lines = append(v.lines, sc.podLines()...)
	v.lines = append(v.lines, sc.eventLines(namespace)...)
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
	lines := []string{
		fmt.Sprintf("job: %s finalizers=%v", state, job.Finalizers),
		fmt.Sprintf("active=%d ready=%s terminating=%s succeeded=%d failed=%d", st.Active, text(st.Ready), text(st.Terminating), st.Succeeded, st.Failed),
		fmt.Sprintf("completedIndexes=%q failedIndexes=%s", st.CompletedIndexes, text(st.FailedIndexes)),
		fmt.Sprintf("startTime=%t completionTime=%t", st.StartTime != nil, st.CompletionTime != nil),
		"uncounted: " + uncounted(st.UncountedTerminatedPods),
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

// podLines say how many pods there are of each class, and were ever created.
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
	// The last that is seen of a pod that goes with its finalizer holds it still.
	if !p.gone && slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) {
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
	if len(p.OwnerReferences) == 0 {
		words = append(words, "orphan")
	}
	return strings.Join(words, " ")
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
func (sc *scene) eventLines(namespace string) []string {
	kinds := map[string]bool{}
	for _, e := range sc.events {
		if e.InvolvedObject.Kind == "Job" && e.Namespace == namespace {
			message := strings.TrimPrefix(e.Message, "(combined from similar events): ")
			kinds[fmt.Sprintf("event: %s %s %q", e.Type, e.Reason, sc.anonymous(message))] = true
		}
	}
	var lines []string
	for kind := range kinds {
		lines = append(lines, kind)
	}
	slices.Sort(lines)
	return lines
}

// anonymous replaces the pods' names.
func (sc *scene) anonymous(message string) string {
	for name, stands := range sc.names {
		message = strings.ReplaceAll(message, name, stands)
	}
	return message
}

func (sc *scene) facts() facts {
	f := facts{}
	if sc.job != nil {
		f.exists = sc.job.DeletionTimestamp == nil
		f.finished = finished(sc.job)
		f.suspended = sc.job.Spec.Suspend != nil && *sc.job.Spec.Suspend
		f.completions, f.parallelism = sc.job.Spec.Completions, *sc.job.Spec.Parallelism
	}
	for _, p := range sc.pods {
		h := handle{seenPod: p, index: indexOf(p.Pod), class: p.class()}
		over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		switch {
		case p.gone || over:
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

// shapes are the different pods that were created, and the Job, each as JSON
// without what differs by nature.
func (s *side) shapes(namespace string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc, set := s.scene(namespace), map[string]bool{}
	for _, p := range sc.pods {
		set[shape(p.first)] = true
	}
	var list []string
	for text := range set {
		list = append(list, text)
	}
	slices.Sort(list)
	if sc.job != nil {
		job := sc.job.DeepCopy()
		job.Status = batchv1.JobStatus{}
		job.ManagedFields, job.ResourceVersion = nil, ""
		job.CreationTimestamp.Reset()
		job.DeletionTimestamp = nil
		list = append(list, indented(job, string(job.UID)))
	}
	return list
}

func shape(first *corev1.Pod) string {
	pod := first.DeepCopy()
	jobUID := ""
	if len(pod.OwnerReferences) > 0 {
		jobUID = string(pod.OwnerReferences[0].UID)
	}
	pod.Name = strings.TrimPrefix(pod.Name, pod.GenerateName)
	pod.Name = fmt.Sprintf("<generated name of %d>", len(pod.Name))
	pod.UID, pod.ManagedFields, pod.ResourceVersion, pod.Generation = "", nil, "", 0
	pod.CreationTimestamp.Reset()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{}
	return indented(pod, jobUID)
}

func indented(object any, uid string) string {
	out, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		return err.Error()
	}
	if uid == "" {
		return string(out)
	}
	return strings.ReplaceAll(string(out), uid, "<uid of the Job>")
}
