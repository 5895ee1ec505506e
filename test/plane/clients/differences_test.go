package clients

import (
	"regexp"

	"jobpolicy.dev/test/plane/clients/history"
)

// differences are those that histories may show. A row of the product is also in docs/differences.md; the others say
// why the client itself behaves in two ways.
var differences = []history.Difference{{
	Name: "JobSet creates a Job twice",
	Reason: "When JobSet restarts, it may look for its Jobs before its cache shows those that it has just created. It then tries to create them again, " +
		"is told that they exist, and says so in an event. This happens with either side.",
	Scenario: regexp.MustCompile(`^jobset/`),
	Builtin:  createdTwice,
	Ours:     createdTwice,
	Race:     true,
}}

var createdTwice = regexp.MustCompile(`^event about jobset a: Warning JobCreationFailed: job "[a-z0-9-]+" creation failed with error: jobs.batch "[a-z0-9-]+" already exists$`)
