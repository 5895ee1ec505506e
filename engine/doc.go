// Package engine decides what is to become of Kubernetes Jobs.
//
// DecideJob is a pure function from a snapshot of one Job to a decision. It has
// no clock, no memory and does no I/O: the time is part of the request, and the
// same request gets the same bytes back. The messages are those of the contract
// (proto/jobpolicy/v1), so a caller in the same process and a caller over gRPC
// see the same thing. The comments in the proto files are part of this manual.
//
// # What a caller does
//
// A caller keeps count of a Job's pods and carries out decisions. It owns the
// API calls, the retries and the clock; the engine owns every "whether", "how
// many" and "which". One round is:
//
//  1. Read the Job. Skip it unless its managedBy names you. Make sure that your
//     own last writes are visible in what you read, or say in
//     DecideJobRequest.freshness and in_flight what is not.
//  2. Count the Job's pods, by controller reference and UID, never by name:
//     active, ready, terminating; for Indexed Jobs also the sets of indexes.
//     Write a row in unaccounted_pods for each pod that holds the finalizer
//     batch.kubernetes.io/job-tracking and has finished or is being deleted; if
//     there are too many, say in unlisted_pods what the others add up to.
//     List in confirmed_releases the UIDs of status.uncounted whose pods no
//     longer hold it, or no longer exist. Say in retry when pods last succeeded
//     and failed, accounted for or not: the retry delay is computed from that and
//     from the rows. Package snapshot does all of this from the list of pods.
//  3. Call DecideJob. On DISPOSITION_INCOMPLETE, add what requirements asks for
//     and call again; the second answer is never INCOMPLETE for the same need.
//  4. Carry the decision out in the order of DecideJobResponse: make the gang,
//     create and delete pods, then write the status, then release finalizers,
//     then delete the Job if delete_job says so, then record events. If a step
//     fails in part, stop there and ask again. A creation or write of which you
//     do not know whether it took effect is in flight until you have looked; one
//     that was refused is none. After a refusal of pods (quota, admission), or of
//     deletions, ask in deferrals to leave that step for later.
//  5. Ask again when a pod or the Job changes, when something that was in flight
//     becomes known, at requeue_time, and when follow_up says so.
//
// A request that breaks the contract is refused with every violation at once
// (InvalidRequestError), and one with fields or values of a newer contract by the
// path of the first of them (UnsupportedError): asking again does not help, and nothing was
// decided. Any other request has a decision. Explanation says how it came about,
// for people only: which rules were asked, what each answered, and what is waited
// for. Settings.explain says how much of it the answer holds.
//
// # Tasks that are no pods
//
// Nothing here needs Kubernetes. A pod may be any unit of work that runs once: give it
// a UID of its own, leave namespace and restart policy out, and say in
// Settings.pod_noun what texts are to call it. A caller that keeps Jobs and tasks in
// one transactional store sets Settings.atomic_release: then the status counts the
// tasks that the same decision releases, and there is no ledger. Package snapshot
// makes the request.
//
// # How a decision is made
//
//	validate → tally → judge → removals → ledger → creations → publish → deliver → explain
//
// Each step takes values and returns values, and none is repeated. The tally adds
// up what the pods say. The judge asks the verdict rules in order (see RuleNames);
// the first verdict stands. Removals are the pods to delete. The ledger records
// finished pods, releases their finalizers and counts those whose release is
// confirmed. Creations are the pods to create; many of them wait if the ledger
// records many. Publish builds the next status: "what is true" is the verdict's
// matter, "may it be declared yet" is publish's. Deliver leaves a routine status for
// later if the caller asks for that.
//
// # The life of a verdict
//
//	verdict reached        → status: SuccessCriteriaMet or FailureTarget
//	interim is written     → active pods are deleted, recorded, released
//	pods and UIDs are gone → status: Complete or Failed
//
// Each arrow is at least one round; a crash between any two loses nothing.
//
// A finished Job is decided on as well: pods that were left with the finalizer are
// released, and when its time to live is over, delete_job asks for the Job itself.
// Until then requeue_time says when to ask again.
//
// CronJobs have a package of their own, cronjob.
//
// # Checking a status
//
// CheckJobStatus says whether the API server of a given Kubernetes version
// accepts a status, whoever made it, and which of its rules a bad one breaks.
// Package jobstatus holds the rules; what DecideJob answers keeps them, from
// v1.29 to v1.36 with their default feature gates, except in v1.30: that one
// lets only Jobs with a success policy have the condition SuccessCriteriaMet.
//
// # Partial questions
//
// A controller that decides on its pods by rules of its own may ask for one part of
// a decision by itself. The decision asks the same functions, and tests hold that
// the answers do not differ:
//
//	MatchPodFailurePolicy  how a pod failure policy handles failed pods
//	MatchSuccessPolicy     whether succeeded indexes meet a success policy
//	ComputePodBackoff      when the next pod may be created after others failed
//	ChoosePodsToDelete     which active pods to delete first when there are too many
//	ComputeIndexes         which indexes are completed, failed and missing
//	ComputeDeadlines       until when Jobs may be active, and finished ones are kept
//
// For schedules there is cronjob.ListScheduledRuns: when one is due next, and what it
// missed.
package engine
