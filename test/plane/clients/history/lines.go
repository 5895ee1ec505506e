package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

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
			lives = append(lives, l.states(names[l])...)
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

// states are the lines of a life: its conditions, and how it was left.
func (l *life) states(name string) []string {
	var lines []string
	latest, cut := map[string]string{}, false
	for _, version := range l.versions {
		for _, c := range conditions(version) {
			if latest[c.kind] != c.text {
				latest[c.kind] = c.text
				lines = append(lines, name+": "+c.text)
			}
		}
		cut = cut || version.GetDeletionTimestamp() != nil && !ended(latest)
	}
	if status := rest(l.last()); !cut && !(l.gone && !ended(latest)) && status != "" {
		lines = append(lines, name+": in the end "+status)
	}
	if l.gone {
		lines = append(lines, name+": deleted")
	} else if finalizers := l.last().GetFinalizers(); len(finalizers) > 0 && l.last().GetKind() == "Job" {
		lines = append(lines, fmt.Sprintf("%s: keeps its finalizers %v", name, finalizers))
	}
	return lines
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

// rest is a status without its conditions, in one line.
func rest(o *unstructured.Unstructured) string {
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	delete(status, "conditions")
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

// event says what an event says, but not how often; empty if it is about a pod: those of the node and
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
	return fmt.Sprintf("event about %s %s: %s %s: %s", strings.ToLower(about["kind"]), Clean(about["name"]), field("type"), field("reason"), Clean(field("message")))
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
		phase, _, _ = unstructured.NestedString(version.Object, "status", "phase")
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
