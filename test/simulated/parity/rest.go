package parity

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// How long nothing may happen before a side is at rest. The built-in controller
// collects events for a second, and both controllers retry within some seconds. After a
// pod failed it is the longest retry delay.
const (
	settle             = 20 * time.Second
	settleAfterFailure = 11 * time.Minute
	// unfinished is how long to wait for a Job that should finish, but may not.
	unfinished = time.Hour
	// patience is how long a side may take to come to rest.
	patience = 6 * time.Hour
)

// rest waits until the side is at rest and, on request, until the Job is finished.
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

// mayRetry reports whether a retry delay may hold back a pod.
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

// An exemption says what is not compared in a case, because after the steps so far it
// is a matter of chance.
type exemption struct {
	// loose: what the controllers did before the Job was gone depends on a race.
	// orphaning: what they did before the pods were orphans depends on a race. deleting:
	// whether the Job finishes before it is deleted depends on a race.
	loose, orphaning, deleting bool
	// restarts: a killed controller loses the events that it has not sent.
	restarts bool
}

// after adds what follows from a line of steps.
func (e exemption) after(line string) exemption {
	e.deleting = e.deleting || strings.Contains(line, "delete")
	e.orphaning = e.orphaning || strings.Contains(line, "delete Orphan")
	e.loose = e.loose || strings.Contains(line, "delete") && strings.Contains(line, "&")
	return e
}

var (
	failures = regexp.MustCompile(`^(active=.* failed=).*|^(completedIndexes=.* failedIndexes=).*`)
	// stopsPods matches the verdicts by which a Job fails while its pods may run. A Job with reason
	// FailedIndexes has none that run.
	stopsPods = regexp.MustCompile(`: FailureTarget=True (` + reasonsBut(batchv1.JobReasonFailedIndexes) + `) `)
)

// withoutFailures hides what depends on the moment in which a controller is killed: how many
// pods have failed of a Job that succeeds, and which indexes of one that fails while pods run.
// Pods that are deleted because of the success do not count as failed, and those that are deleted
// because of the failure do not make their index fail, unless the controller is killed after
// deleting and before recording them.
func withoutFailures(lines []string) []string {
	succeeds, fails := contains(lines, ": SuccessCriteriaMet=True "), slices.ContainsFunc(lines, stopsPods.MatchString)
	for i, line := range lines {
		if succeeds || fails && strings.HasPrefix(line, "completedIndexes=") {
			lines[i] = failures.ReplaceAllString(line, "$1$2?")
		}
	}
	return lines
}

// maxEvents is about the number of events on one object above which the recorder drops
// some.
const maxEvents = 20

// comparable are the lines of a view without the exempt ones. told is the number of
// events on the side with more of them.
func (e exemption) comparable(v view, told int) []string {
	lines := slices.Clone(v.lines)
	if e.loose {
		lines = slices.DeleteFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, "pods created") || strings.Contains(line, " gone") || e.orphaning && untracked(line)
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

func untracked(line string) bool {
	return strings.HasPrefix(line, "pod ") && !strings.Contains(line, " tracked")
}

// orphans are the lines about untracked pods that still exist. A step may be about any of them.
func orphans(v view) []string {
	return slices.DeleteFunc(slices.Clone(v.lines), func(line string) bool { return !untracked(line) || strings.Contains(line, " gone") })
}
