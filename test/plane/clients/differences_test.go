package clients

import (
	"regexp"

	"jobpolicy.dev/test/plane/clients/history"
)

// differences are those that histories may show. A row of the product is also in docs/differences.md or ARCHITECTURE.md; the
// others say why the client itself behaves in two ways.
var differences = []history.Difference{{
	Name: "JobSet creates a Job twice",
	Reason: "When JobSet restarts, it may look for its Jobs before its cache shows those that it has just created. It then tries to create them again, " +
		"is told that they exist, and says so in an event. This happens with either side.",
	Scenario: regexp.MustCompile(`^jobset/`),
	Builtin:  createdTwice,
	Ours:     createdTwice,
	Race:     true,
}, {
	Name: "pods that are deleted with their Job decide nothing",
	Reason: "The pods of a Job that is deleted in the foreground are deleted milliseconds after it. In the built-in controller they count as failed if it is late, and the " +
		"Job fails on its way out. JobSet then fails, too, instead of creating the Job again.",
	Scenario: regexp.MustCompile(`^jobset/children-deleted$`),
	Builtin:  regexp.MustCompile(`^(prints created again: |(job|jobset|pod of job|event about job|event about jobset) c[0-9]+)`),
	Ours:     regexp.MustCompile(`^(prints created again: 20 of 20|(job|jobset|pod of job|event about job|event about jobset) c[0-9]+)`),
	Race:     true,
}, {
	Name: "a Job that never ran says late that it is suspended",
	Reason: "Routine statuses may wait (ARCHITECTURE.md): the executor waits a second with the condition Suspended of a Job that has never run, so that a client which creates a suspended Job can change it at " +
		"once without a conflict. If the Job is resumed within that second, it never says so.",
	Builtin: regexp.MustCompile(`^(job [a-z0-9-]+: Suspended=|event about job [a-z0-9-]+: Normal (Suspended|Resumed): )`),
	Race:    true,
}, {
	Name:     "Kueue finishes the Workload of a Job that is gone, or not",
	Reason:   "Kueue says that a Workload whose Job is gone is finished if it looks before the garbage collector has deleted it.",
	Scenario: regexp.MustCompile(`^kueue/`),
	Builtin:  ownerGone,
	Ours:     ownerGone,
	Race:     true,
}}

var ownerGone = regexp.MustCompile(`^workload [a-z0-9-]+~: (Finished=True \(OwnerNotFound: |in the end )`)

var createdTwice = regexp.MustCompile(`^event about jobset a: Warning JobCreationFailed: job "[a-z0-9-]+" creation failed with error: jobs.batch "[a-z0-9-]+" already exists$`)
