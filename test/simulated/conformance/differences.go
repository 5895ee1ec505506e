package conformance

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
	Name, Reason string
	// explain returns our view without the effect of the difference, so that it should
	// equal the built-in view. If the difference does not show, it returns our view
	// unchanged.
	explain func(builtin, ours []string) []string
}

// suspendedFinishes is the name of a difference that more than one test looks for.
const suspendedFinishes = "a suspended Job finishes"

// Differences is the whole list. Differences in time only are not on it,
// because times are not compared.
func Differences() []Difference {
	return []Difference{{
		Name: suspendedFinishes,
		Reason: "A Job that is suspended, and then has enough successes because it was resized, or too many failures because it adopts a failed " +
			"pod, gets SuccessCriteriaMet or FailureTarget from both. The built-in controller never gets further: the Job has no start time, and the " +
			"API server refuses a Complete or Failed Job without one. Here startTime is set together with the last condition. A Job that adopts " +
			"ended pods as soon as it is created may get no condition Suspended here.",
		explain: explainStuck,
	}, {
		Name: "a pod that the controller deletes fails no Job",
		Reason: "The pods that a Job has too many, because it is suspended or has less parallelism, are released before they are deleted, so that " +
			"they do not count as failed. While one of them is still to be seen after it has ended, the built-in controller nevertheless holds its " +
			"exit code against a FailJob rule; a NotIn rule matches the 143 of any pod that was told to stop. Whether the Job then fails is a race. " +
			"Here a pod that was released for good decides nothing.",
		explain: explainOwnDeletion,
	}, {
		Name: "a pod that its Job no longer selects does not hold up the Job's deletion",
		Reason: "A Job that is deleted in the foreground waits for its pods. If one of them has lost the labels that the Job selects by, the built-in " +
			"controller does not see that it is the Job's, and never lets go of it. Here it is released and left alone.",
		explain: explainStray,
	}, {
		Name: "pods that are deleted with their Job decide nothing",
		Reason: "The pods of a Job that is deleted in the foreground are deleted milliseconds after it. In the built-in controller they count by how they end, " +
			"and so may make the Job Failed or Complete on its way out; a work queue that had a success becomes Complete because its other pods are gone. " +
			"Here they are released, and count nowhere.",
		explain: explainDeletedPods,
	}, {
		Name: "a Job whose end was decided while it was suspended starts when it is resumed",
		Reason: "While its last pods end, it is resumed. Both set its start time, without which it cannot be Complete or Failed; the built-in controller " +
			"writes it only together with something else.",
		explain: explainStarted,
	}, {
		Name: "an event tells only of a status that is written",
		Reason: "The built-in controller sends the event Suspended, and then writes the status. If somebody changes the Job in that moment, so that the write is refused " +
			"and the Job now has to fail, the event tells of something that never was. Here the event is sent when the status is written.",
		explain: explainUnwritten,
	}, {
		Name: verdictIsFirst,
		Reason: "The built-in controller deletes the pods that run in the moment in which it finds that the Job has to end, before it writes why. Here the " +
			"verdict is written first, and a pod that ends by itself meanwhile is not deleted any more. Found only if the built-in side, seeing " +
			"things later, otherwise shows the same (races.go).",
		explain: func(_, ours []string) []string { return ours },
	}, {
		Name: deletesBeforeTheEnd,
		Reason: "The built-in controller writes SuccessCriteriaMet and Complete, or FailureTarget and Failed, in one sync if no pod is left to wait for. It looks " +
			"for pods only before that. Here each write is a reconcile of its own. A pod that appears between the two, within milliseconds, is adopted if it " +
			"has no controller, and deleted, as the built-in controller does if it has to wait between the two. Found only if the built-in side, seeing " +
			"things later, otherwise shows the same (races.go).",
		explain: func(_, ours []string) []string { return ours },
	}}
}

// explainStarted: the only difference is the start time of a Job that is still marked
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

// explainOwnDeletion: the built-in Job fails, or is about to fail, because of the exit code of
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
// differences.
func alikeButFor(builtin, ours []string) (names []string, same bool) {
	for _, d := range Differences() {
		explained := d.explain(builtin, slices.Clone(ours))
		if !slices.Equal(explained, ours) {
			names, ours = append(names, d.Name), explained
		}
	}
	return names, slices.Equal(builtin, ours)
}
