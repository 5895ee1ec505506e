// Package wire converts between the types of Kubernetes and the messages of the
// contract (jobpolicy.v1), in both directions.
//
//   - JobRequest makes a request about a Job, of which JobSpec and JobStatus are parts;
//     APIStatus and KeepUndecided make a Job's status of a decided one.
//   - CronJobSpec, CronJobStatus and OwnedJob make messages of a CronJob and its Jobs.
//   - Pod makes the facts that policy reads of a pod; PodPhase and PodFailure are parts.
//   - NewPods makes the pods that a decision creates of a Job's template.
//   - UIDBytes, Timestamp, Text, Annotations and ParseIndexes convert single values.
//
// The API server stores values that the contract does not allow, such as a time in
// the year 0 or a text that is no UTF-8. One of them would make the whole request
// invalid, so each conversion brings its value within the limits of the contract.
package wire
