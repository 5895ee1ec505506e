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
	Name:     "deleted-with-its-job", // The Job may be gone before the verdict is an event.
	Scenario: regexp.MustCompile(`^jobset(-with-engine)?/children-deleted$`),
	Builtin:  regexp.MustCompile(`^job c[0-9]+-workers-0: FailureTarget=True \(BackoffLimitExceeded: `),
	Race:     true,
}, {
	Name:     "created-suspended", // A Job that is resumed before that never says it.
	Scenario: regexp.MustCompile(`^(multi)?kueue(-with-engine|-alone)?/|/resumed-at-once$`),
	Builtin:  regexp.MustCompile(`^(worker: )?job [a-z0-9-]+: Suspended=True \(JobSuspended: `),
	Race:     true,
}}

// ofClients are what clients themselves do in two ways, with either side.
var ofClients = []history.Difference{{
	Name: "JobSet creates a Job twice",
	Reason: "When JobSet restarts, it may look for its Jobs before its cache shows those that it has just created. It then tries to create them again, " +
		"is told that they exist, and says so in an event.",
	Scenario: regexp.MustCompile(`^jobset(-with-engine)?/|^kueue(-with-engine)?/jobset-restarted$`),
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
}, {
	Name: "Kueue replaces a slice in two ways",
	Reason: "When Kueue admits a new slice of an elastic Job, its scheduler finishes the old one. Kueue's controller of Jobs may have done so before, with " +
		"another reason and without an event.",
	Scenario: regexp.MustCompile(`^kueue-alone/elastic$`),
	Builtin:  sliceReplaced,
	Ours:     sliceReplaced,
	Race:     true,
}, {
	Name: "Kueue says twice that a local queue was opened again",
	Reason: "Kueue sets the condition Requeued of a Workload when its local queue is opened again. Its scheduler admits the Workload at the same time, " +
		"and may write an older state of this condition back, which Kueue then sets once more.",
	Scenario: regexp.MustCompile(`^kueue-alone/local-queue$`),
	Builtin:  openedTwice,
	Ours:     openedTwice,
	Race:     true,
}, {
	Name: "MultiKueue says that a Job is suspended",
	Reason: "While a Job is still suspended here and no longer on the worker, MultiKueue does not copy its status. It then sets the condition Suspended by itself, " +
		"if it has not copied the worker's before.",
	Scenario: regexp.MustCompile(`^multikueue/`),
	Builtin:  suspendedHere,
	Ours:     suspendedHere,
	Race:     true,
}, {
	Name: "Trainer makes a JobSet again at the deadline",
	Reason: "Trainer deletes the JobSet of a TrainJob whose deadline has passed, then writes that the TrainJob has failed. The deletion may start a reconcile " +
		"that does not see this yet: it makes the JobSet again, and deletes it a moment later.",
	Scenario: regexp.MustCompile(`^trainer(-with-engine)?/(long-)?deadline$`),
	Builtin:  madeAgain,
	Ours:     madeAgain,
	Race:     true,
}, {
	Name:     "Trainer deletes a JobSet while its Job is made",
	Reason:   "Trainer v2.3.0 fails a TrainJob with a deadline of more than 292 years in its first reconcile, in which it has made the JobSet. JobSet may have made the Job by then, or not.",
	Scenario: regexp.MustCompile(`^trainer(-with-engine)?/long-deadline$`),
	Builtin:  ofTheFirstJobSet,
	Ours:     ofTheFirstJobSet,
	Race:     true,
}, {
	Name: "Trainer fails at once with a long deadline",
	Reason: "Trainer v2.3.0 multiplies the seconds of a deadline into a number of 64 bits; more than 292 years become negative, and the TrainJob fails at once. Trainer that asks the engine " +
		"runs it to its end.",
	Scenario: regexp.MustCompile(`^trainer-with-engine/long-deadline$`),
	Builtin:  regexp.MustCompile(`^(prints Failed$|trainjob a: Failed=True \(DeadlineExceeded: )`),
	Ours:     regexp.MustCompile(`^(prints Complete$|trainjob a: Complete=True )`),
}, {
	Name: "KubeRay acts on an older version",
	Reason: "KubeRay's cache may not show yet what KubeRay itself has just made, changed or deleted. It then tries that again, is refused, says so in an event, " +
		"and goes on when the cache has it.",
	Scenario: regexp.MustCompile(`^kuberay/`),
	Builtin:  refusedAgain,
	Ours:     refusedAgain,
	Race:     true,
}, {
	Name: "KEDA says that its scaler failed when it gives up a poll",
	Reason: "When a ScaledJob changes, is paused or deleted while KEDA polls, KEDA cancels the poll, and forgets the scaler. " +
		"If it forgets the scaler first, it says nothing of the poll, otherwise it says in an event that the scaler failed.",
	Scenario: regexp.MustCompile(`^keda/(minimum|paused|rollout|rollout-foreground|rollout-gradual|unschedulable)$`),
	Builtin:  pollGivenUp,
	Ours:     pollGivenUp,
	Race:     true,
}, {
	Name: "KEDA says of a ScaledJob that changes that it is not active",
	Reason: "When a ScaledJob changes, KEDA begins to poll anew. The loop that ends clears the scalers by the name of the ScaledJob, " +
		"which by then may be those of the new loop. Its first poll then finds nothing to ask, and says that the ScaledJob is not active. " +
		"The next poll finds new ones. After that the status may keep that its trigger is active, also when no message waits; why was not found.",
	Scenario: regexp.MustCompile(`^keda/rollout(-foreground|-gradual)?$`),
	Builtin:  notActiveOnce,
	Ours:     notActiveOnce,
	Race:     true,
}}

// known are the differences that histories may show.
var known = append(ofTheProduct, ofClients...)

// createdTwice names one Job or several, each in a line of its own.
var createdTwice = regexp.MustCompile(`^event about jobset a: Warning JobCreationFailed: (job "[a-z0-9-]+" creation failed with error: jobs.batch "[a-z0-9-]+" already exists\s*)+$`)

var refusedAgain = regexp.MustCompile(`^event about rayjob a: Warning FailedTo(Create|Update|Delete)[A-Za-z]+: .*( already exists| not found|: the object has been modified; .*)$`)

var (
	pollGivenUp   = regexp.MustCompile(`^event about scaledjob a: Warning KEDAScalerFailed: rpc error: code = Canceled desc = context canceled$`)
	sliceReplaced = regexp.MustCompile(`^(workload job-a-~: Finished=True \((WorkloadSliceReplaced|OutOfSync): |event about workload job-a-~: Normal WorkloadSliceReplaced: )`)
	openedTwice   = regexp.MustCompile(`^workload job-b-~: Requeued=(True \(LocalQueueRestarted: The LocalQueue was restarted after being stopped|False \(LocalQueueStopped: The LocalQueue is stopped)\)$`)
	notActiveOnce = regexp.MustCompile(`^scaledjob a: (Active=(False \(ScalerNotActive|True \(ScalerActive): Scaling is (not )?performed because triggers are (not )?active\)|` +
		`in the end {"lastActiveTime":"TIME",("triggersActivity":{"s0-messages":{"isActive":true}},)?"triggersTypes":"external"})$`)
)

// suspendedHere is about the Job on the manager.
var suspendedHere = regexp.MustCompile(`^job [a-z0-9-]+: Suspended=True \((MultiKueueAdapter|JobSuspended): `)

var (
	madeAgain        = regexp.MustCompile(`^(job(set)? a(-node-0)? \(2\): |pod of job a-node-0 \(2\) |trainjob a: in the end )`)
	ofTheFirstJobSet = regexp.MustCompile(`^((job|jobset) a(-node-0)?: |pod of job a-node-0 |event about (job|jobset) a(-node-0)?: )`)
)

func TestToleratedDifferencesAreInTheTable(t *testing.T) {
	var rows []string
	for _, d := range ofTheProduct {
		rows = append(rows, d.Name)
	}
	if err := differences.CheckTolerated("test/plane/clients", rows); err != nil {
		t.Error(err)
	}
}
