package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Lines says what was recorded. The rules are those of the package comment.
func (r *Recorder) Lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := r.names()
	var lives, pods, events []string
	for _, l := range r.order {
		switch l.last().GetKind() {
		case "Event":
			if e := l.event(); e != "" {
				events = append(events, e)
			}
		case "Pod":
			pods = append(pods, l.pod(names))
		default:
			for _, state := range l.states(names[l]) {
				lives = append(lives, state.line)
			}
		}
	}
	// Stable: the lines of one life keep their order.
	slices.SortStableFunc(lives, func(a, b string) int { return strings.Compare(subject(a), subject(b)) })
	slices.Sort(events)
	return slices.Concat(lives, count(pods), slices.Compact(events))
}

// subject is the part of a line that names a life.
func subject(line string) string {
	name, _, _ := strings.Cut(line, ": ")
	return name
}

// names gives each life that is no pod and no event its name.
func (r *Recorder) names() map[*life]string {
	names, had := map[*life]string{}, map[string]int{}
	for _, l := range r.order {
		if kind := l.last().GetKind(); kind == "Pod" || kind == "Event" {
			continue
		}
		name := strings.ToLower(l.last().GetKind()) + " " + Clean(l.last().GetName())
		had[name]++
		names[l] = name
		if had[name] > 1 {
			names[l] = fmt.Sprintf("%s (%d)", name, had[name])
		}
	}
	return names
}

func (l *life) last() *unstructured.Unstructured { return l.versions[len(l.versions)-1] }

// A state is a line about a life, and when it was seen.
type state struct {
	line string
	at   time.Time
}

// byTime are the lines about lives that are no pods and no events, and every version of Jobs, in the order in which they
// were seen.
func (r *Recorder) byTime() []state {
	r.mu.Lock()
	defer r.mu.Unlock()
	var states []state
	for l, name := range r.names() {
		states = append(states, l.states(name)...)
		states = append(states, l.counts(name)...)
	}
	slices.SortStableFunc(states, func(a, b state) int { return a.at.Compare(b.at) })
	return states
}

// Spans are the times between lines that begin with from and the next line that begins with to.
func (r *Recorder) Spans(from, to string) []time.Duration {
	var spans []time.Duration
	var begin time.Time
	for _, s := range r.byTime() {
		switch {
		case begin.IsZero() && strings.HasPrefix(s.line, from):
			begin = s.at
		case !begin.IsZero() && strings.HasPrefix(s.line, to):
			spans = append(spans, s.at.Sub(begin))
			begin = time.Time{}
		}
	}
	return spans
}

// Times says when each line about a life was seen, in seconds since the recording began.
func (r *Recorder) Times() []string {
	var lines []string
	for _, s := range r.byTime() {
		lines = append(lines, fmt.Sprintf("%7.3f %s", s.at.Sub(r.begin).Seconds(), s.line))
	}
	return lines
}

// states are the lines of a life: its conditions, and how it was left.
func (l *life) states(name string) []state {
	var states []state
	latest, cut := map[string]string{}, false
	for i, version := range l.versions {
		for _, c := range conditions(version) {
			if latest[c.kind] != c.text && !passing.MatchString(c.text) {
				latest[c.kind] = c.text
				states = append(states, state{name + ": " + c.text, l.seen[i]})
			}
		}
		cut = cut || version.GetDeletionTimestamp() != nil && !ended(latest)
	}
	end := func(text string) { states = append(states, state{name + ": " + text, l.seen[len(l.seen)-1]}) }
	if status := rest(l.last()); !cut && !(l.gone && !ended(latest)) && status != "" {
		end("in the end " + status)
	}
	if l.gone {
		end("deleted")
	} else if finalizers := l.last().GetFinalizers(); len(finalizers) > 0 && l.last().GetKind() == "Job" {
		end(fmt.Sprintf("keeps its finalizers %v", finalizers))
	}
	return states
}

// passing matches conditions and events of Workloads that say what one waits for at the moment, or that its Job is gone while the
// garbage collector has not deleted it yet, and why the head of a Ray cluster is not ready yet. Whether somebody looks meanwhile is a matter of timing.
var passing = regexp.MustCompile(`^(PodsReady=|HeadPodReady=False |QuotaReserved=False \((Pending|Inadmissible): |Finished=True \(OwnerNotFound: |Warning Pending: )`)

// counts are the versions of a Job: whether it is suspended, and its status without conditions.
func (l *life) counts(name string) []state {
	if l.last().GetKind() != "Job" {
		return nil
	}
	var states []state
	for i, version := range l.versions {
		suspend, _, _ := unstructured.NestedBool(version.Object, "spec", "suspend")
		states = append(states, state{fmt.Sprintf("%s: version with suspend=%t %s", name, suspend, rest(version)), l.seen[i]})
	}
	return states
}

// A condition is what counts of one.
type condition struct{ kind, text string }

func conditions(o *unstructured.Unstructured) []condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var found []condition
	for _, entry := range list {
		fields, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		text := fmt.Sprintf("%v=%v (%s: %s)", fields["type"], fields["status"], word(fields["reason"]), Clean(word(fields["message"])))
		found = append(found, condition{word(fields["type"]), text})
	}
	return found
}

func word(value any) string {
	s, _ := value.(string)
	return s
}

// endings are the conditions of Jobs, JobSets and Workloads that end them.
var endings = []string{"Complete", "Failed", "Completed", "Finished"}

func ended(latest map[string]string) bool {
	return slices.ContainsFunc(endings, func(kind string) bool { return strings.HasPrefix(latest[kind], kind+"=True") })
}

// uncompared are fields of a status that say something else: conditions have lines of their own. The others are a time of Kueue's,
// and what Kueue and KubeRay had seen when they looked last before the end.
var uncompared = []string{"conditions", "accumulatedPastExecutionTimeSeconds", "reclaimablePods", "rayClusterStatus"}

// rest is a status without what is uncompared, in one line.
func rest(o *unstructured.Unstructured) string {
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	for _, field := range uncompared {
		delete(status, field)
	}
	trimmed := trim(status)
	if trimmed == nil {
		return ""
	}
	text, err := json.Marshal(trimmed)
	if err != nil {
		return err.Error()
	}
	return Clean(string(text))
}

// trim leaves out zeros and what is empty, so that absent and zero are equal.
func trim(value any) any {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, item any) bool { return trim(item) == nil })
		if len(v) == 0 {
			return nil
		}
	case []any:
		for _, item := range v {
			trim(item)
		}
		if len(v) == 0 {
			return nil
		}
	case int64, float64:
		if v == int64(0) || v == float64(0) {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	case nil:
		return nil
	}
	return value
}

// event says what an event says, but not how often; empty if it does not count, as those about a pod: the node and
// the scheduler are the same on both sides.
func (l *life) event() string {
	e := l.last()
	about, _, _ := unstructured.NestedStringMap(e.Object, "involvedObject")
	field := func(name string) string {
		text, _, _ := unstructured.NestedString(e.Object, name)
		return text
	}
	if about["kind"] == "Pod" {
		return ""
	}
	text := fmt.Sprintf("%s %s: %s", field("type"), field("reason"), Clean(strings.TrimPrefix(field("message"), "(combined from similar events): ")))
	if passing.MatchString(text) {
		return ""
	}
	return fmt.Sprintf("event about %s %s: %s", strings.ToLower(about["kind"]), Clean(about["name"]), text)
}

// indexAnnotation is that of pods of Indexed Jobs.
const indexAnnotation = "batch.kubernetes.io/job-completion-index"

// pod says whose a pod is, and how it ended.
func (l *life) pod(names map[*life]string) string {
	pod := l.last()
	owner := "nobody"
	for other, name := range names {
		for _, reference := range pod.GetOwnerReferences() {
			if reference.UID == other.last().GetUID() {
				owner = name
			}
		}
	}
	line := "pod of " + owner
	if index, ok := pod.GetAnnotations()[indexAnnotation]; ok {
		line += " index " + index
	}
	line += ": " + l.outcome()
	if len(pod.GetFinalizers()) > 0 && !l.gone {
		line += ", with a finalizer"
	}
	return line
}

// outcome is how a pod ended: by itself, or because it was deleted before that.
func (l *life) outcome() string {
	phase := ""
	for _, version := range l.versions {
		phase = phaseOf(version)
		switch {
		case phase == "Succeeded" || phase == "Failed":
			return phase
		case version.GetDeletionTimestamp() != nil:
			return "stopped"
		}
	}
	if l.gone {
		return "stopped"
	}
	return phase
}

func phaseOf(pod *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	return phase
}

// count writes equal lines once, with how many there were.
func count(lines []string) []string {
	had := map[string]int{}
	for _, line := range lines {
		had[line]++
	}
	var counted []string
	for _, line := range slices.Sorted(maps.Keys(had)) {
		counted = append(counted, fmt.Sprintf("%s ×%d", line, had[line]))
	}
	return counted
}
