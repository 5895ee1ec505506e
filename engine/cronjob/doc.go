// Package cronjob decides what is to become of Kubernetes CronJobs.
//
// Decide is a pure function from a snapshot of one CronJob, and the Jobs that it
// controls, to a decision. It has no clock, no time zone and no memory: all three
// are part of the request, and the same request gets the same bytes back. The
// messages are those of the contract (proto/jobpolicy/v1), whose comments are
// part of this manual.
//
// # What a caller does
//
//  1. Read the CronJob and every Job whose controller reference names it, by UID.
//     Say in CronJobFreshness what of your own writes you may not see yet.
//  2. Call Decide. On DISPOSITION_INCOMPLETE, look up past every cache the Jobs in
//     status.active that have no row, and call again with a row for each that is
//     there and with absent_jobs for the others.
//  3. Carry the decision out in the order of DecideCronJobResponse. It is one kind
//     of step: a creation with the deletions that make room for it, or a status, or
//     edits, or deletions by the history limits. What else is due follows in the
//     next decisions, so that a step that keeps failing holds up none before it.
//  4. Ask again when the CronJob or one of its Jobs changes, at requeue_time, and
//     when follow_up says so. When a creation finds that its name is taken: if the CronJob controls that
//     Job, it was created; if not, ask again with name_taken. When it fails
//     otherwise, ask in deferrals to leave STEP_CREATE_JOB for later.
//
// # How a decision is made
//
//	validate → read → rules → status, edits, history → explain
//
// The rules (see RuleNames) are asked in order whether a run is to be started;
// the first that decides is listed as the deciding one. Of the times that are due
// since the last run, or since the CronJob was created, only the latest is
// started, however many there are.
//
// # What keeps a run from being started twice
//
// A Job's name follows from its scheduled time, so a second creation finds the
// first Job. Once the Job is seen, its scheduled time counts as the last one,
// whether or not a status says so. The status comes after the Job and is made
// from the Jobs that are there: status.active lists the UIDs of the unfinished
// runs, and nothing else.
//
// # Events
//
// Types, reasons and words are those of the built-in controller (v1.36). What
// stays true for long is not told again at each look: that a run is held back by
// the concurrency policy, was missed, or that a Job is unexpected, is news for a
// minute; that times were missed, or that TZ= stands in the schedule, is told when
// a Job is created. Reasons of our own are FailedCreate for a name that is taken,
// InvalidSpec, InvalidAnnotation and SuspendedAfterFailures.
//
// # When a schedule is due
//
// ListScheduledRuns says when schedules are due next and what they missed, by the
// same functions that Decide asks: for dashboards, and for controllers that start
// something else than Jobs.
package cronjob
