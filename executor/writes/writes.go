// Package writes names the kinds of writes that the executor makes for a Job or CronJob, and
// remembers which of them the API server refuses, and since when.
//
// Read writes.go (the kinds, and the events about them), then refusals.go.
package writes

import "strings"

// Kind is a kind of write. It is a label of jobpolicy_refused_writes_total.
type Kind string

// The kinds of writes for a Job.
const (
	CreatePod      Kind = "create_pod"
	DeletePod      Kind = "delete_pod"
	EndPod         Kind = "end_pod"     // Its spec.activeDeadlineSeconds is set.
	ReleasePod     Kind = "release_pod" // The tracking finalizer is removed.
	AdoptPod       Kind = "adopt_pod"
	DisownPod      Kind = "disown_pod"
	CreateWorkload Kind = "create_workload"
	CreatePodGroup Kind = "create_pod_group"
	ChangeGang     Kind = "change_gang"  // The minimum of the Job's gang.
	UseWorkload    Kind = "use_workload" // No write: pods wait for a Workload that they can use.
	UpdateStatus   Kind = "update_job_status"
	DeleteJob      Kind = "delete_job" // Its time to live is over.
)

// The kinds of writes for a CronJob.
const (
	CreateRun           Kind = "create_run" // The Job of a run.
	DeleteRun           Kind = "delete_run"
	UpdateCronJob       Kind = "update_cronjob" // Its annotations and spec.suspend.
	UpdateCronJobStatus Kind = "update_cronjob_status"
)

// An announcement is the event about a refused write.
type announcement struct {
	kind            Kind
	words           string // What the controller does, in the infinitive.
	cron            bool   // The event is on a CronJob.
	reason, message string
	// named: between the message and the refusal stand the object's name and a colon.
	named bool
	// atOnce: people are told of the first refusal. It is no answer of the API server.
	atOnce bool
	// everyTry: the controller sends the event itself, as the built-in one does, after every try.
	everyTry bool
}

// announcements has all kinds of writes. The reasons are upstream's where the built-in controllers
// send such an event, and else those of other controllers: FailedUpdateStatus is sent by the
// controller of HorizontalPodAutoscalers, FailedUpdate by that of StatefulSets.
var announcements = []announcement{
	{kind: CreatePod, words: "create pods", reason: "FailedCreate", message: "Error creating: ", everyTry: true},
	{kind: CreateWorkload, words: "create the Job's Workload", reason: "FailedWorkloadCreate", message: "Failed to create Workload for Job ", named: true, everyTry: true},
	{kind: CreatePodGroup, words: "create the Job's PodGroup", reason: "FailedCreate", message: "Error creating: pod group: ", everyTry: true},
	{kind: ChangeGang, words: "change how many pods of the Job's gang must run at once", reason: "FailedUpdate", message: "Error updating gang: "},
	{kind: UseWorkload, words: "create pods before there is a Workload that they can use", reason: "WaitingForWorkload", message: "No pods are created yet: ", atOnce: true},
	{kind: DeleteJob, words: "delete the Job", reason: "FailedDelete", message: "Error deleting job: "},
	{kind: DeletePod, words: "delete pods", reason: "FailedDelete", message: "Error deleting: ", everyTry: true},
	{kind: EndPod, words: "end pods", reason: "FailedUpdate", message: "Error ending pod: "},
	{kind: ReleasePod, words: "remove the finalizer of pods", reason: "FailedRemoveFinalizer", message: "Error removing finalizer: "},
	{kind: AdoptPod, words: "let the Job adopt pods", reason: "FailedAdopt", message: "Error adopting: "},
	{kind: DisownPod, words: "let pods go that the Job no longer selects", reason: "FailedDisown", message: "Error disowning: "},
	{kind: UpdateStatus, words: "write the Job's status", reason: "FailedUpdateStatus", message: "Error updating status: "},
	{kind: CreateRun, words: "create the Job of a run", cron: true, reason: "FailedCreate", message: "Error creating job: ", everyTry: true},
	{kind: DeleteRun, words: "delete Jobs", cron: true, reason: "FailedDelete", message: "Deleted job: ", everyTry: true},
	{kind: UpdateCronJob, words: "change the CronJob", cron: true, reason: "FailedUpdate", message: "Error updating: "},
	{kind: UpdateCronJobStatus, words: "write the CronJob's status", cron: true, reason: "FailedUpdateStatus", message: "Error updating status: "},
}

// Kinds are all kinds.
func Kinds() (all []Kind) {
	for _, a := range announcements {
		all = append(all, a.kind)
	}
	return all
}

// announcement is that of the kind. A kind of a newer executor, which a program was told of, has none.
func (k Kind) announcement() announcement {
	for _, a := range announcements {
		if a.kind == k {
			return a
		}
	}
	return announcement{kind: k, words: string(k), reason: string(k)}
}

// Event is the reason and the message of the event about a refusal.
func (k Kind) Event(why string) (reason, message string) {
	a := k.announcement()
	if a.named {
		why = "(any): " + why
	}
	return a.reason, a.message + why
}

// Words say what the controller does: "create pods".
func (k Kind) Words() string { return k.announcement().words }

// EveryTry reports whether the event is sent after every try, as the built-in controllers do.
func (k Kind) EveryTry() bool { return k.announcement().everyTry }

// combined is how client-go begins the message of an event that stands for several.
const combined = "(combined from similar events): "

// OfEvent says which write on a Job, or on a CronJob, an event is about, and why it was refused.
// ok is false if the event is about something else.
func OfEvent(onCronJob bool, reason, message string) (k Kind, why string, ok bool) {
	message = strings.TrimPrefix(message, combined)
	for _, a := range announcements {
		text, found := strings.CutPrefix(message, a.message)
		if found && a.named {
			_, text, found = strings.Cut(text, ": ")
		}
		if a.cron == onCronJob && a.reason == reason && found && (!ok || len(text) < len(why)) {
			k, why, ok = a.kind, text, true
		}
	}
	return k, why, ok
}

// ExceedsQuota reports whether a refusal says that a ResourceQuota is used up. A quota also refuses pods without
// the requests or limits that it counts ("failed quota"); to wait does not help these.
func ExceedsQuota(why string) bool { return strings.Contains(why, "exceeded quota") }
