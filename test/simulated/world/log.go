package world

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// A journal holds everything that happened, in order.
type journal struct {
	begun time.Time

	mu    sync.Mutex
	lines []line
}

// A line is a write, or a note.
type line struct {
	at    time.Time
	who   string
	text  string
	write *apiserver.Write
}

func (j *journal) note(who, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line{at: time.Now(), who: who, text: text})
}

func (j *journal) wrote(w apiserver.Write) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line{at: w.Time, who: w.By, write: &w})
}

// writes is how many writes there were.
func (j *journal) writes() int {
	n := 0
	for _, l := range j.lines {
		if l.write != nil {
			n++
		}
	}
	return n
}

// digest is the same for two logs with the same writes at the same times. Events are
// left out, because nobody acts on them.
func (j *journal) digest() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(j.log(), "\n"))))[:16]
}

// log is the writes with their times, without events.
func (j *journal) log() []string {
	var log []string
	for _, l := range j.lines {
		if l.logged() {
			log = append(log, fmt.Sprintf("%d %s", l.at.UnixNano(), describeWrite(l.write)))
		}
	}
	return log
}

func (l *line) logged() bool { return l.write != nil && l.write.Resource != "events" }

// story is the journal as text, with the broken rules where they were broken.
func (j *journal) story(breaches ...breach) string {
	lines := slices.Clone(j.lines)
	for _, b := range breaches {
		lines = append(lines, line{at: b.at, who: "JUDGE", text: fmt.Sprintf("%s is broken, %s: %s", b.rule, b.key, b.text)})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var out strings.Builder
	for _, l := range lines {
		text := l.text
		if l.write != nil {
			if l.write.Resource == "events" {
				continue
			}
			text = describeWrite(l.write)
		}
		fmt.Fprintf(&out, "%15s  %-14s %s\n", stamp(l.at.Sub(j.begun)), l.who, text)
	}
	return out.String()
}

// stamp is a time since the begin, to the microsecond.
func stamp(d time.Duration) string {
	d = d.Truncate(time.Microsecond)
	return fmt.Sprintf("%02d:%02d:%09.6f", int(d.Hours()), int(d.Minutes())%60, (d % time.Minute).Seconds())
}

// describeWrite says what a write changed.
func describeWrite(w *apiserver.Write) string {
	what := w.Resource
	if w.Subresource != "" {
		what += "/" + w.Subresource
	}
	head := fmt.Sprintf("%s %s %s", w.Verb, what, w.Key.Name)
	switch {
	case w.New == nil:
		return head + ": gone"
	case w.Old == nil:
		return head + " " + strings.Join(facts(w.New), ", ")
	}
	return head + ": " + changes(facts(w.Old), facts(w.New))
}

// changes are the facts that were added and removed.
func changes(before, after []string) string {
	var out []string
	for _, f := range after {
		if !slices.Contains(before, f) {
			out = append(out, f)
		}
	}
	for _, f := range before {
		name, _, _ := strings.Cut(f, "=")
		if !slices.ContainsFunc(after, func(a string) bool { n, _, _ := strings.Cut(a, "="); return n == name }) {
			out = append(out, "no "+name)
		}
	}
	if len(out) == 0 {
		return "(nothing that is told)"
	}
	return strings.Join(out, ", ")
}

// facts describes an object as name=value.
func facts(obj any) []string {
	switch o := obj.(type) {
	case *batchv1.Job:
		return append(metaFacts(o), jobFacts(o)...)
	case *corev1.Pod:
		return append(metaFacts(o), podFacts(o)...)
	case *batchv1.CronJob:
		return append(metaFacts(o), cronFacts(o)...)
	}
	return metaFacts(obj)
}

func metaFacts(obj any) []string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	var out []string
	if at := m.GetDeletionTimestamp(); at != nil {
		out = append(out, fmt.Sprintf("deleted=with %ds", *m.GetDeletionGracePeriodSeconds()))
	}
	if f := m.GetFinalizers(); len(f) > 0 {
		out = append(out, "finalizers="+strings.ReplaceAll(strings.Join(f, "+"), batchv1.JobTrackingFinalizer, "tracking"))
	}
	if len(m.GetOwnerReferences()) == 0 && len(m.GetGenerateName()) > 0 {
		out = append(out, "owner=none")
	}
	if _, stray := m.GetLabels()["stray"]; stray {
		out = append(out, "labels=stray")
	}
	return out
}
