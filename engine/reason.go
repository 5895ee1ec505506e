package engine

import "jobpolicy.dev/proto/podfacts"

// Condition types of a Job, as in k8s.io/api/batch/v1.
const (
	conditionSuspended          = "Suspended"
	conditionSuccessCriteriaMet = "SuccessCriteriaMet"
	conditionFailureTarget      = "FailureTarget"
	conditionComplete           = "Complete"
	conditionFailed             = "Failed"
)

// conditionStarted is ours: whether a pod of the Job has run. Only Jobs with a deadline to start
// have it.
const conditionStarted = podfacts.ConditionStarted

// Reasons of conditions and events. All but InvalidPolicy and those marked as not
// upstream's, and their messages, are upstream's, so that dashboards and clients keep working.
const (
	// More pods failed, or containers restarted, than spec.backoffLimit allows.
	reasonBackoffLimitExceeded = "BackoffLimitExceeded"
	// The Job was active for spec.activeDeadlineSeconds.
	reasonDeadlineExceeded = "DeadlineExceeded"
	// No pod ran within options.start_deadline_seconds. Not one of upstream's.
	reasonStartDeadlineExceeded = "StartDeadlineExceeded"
	// A pod did not start in time, and options.never_started fails the Job. Not one of upstream's.
	reasonPodNeverStarted = "PodNeverStarted"
	// Reasons of the condition Started. Not upstream's.
	reasonPodRan   = "PodRan"
	reasonNoPodRan = "NoPodRan"
	// A pod matched a FailJob rule of spec.podFailurePolicy.
	reasonPodFailurePolicy = "PodFailurePolicy"
	// More indexes failed than spec.maxFailedIndexes allows.
	reasonMaxFailedIndexesExceeded = "MaxFailedIndexesExceeded"
	// All indexes are done and some of them failed.
	reasonFailedIndexes = "FailedIndexes"
	// A rule of spec.successPolicy was met.
	reasonSuccessPolicy = "SuccessPolicy"
	// As many pods succeeded as spec.completions asks for.
	reasonCompletionsReached = "CompletionsReached"
	// Condition Suspended became true, or false.
	reasonJobSuspended = "JobSuspended"
	reasonJobResumed   = "JobResumed"
	// Events about the same two changes.
	eventSuspended = "Suspended"
	eventResumed   = "Resumed"
	// Event: the Job is complete.
	eventCompleted = "Completed"
	// Event: more pods succeeded than the Job requires.
	eventTooManySucceededPods = "TooManySucceededPods"
	// Event: the options that the Job asks for cannot be read.
	eventInvalidPolicy = "InvalidPolicy"
)

// FailureReasons are the reasons with which a rule fails a Job: those of its condition Failed, and of
// the Warning event about its end.
func FailureReasons() []string {
	return []string{reasonBackoffLimitExceeded, reasonDeadlineExceeded, reasonStartDeadlineExceeded, reasonPodNeverStarted, reasonPodFailurePolicy, reasonMaxFailedIndexesExceeded, reasonFailedIndexes}
}
