// Package cronjob runs CronJobs: it watches them and the Jobs they control, asks the
// policy engine what is due, and creates and deletes Jobs as the engine decides.
//
// # Which CronJobs
//
// If this controller replaces the built-in one (Config.ReplaceBuiltin), it manages all
// CronJobs except those whose wire.CronJobManagedBy names another manager. Beside the
// built-in controller, it manages a CronJob if wire.CronJobManagedBy names this controller
// and spec.suspend is true. The built-in controller then takes the CronJob for suspended;
// users suspend it with wire.CronJobSuspend. The built-in controller still deletes finished
// Jobs beyond the history limits, removes finished and missing Jobs from status.active, and
// writes lastSuccessfulTime (sync and syncCronJob of cronjob_controllerv2.go in v1.37).
//
// While spec.suspend changes, both controllers may manage the CronJob for a moment.
// They cannot both start the same run: its Job's name is computed from the scheduled
// time, in the same way by both, and the API server accepts a name once.
//
// # A reconcile
//
// One snapshot, one decision, carried out in the contract's order: delete, create, edit,
// status, events. A Job that was created is in the next snapshot at once, by the API
// server's answer, even if the watch does not show it yet. The status that lists it is
// written then. A restart loses nothing: the Job is found again by its owner reference, and
// the scheduled time by the Job's annotation.
package cronjob
