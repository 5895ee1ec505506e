package clients

import (
	"regexp"
	"testing"

	"jobpolicy.dev/services/differences"
	"jobpolicy.dev/test/plane/clients/history"
)

// ofTheProduct are rows of services/differences.
var ofTheProduct = []history.Difference{{
	Name:     "deleted-with-its-job", // JobSet then fails, too, instead of creating the Job again.
	Scenario: regexp.MustCompile(`^jobset(-with-engine)?/children-deleted$`),
	Sign:     regexp.MustCompile(`^event about job c[0-9]+-workers-0: Warning BackoffLimitExceeded: `),
	Builtin:  regexp.MustCompile(`^(prints created again: |(job|jobset|pod of job|event about job|event about jobset) c[0-9]+)`),
	Ours:     regexp.MustCompile(`^(prints created again: 20 of 20|(job|jobset|pod of job|event about job|event about jobset) c[0-9]+)`),
	Race:     true,
}, {
	Name:     "created-suspended", // A Job that is resumed before that never says it.
	Scenario: regexp.MustCompile(`^kueue(-with-engine)?/|/resumed-at-once$`),
	Builtin:  regexp.MustCompile(`^job [a-z0-9-]+: Suspended=True \(JobSuspended: `),
	Race:     true,
}}

// ofClients are what clients themselves do in two ways, with either side.
var ofClients = []history.Difference{{
	Name: "JobSet creates a Job twice",
	Reason: "When JobSet restarts, it may look for its Jobs before its cache shows those that it has just created. It then tries to create them again, " +
		"is told that they exist, and says so in an event.",
	Scenario: regexp.MustCompile(`^jobset(-with-engine)?/`),
	Builtin:  createdTwice,
	Ours:     createdTwice,
	Race:     true,
}, {
	Name: "Kueue keeps the quota of failed indexes",
	Reason: "Kueue v0.19.0 keeps the quota of an index that has failed for good until the Job has ended (kueue#13482). Kueue that asks the engine gives it " +
		"to the next Job at once, which is done while the first one still runs.",
	Scenario: regexp.MustCompile(`^kueue-with-engine/failed-index$`),
	Builtin:  regexp.MustCompile(`^prints done while both run: no$`),
	Ours:     regexp.MustCompile(`^prints done while both run: yes$`),
}}

// known are the differences that histories may show.
var known = append(ofTheProduct, ofClients...)

// createdTwice names one Job or several, each in a line of its own.
var createdTwice = regexp.MustCompile(`^event about jobset a: Warning JobCreationFailed: (job "[a-z0-9-]+" creation failed with error: jobs.batch "[a-z0-9-]+" already exists\s*)+$`)

func TestToleratedDifferencesAreInTheTable(t *testing.T) {
	var rows []string
	for _, d := range ofTheProduct {
		rows = append(rows, d.Name)
	}
	if err := differences.CheckTolerated("test/plane/clients", rows); err != nil {
		t.Error(err)
	}
}
