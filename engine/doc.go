// Package engine decides what a controller does about Kubernetes Jobs.
//
// DecideJob is a pure function from a snapshot of one Job to a decision. It has
// no clock, no memory and does no I/O: the time is part of the request, and the
// same request gets the same bytes back. The messages are those of the contract
// (proto/jobpolicy/v1), so a caller in the same process and a caller over gRPC
// see the same thing. The comments in the proto files are part of this manual.
//
// # What a caller does
//
// A caller counts a Job's pods and carries out decisions. It makes the API calls,
// retries them and has the clock; the engine decides every "whether", "how many" and
// "which". One reconcile is:
//
//  1. Read the Job. Skip it unless its managedBy names you. Make sure that your own
//     last writes are visible in what you read, or say in in_flight which creations
//     are not. Until then do not ask.
//  2. Count the Job's pods, by controller reference and UID, never by name: active,
//     ready, terminating; for Indexed Jobs also the sets of indexes. Write a row in
//     unaccounted_pods for each pod that holds the finalizer
//     batch.kubernetes.io/job-tracking and has finished or is being deleted; if there
//     are too many, count the others in unlisted_pods. List in confirmed_releases the
//     UIDs of status.uncounted whose pods no longer hold that finalizer, or no longer
//     exist. Say in retry when pods last succeeded and failed, whether they are
//     accounted for or not: the retry delay is computed from these times and from the
//     rows. Package snapshot does all of this from the list of pods.
//  3. Call DecideJob. The disposition says what kind of answer it is:
//     DISPOSITION_APPLY: go to step 4.
//     DISPOSITION_SETTLED: record the events, if there are any, and go to step 5.
//     DISPOSITION_INCOMPLETE: add the data that requirements names and call again; the
//     second answer never requires the same again.
//     Refuse any other disposition.
//  4. Carry the decision out in the order of DecideJobResponse: make the gang, create
//     or delete and end pods (remove the finalizer of a pod with release_first before
//     you delete that pod), then write the status, then release finalizers, then record
//     events, then delete finished pods or the Job. If a step fails in part, stop there
//     and ask again (once the status is written, the events still go out). A creation
//     or write is in flight as long as you do not know whether it took effect. One that
//     was refused is not in flight. After a refusal of pods (quota, admission), or of
//     deletions, ask in deferrals to leave that step for later.
//  5. Ask again when a pod or the Job changes, when something that was in flight
//     becomes known, at requeue_time, and when follow_up says so.
//
// There are two errors. A request that breaks the contract is refused with a list of
// its violations (InvalidRequestError). A request with fields or values of a newer
// contract is refused with the path of the first of them (UnsupportedError). In both
// cases it does not help to ask the same engine again. Every other request gets a
// decision. Its explanation is for people only: which rules were asked, what each
// answered, and what the decision waits for. Settings.explain says how much of it the
// answer holds.
//
// # Tasks that are not pods
//
// The engine does not need Kubernetes. A pod may be any unit of work that runs once:
// give it a UID of its own, and leave namespace and restart policy out. Package snapshot
// makes the request.
//
// # How a decision is made
//
//	validate → tally → verdict → deletions → ledger → creations → prune → publish → deliver → explain
//
// Each step takes values and returns values, and none is repeated. The tally counts
// the pods by how they ended. For the verdict, the rules are asked in order (that
// of Rule in the contract); the first verdict wins. Deletions are the pods to delete, or to end. The ledger
// records finished pods, releases their finalizers and counts those whose release is
// confirmed. Creations are the pods to create; if there are many to create and many to
// record, a later decision creates them. Prune chooses finished pods that the Job need not keep. Publish builds the next status, with as much
// of the verdict as it may declare yet. Deliver leaves a routine status for later if
// the caller asks for that.
//
// # The life of a verdict
//
//	verdict reached        → status: SuccessCriteriaMet or FailureTarget
//	interim is written     → active pods are deleted or ended, recorded, released
//	pods and UIDs are gone → status: Complete or Failed
//
// Each arrow takes at least one decision. A crash between any two loses nothing.
//
// A finished Job gets decisions as well. They release pods that still have the
// finalizer, and when the Job's time to live is over, delete_job asks the caller to
// delete the Job. Until then requeue_time says when to ask again.
//
// Package cronjob decides about CronJobs.
//
// # Checking a status
//
// CheckJobStatus says whether the API server of a given Kubernetes version accepts a
// status, whoever made it, and which of its rules the status breaks. Package
// statusrules holds the rules. Every status that DecideJob returns keeps them, from
// v1.29 to v1.37 with default feature gates. The exception is v1.30, which lets only
// Jobs with a success policy have the condition SuccessCriteriaMet.
//
// # Partial questions
//
// A controller with rules of its own can ask for a single part of a decision. The
// decision calls the same functions, and tests check that the answers are the same:
//
//	MatchPodFailurePolicy  how a pod failure policy handles failed pods
//	MatchSuccessPolicy     whether succeeded indexes meet a success policy
//	ComputePodBackoff      when the next pod may be created after others failed
//	ChoosePodsToDelete     which active pods to delete first when there are too many
//	ComputeIndexes         which indexes are completed, failed and missing
//	ComputeDeadlines       until when Jobs may be active, and finished ones are kept
//
// For schedules, cronjob.ListScheduledRuns says when runs are due next, and which runs
// were missed.
package engine
