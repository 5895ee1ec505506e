// Package wire converts between the types of Kubernetes and the messages of the contract
// (jobpolicy.v1), in both directions.
//
//   - JobRequest makes a request about a Job; JobSpec and JobStatus make parts of it.
//     CheckDecision checks a decision, and NextStatus makes a Job's next status of it.
//   - CronJobSpec, CronJobStatus and OwnedJob convert a CronJob and its Jobs.
//   - Pod converts the facts about a pod that policy reads; PodPolicy says which of them a Job
//     asks for.
//   - NewPods makes the pods that a decision creates, from a Job's template.
//   - PolicySpec reads the options that annotations hold. EditedAnnotations and RunAnnotations
//     write what decisions record in CronJobs and their Jobs.
//   - UIDBytes, ResourceVersion, Timestamp, Text and ParseIndexes convert single values.
//
// The API server stores values that the contract does not allow, such as a time in the year
// 0 or a text that is not UTF-8. One of them would make the whole request invalid, so each
// conversion brings its value within the limits of the contract.
package wire
