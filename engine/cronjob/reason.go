package cronjob

import (
	"fmt"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Reasons of events. They and the messages beside their uses are upstream's,
// apart from the last four.
const (
	eventSuccessfulCreate    = "SuccessfulCreate"
	eventSuccessfulDelete    = "SuccessfulDelete"
	eventSawCompletedJob     = "SawCompletedJob"
	eventMissingJob          = "MissingJob"
	eventUnexpectedJob       = "UnexpectedJob"
	eventMissSchedule        = "MissSchedule"
	eventJobAlreadyActive    = "JobAlreadyActive"
	eventTooManyMissedTimes  = "TooManyMissedTimes"
	eventUnknownTimeZone     = "UnknownTimeZone"
	eventUnparseableSchedule = "UnparseableSchedule"
	eventInvalidSchedule     = "InvalidSchedule"
	eventUnsupportedSchedule = "UnsupportedSchedule"
	// A Job that the CronJob does not control has the name of the CronJob's next Job.
	eventFailedCreate = "FailedCreate"
	// A field has a value that the API server would not admit.
	eventInvalidSpec = "InvalidSpec"
	// The options that the CronJob asks for cannot be read.
	eventInvalidPolicy = "InvalidPolicy"
	// The CronJob is suspended because its runs fail.
	eventSuspendedAfterFailures = "SuspendedAfterFailures"
)

func normal(reason, format string, args ...any) *jobpolicyv1.JobEvent {
	return &jobpolicyv1.JobEvent{
		Type: jobpolicyv1.EventType_EVENT_TYPE_NORMAL, Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

func warning(reason, format string, args ...any) *jobpolicyv1.JobEvent {
	return &jobpolicyv1.JobEvent{
		Type: jobpolicyv1.EventType_EVENT_TYPE_WARNING, Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}
