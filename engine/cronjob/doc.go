// Package cronjob decides what a controller does about Kubernetes CronJobs.
//
// Decide is a pure function from a snapshot of one CronJob, and the Jobs that it
// controls, to a decision. It has no clock, no time zone of its own and no memory: the
// request holds everything that it needs, and the same request gets the same bytes
// back. The messages are those of the contract (proto/jobpolicy/v1), whose comments
// are part of this manual.
//
// # What a caller does
//
//  1. Read the CronJob and every Job whose controller reference names it, by UID. Make
//     sure that your own last writes are visible in what you read.
//  2. Call Decide. On DISPOSITION_INCOMPLETE, read the Jobs in status.active that have
//     no row from the API server, not from a cache. Call again with a row for each that
//     exists, and with the others in absent_jobs.
//  3. Carry the decision out in the order of DecideCronJobResponse. It is one kind of
//     step: a creation with the deletions that make room for it, or a status, or
//     edits, or deletions by the history limits. If more is due, the next decisions
//     follow in this order, so that a step that keeps failing does not hold up the
//     steps before it.
//  4. Ask again when the CronJob or one of its Jobs changes, at requeue_time, and
//     when follow_up says so. If the name of a Job to create is taken by a Job that the
//     CronJob controls, the creation has succeeded; if another Job has the name, ask
//     again with the name in names_taken. If a creation fails for another reason, defer
//     STEP_CREATE_JOB, or STEP_CREATE_MANUAL_JOB if the Job has no scheduled time.
//
// # How a decision is made
//
//	validate → read → rules → status, edits, history → explain
//
// The rules (Rule in the contract) decide whether a run is started. They are asked in order,
// and the first that decides is the deciding rule. If several times of the schedule
// have come since the last run, or since the CronJob was created, only the run of the
// latest is started.
//
// # What keeps a run from being started twice
//
// A Job's name follows from its scheduled time, so a second creation finds the first
// Job. Once the Job is seen, its scheduled time counts as the last one, whether or
// not a status says so. The status is written after the Job is created, and is made
// from the Jobs that exist: status.active lists the UIDs of the unfinished runs, and
// nothing else.
//
// # Events
//
// Types, reasons and messages are those of the built-in controller (v1.37). Some events
// are not repeated with every decision, although what they report stays true:
// JobAlreadyActive and MissSchedule are reported for one minute; UnexpectedJob until the
// Job has been running for one minute; TooManyMissedTimes, and UnsupportedSchedule for a schedule that can be read, are
// reported when a Job is created. Our own reasons are FailedCreate for a name that is
// taken, InvalidSpec, InvalidPolicy and SuspendedAfterFailures.
//
// # When a schedule is due
//
// ListScheduledRuns says when schedules are due next and which times they missed, with
// the same functions that Decide uses. It is for dashboards, and for controllers that
// start something other than Jobs.
package cronjob
