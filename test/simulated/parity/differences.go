package parity

import (
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/test/simulated/jobspec"
)

// A Difference is one way in which this project deliberately differs from the built-in
// controller. Any other difference is a failure.
type Difference struct {
	// Row is the difference's row in services/differences.
	Row string
	// explain returns our view without the effect of the difference, so that it should
	// equal the built-in view. If the difference does not show, it returns our view
	// unchanged.
	explain func(builtin, ours []string) []string
}

// The rows that races.go and the shadow look for, too.
const (
	suspendedFinishes = "suspended-finishes"
	verdictIsFirst    = "verdict-first"
	podBeforeTheEnd   = "pod-before-the-end"
)

// Differences is the whole list. Differences in time only are not on it,
// because times are not compared.
func Differences() []Difference {
	unexplained := func(_, ours []string) []string { return ours }
	return []Difference{
		{suspendedFinishes, explainStuck},
		{"own-deletion", explainOwnDeletion},
		{"no-longer-selected", explainStray},
		{"deleted-with-its-job", explainDeletedPods},
		{"resumed-while-ending", explainStarted},
		{"unwritten-suspension", explainUnwritten},
		// Found only if the built-in side, seeing things later, otherwise shows the same (races.go).
		{verdictIsFirst, unexplained},
		{podBeforeTheEnd, unexplained},
	}
}

// explainStarted: both sides set the start time of a Job that is resumed, and the built-in one writes it
// only together with something else. The only difference is the start time of a Job that is still marked
// as suspended, has an interim condition, and has pods that are ending.
func explainStarted(builtin, ours []string) []string {
	interim := contains(ours, ": FailureTarget=True ") || contains(ours, ": SuccessCriteriaMet=True ")
	waits := contains(ours, ": Suspended=True ") && contains(ours, " deleting")
	if !interim || !waits || slices.ContainsFunc(ours, terminal.MatchString) || !slices.Contains(builtin, "startTime=false completionTime=false") {
		return ours
	}
	taken := slices.Clone(ours)
	for i, line := range taken {
		taken[i] = startTime.ReplaceAllString(line, "startTime=false completionTime=false")
	}
	return taken
}

// explainUnwritten: the built-in side tells that the Job is suspended, and its status has never said
// so.
func explainUnwritten(builtin, ours []string) []string {
	told := slices.Equal(without(builtin, ours), []string{`event: Normal Suspended "Job suspended"`})
	if !told || contains(builtin, ": Suspended=") || len(without(ours, builtin)) > 0 {
		return ours
	}
	return slices.Clone(builtin)
}

// explainStray: a pod with its finalizer delays the built-in Job; ours is gone and has
// left a pod behind.
func explainStray(builtin, ours []string) []string {
	held := withPrefix(builtin, "job: deleting finalizers=[foregroundDeletion]") && contains(builtin, " deleting tracked")
	if !held || !slices.Contains(ours, "job: absent") || !contains(ours, " orphan: ") {
		return ours
	}
	return slices.Clone(builtin)
}

// explainDeletedPods: both Jobs are being deleted, or gone. The built-in one has a verdict, or has
// counted more successes, and ours has no verdict. All else is the same.
func explainDeletedPods(builtin, ours []string) []string {
	of := func(lines []string) []string {
		return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
			return statusOfDeleted.MatchString(line) || verdicts.MatchString(line)
		})
	}
	leaves := withPrefix(builtin, "job: deleting") || withPrefix(builtin, "job: absent")
	if !leaves || slices.ContainsFunc(ours, verdicts.MatchString) || !slices.Equal(of(builtin), of(ours)) {
		return ours
	}
	return slices.Clone(builtin)
}

// explainOwnDeletion: a NotIn rule of a pod failure policy matches the 143 of any pod that was told to stop,
// and whether the built-in controller sees that pod's end is a race. The built-in Job fails, or is about to fail, because of the exit code of
// a pod that the controller deleted; ours has deleted pods itself, too, and does not fail.
func explainOwnDeletion(builtin, ours []string) []string {
	doomed := slices.ContainsFunc(builtin, func(line string) bool {
		return strings.Contains(line, ": FailureTarget=True PodFailurePolicy ") && strings.Contains(line, "exit code 143 ")
	})
	if !doomed || contains(ours, ": FailureTarget=True ") || !withPrefix(ours, "event: Normal SuccessfulDelete ") {
		return ours
	}
	return slices.Clone(builtin)
}

// stuck: a Job has to end and does not, because it has no start time.
func stuck(builtin []string) bool {
	interim := contains(builtin, ": SuccessCriteriaMet=True ") || contains(builtin, ": FailureTarget=True ")
	return interim && !slices.ContainsFunc(builtin, terminal.MatchString) && slices.Contains(builtin, "startTime=false completionTime=false")
}

var (
	terminal  = regexp.MustCompile(`^condition \d: (Complete|Failed)=True (\w+) `)
	startTime = regexp.MustCompile(`^startTime=true completionTime=.*`)
	// verdicts are the conditions and events of a verdict. statusOfDeleted is what it, and a
	// success that counts, change beside them.
	verdicts        = regexp.MustCompile(`^(condition \d: (SuccessCriteriaMet|FailureTarget|Complete|Failed)=True|event: (Normal Completed|Warning (` + reasonsBut(batchv1.JobReasonDeadlineExceeded) + `)) )`)
	statusOfDeleted = regexp.MustCompile(`^(active=|completedIndexes=|startTime=|uncounted: )`)
)

// explainStuck: the built-in Job has its interim condition and no start time.
func explainStuck(builtin, ours []string) []string {
	if !stuck(builtin) {
		return ours
	}
	var taken []string
	told := ""
	for _, line := range ours {
		if match := terminal.FindStringSubmatch(line); match != nil {
			told = "event: Warning " + match[2] + " "
			if match[1] == "Complete" {
				told = "event: Normal Completed "
			}
			continue
		}
		if told != "" && strings.HasPrefix(line, told) {
			continue
		}
		taken = append(taken, startTime.ReplaceAllString(line, "startTime=false completionTime=false"))
	}
	if told == "" {
		return ours
	}
	return suspendedFirst(builtin, taken)
}

// suspendedFirst adds the condition that the built-in controller writes to a suspended Job before
// it has seen the pods that the Job adopts. Ours may see them at once.
func suspendedFirst(builtin, ours []string) []string {
	const first, second = "condition 1: ", "condition 2: "
	at := slices.IndexFunc(ours, func(line string) bool { return strings.HasPrefix(line, first) })
	written := slices.IndexFunc(builtin, func(line string) bool { return strings.HasPrefix(line, first+"Suspended=True") })
	if at < 0 || written < 0 || contains(ours, "Suspended=") {
		return ours
	}
	ours[at] = second + strings.TrimPrefix(ours[at], first)
	return slices.Insert(ours, at, builtin[written])
}

// reasonsBut is an expression for the reasons of Jobs that fail, except one.
func reasonsBut(except string) string { return strings.Join(jobspec.Reasons(except), "|") }

func withPrefix(lines []string, prefix string) bool {
	return slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, prefix) })
}

func contains(lines []string, part string) bool {
	return slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, part) })
}

// alikeButFor reports whether two views differ only deliberately, and names the
// differences by their rows.
func alikeButFor(builtin, ours []string) (names []string, same bool) {
	for _, d := range Differences() {
		explained := d.explain(builtin, slices.Clone(ours))
		if !slices.Equal(explained, ours) {
			names, ours = append(names, d.Row), explained
		}
	}
	return names, slices.Equal(builtin, ours)
}
