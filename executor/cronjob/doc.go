// Package cronjob carries out decisions about CronJobs: it watches them and the
// Jobs they control, asks the policy engine what is due, and starts and deletes
// Jobs as it says.
//
// # Which CronJobs
//
// In place of the built-in controller (Config.ReplaceBuiltin) all are ours but
// those that AnnotationManagedBy gives to somebody else. Beside it, a CronJob is
// ours when AnnotationManagedBy names us and spec.suspend is true: for the
// built-in controller it is suspended then, and what its user means by "suspended"
// is AnnotationSuspend. Should both controllers hold a CronJob for theirs for a
// moment, as when spec.suspend is changed while a run is due, they still cannot
// both start that run: the name of its Job follows from the scheduled time, in the
// built-in controller's own form, and the API server takes a name once.
//
// # A round
//
// One snapshot, one decision, carried out in the contract's order: delete, create,
// edit, status, events. A created Job is part of the next snapshot at once, from
// the API server's answer and not from the watch, and the status that lists it is
// written then. Whatever is lost in between by a restart is found again in the
// cluster: the Job by its owner reference, the scheduled time by its annotation.
package cronjob
