package ledger

import "slices"

// A Step is one thing that a write may do to what the API server has stored of a Job and its pods. One write
// may be several steps. The model in proof/ has the same ones (STEP in ledger.pml).
type Step string

// The steps of a status write.
const (
	Record        Step = "record"        // a UID enters status.uncountedTerminatedPods
	Count         Step = "count"         // a UID leaves it for a counter
	CompleteIndex Step = "completeIndex" // status.completedIndexes and status.succeeded grow
	Declare       Step = "declare"       // SuccessCriteriaMet or FailureTarget
	Finish        Step = "finish"        // Complete or Failed
)

// The steps of a write of a pod.
const (
	Release        Step = "release"        // the tracking finalizer of a pod that has ended
	ReleaseRunning Step = "releaseRunning" // ... of a pod that runs and is not to be counted
	ReleaseOrphan  Step = "releaseOrphan"  // ... of a pod whose Job is gone
	Adopt          Step = "adopt"
	CreatePod      Step = "createPod"
	DeletePod      Step = "deletePod"
)

// Steps are all steps.
var Steps = []Step{Record, Count, CompleteIndex, Declare, Finish, Release, ReleaseRunning, ReleaseOrphan, Adopt, CreatePod, DeletePod}

// A row of the specification is what one step is and when it may be taken.
type row struct {
	step Step
	// effect reports whether a write takes the step.
	effect func(*change) bool
	// parts are what of the stored object the step may change, as changedParts names it.
	parts []string
	// guards must hold for each write, whatever steps it takes.
	guards []guard
}

// A guard is a condition of a step, and the invariant of ARCHITECTURE.md that it belongs to. Others are: order, that pods are deleted for a
// verdict only after it is written; and deletion, that pods are deleted for a reason.
type guard struct {
	kind Kind
	rule string
	// broken finds where the condition does not hold.
	broken func(*change) []finding
}

// ofStatus is the specification of a write of a Job's status.
var ofStatus = []row{
	{
		Declare, (*change).declares,
		[]string{"conditions[SuccessCriteriaMet]", "conditions[FailureTarget]"},
		[]guard{{ConditionGone, "I4", (*change).conditionsGone}, {BothEnds, "I4", (*change).bothEnds}},
	},
	{
		Record, (*change).records,
		[]string{"uncountedTerminatedPods"},
		[]guard{{RecordedTwice, "I3", (*change).recordedTwice}, {RecordedAgain, "I2", (*change).recordedAgain}},
	},
	{
		Count, (*change).counts,
		[]string{"uncountedTerminatedPods", "succeeded", "failed"},
		[]guard{{CountedHolder, "I2", (*change).countedHolders}, {WrongFailed, "I2", (*change).wrongFailed}, {WrongSucceeded, "I2", (*change).wrongSucceeded}},
	},
	{
		CompleteIndex, (*change).completesIndexes,
		[]string{"completedIndexes", "succeeded"},
		[]guard{{WrongIndexes, "I2", (*change).wrongIndexes}, {IndexTwice, "I3", (*change).indexTwice}, {IndexGone, "I2", (*change).indexGone}},
	},
	{
		Finish, (*change).finishes,
		[]string{"conditions[Complete]", "conditions[Failed]", "completionTime"},
		[]guard{{NoInterim, "I4", (*change).noInterim}, {EndWithPods, "I4", (*change).endWithPods}, {EndBeforePod, "I4", (*change).endBeforePods}},
	},
}

// ofPod is the specification of a write of a pod. A writer acts on what it has seen, however old that is. So a guard asks
// whether anything that was stored at any time allows the step (past.go). Package world also judges how old it may be.
var ofPod = []row{
	{Release, (*change).releasesEnded, []string{"finalizer"}, []guard{{ReleasedTooSoon, "I1", (*change).releasedTooSoon}}},
	{ReleaseRunning, (*change).releasesRunning, []string{"finalizer"}, []guard{{ReleasedWanted, "I1", (*change).releasedWanted}}},
	{ReleaseOrphan, (*change).releasesOrphan, []string{"finalizer"}, []guard{{ReleasedForeign, "I9", (*change).releasedForeign}}},
	{Adopt, (*change).adopts, []string{"owner", "finalizer"}, []guard{{AdoptedOwned, "I9", (*change).adoptedOwned}, {AdoptedUnheld, "I1", (*change).adoptedUnheld}}},
	{CreatePod, (*change).creates, []string{"creation"}, []guard{{NeverAJob, "I8", (*change).neverAJob}, {CreatedUnheld, "I1", (*change).createdUnheld}}},
	{DeletePod, (*change).deletes, []string{"deletion"}, []guard{
		{DeletedHeld, "order", (*change).deletedHeld},
		{DeletedWanted, "deletion", (*change).deletedWanted},
		{DeletedEnded, "deletion", (*change).deletedEnded},
		{DeletedUncounted, "I2", (*change).deletedUncounted},
		{DeletedForeign, "I9", (*change).deletedForeign},
	}},
}

// beside are the parts of a status that the model leaves out: they say nothing about which pods are counted. Package world judges them.
var beside = []string{
	"active", "ready", "terminating", "startTime", "failedIndexes", "conditions[Suspended]",
	"conditions[jobpolicy.dev/Started]", "conditions[jobpolicy.dev/FailureClassified]",
}

// guard is the step and the invariant of the guard that a kind of problem breaks; no step: it is about all of them.
func (k Kind) guard() (step Step, rule string) {
	for _, r := range slices.Concat(ofStatus, ofPod) {
		for _, g := range r.guards {
			if g.kind == k {
				return r.step, g.rule
			}
		}
	}
	return "", map[Kind]string{MoreReady: "I5", NoStep: "I2"}[k]
}
