package ledger

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

// A guard is a condition of a step, and the invariant of ARCHITECTURE.md that it belongs to.
type guard struct {
	step Step
	rule string
}

// guards are the conditions of the steps; each Kind is one that does not hold. The steps of pods other than Release
// depend on what their writers could know, so package world judges them. The API server refuses a
// status with more ready than active pods, whatever step it is.
var guards = map[Kind]guard{
	RecordedTwice: {Record, "I3"}, RecordedAgain: {Record, "I2"},
	CountedHolder: {Count, "I2"}, WrongFailed: {Count, "I2"}, WrongSucceeded: {Count, "I2"},
	WrongIndexes: {CompleteIndex, "I2"}, IndexTwice: {CompleteIndex, "I3"},
	ConditionGone: {Declare, "I4"}, BothEnds: {Declare, "I4"},
	NoInterim: {Finish, "I4"}, EndWithPods: {Finish, "I4"}, EndBeforePod: {Finish, "I4"},
	ReleasedTooSoon: {Release, "I1"},
	MoreReady:       {"", "I5"},
}
