package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// How long nothing may happen for a side to be at rest. The built-in controller
// gathers events for a second, and both retry what failed within some seconds.
// After a failure of a pod it is the longest delay before the next one.
const (
	settle             = 20 * time.Second
	settleAfterFailure = 11 * time.Minute
	// unfinished is how long a Job is waited for that is to finish, and may not.
	unfinished = time.Hour
	// patience is how long a side may take to come to rest.
	patience = 6 * time.Hour
)

// rest waits until the side is at rest, and for the Job to finish if that is asked
// for.
func (s *side) rest(finish bool) (view, error) {
	begun := time.Now()
	for {
		s.mu.Lock()
		changed, long := s.changed, settle
		if s.mayRetry() {
			long = settleAfterFailure
		}
		done := !finish || s.job != nil && finished(s.job)
		s.mu.Unlock()
		long += s.slow
		quiet := min(time.Since(begun), time.Since(changed))
		switch {
		case quiet >= long && (done || quiet >= unfinished):
			return s.view(), nil
		case time.Since(begun) > patience:
			return s.view(), fmt.Errorf("not at rest after %s: %s", patience, strings.Join(s.view().lines, "; "))
		}
		time.Sleep(max(long-quiet, time.Second))
	}
}

// mayRetry reports whether a pod may be on hold because others have failed.
func (sc *scene) mayRetry() bool {
	if sc.job == nil || finished(sc.job) {
		return false
	}
	for _, p := range sc.pods {
		if p.Status.Phase == corev1.PodFailed {
			return true
		}
	}
	return false
}

// An exemption says what of a case is not compared, because it is a matter of
// chance, by what its steps were so far.
type exemption struct {
	// loose: what the controllers did before the Job was gone was a race.
	// orphaning: so was what they did before the pods were orphans. deleting:
	// whether the Job is told to have finished before it goes is one, too.
	loose, orphaning, deleting bool
	// restarts: events that were not sent yet died with a controller.
	restarts bool
}

// after adds what follows from a line of steps.
func (e exemption) after(line string) exemption {
	e.deleting = e.deleting || strings.Contains(line, "delete")
	e.orphaning = e.orphaning || strings.Contains(line, "delete Orphan")
	e.loose = e.loose || strings.Contains(line, "delete") && strings.Contains(line, "&")
	return e
}

var failures = regexp.MustCompile(`^(active=.* failed=).*|^(completedIndexes=.* failedIndexes=).*`)

// withoutFailures hides how many pods have failed of a Job that succeeds. Those
// that are deleted because it does are not counted as failed, unless the
// controller, either of them, is killed between deleting and recording it.
func withoutFailures(lines []string) []string {
	if !contains(lines, ": SuccessCriteriaMet=True ") {
		return lines
	}
	for i, line := range lines {
		lines[i] = failures.ReplaceAllString(line, "$1$2?")
	}
	return lines
}

// maxEvents is from about how many on the recorder drops events on one object.
const maxEvents = 20

// comparable are the lines of a view, without what is exempt. told is how many
// events there are on the side that has more.
func (e exemption) comparable(v view, told int) []string {
	lines := slices.Clone(v.lines)
	if e.loose {
		lines = slices.DeleteFunc(lines, func(line string) bool {
			untracked := strings.HasPrefix(line, "pod ") && !strings.Contains(line, " tracked")
			return strings.HasPrefix(line, "pods created") || strings.Contains(line, " gone") || e.orphaning && untracked
		})
	}
	if e.restarts {
		lines = withoutFailures(lines)
	}
	if e.loose || e.orphaning || e.restarts || told >= maxEvents {
		return lines
	}
	return append(lines, slices.DeleteFunc(slices.Clone(v.events), func(line string) bool {
		return e.deleting && !strings.Contains(line, " Successful")
	})...)
}

// lineDiff shows both views in one list: "-" built-in only, "+" ours only.
func lineDiff(builtin, ours []string) string {
	var out []string
	for _, line := range builtin {
		mark := "  "
		if !slices.Contains(ours, line) {
			mark = "- "
		}
		out = append(out, mark+line)
	}
	for _, line := range ours {
		if !slices.Contains(builtin, line) {
			out = append(out, "+ "+line)
		}
	}
	return "    " + strings.Join(out, "\n    ")
}
