package demo

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// Reasons and messages as the documents and the built-in controller have them.
const (
	reached        = "Reached expected number of succeeded pods"
	pastLimit      = "Job has reached the specified backoff limit"
	pastDeadline   = "Job was active longer than specified deadline"
	failedIndexes  = "Job has failed indexes"
	pastMaxIndexes = "Job has exceeded the specified maximal number of failed indexes"
	matchedFirst   = "Matched rules at index 0"
	// A star stands for what differs from run to run.
	exit42 = "Container main for pod default/job-pod-failure-policy-example-* failed with exit code 42 matching FailJob rule at index 0"
)

// examplesInOrder lists the manifests and their ends, as the documents print
// them.
func examplesInOrder() []*example {
	all := simpleExamples()
	all = append(all, retryExamples()...)
	all = append(all, policyExamples()...)
	all = append(all, clockExamples()...)
	return append(all, scriptedExamples()...)
}

func simpleExamples() []*example {
	return []*example{
		{name: "hello", expect: completes("a pod says hello", 1).with(logs("it said hello", hello))},
		{name: "pi", expect: completes("2000 digits of pi", 1).with(logs("all digits", digitsOfPi))},
		{name: "pi-parallel", expect: completes("four times pi, two at a time", 4).with(mostActive(2))},
		{name: "work-queue", shares: "/tmp", expect: completes("workers that share a queue, no completions", 3).
			with(logs("each of 9 items taken once", eachItemOnce))},
		{name: "indexed", expect: completes("every pod knows its index", 5).indexes("0-4", "").
			with(logs("each index printed once", eachIndexOnce))},
		{name: "sidecar", expect: completes("a sidecar does not keep the Job from ending", 1)},
		{name: "managed-elsewhere", expect: expectation{summary: "another controller's Job is left alone", traits: []trait{noPods()}}},
	}
}

func retryExamples() []*example {
	return []*example{
		{name: "retry-on-failure", expect: fails("the container restarts, its last run is cut short", "BackoffLimitExceeded", pastLimit, 1).
			with(containerRuns(4), podsInAll(1))},
		{name: "retry-never", expect: fails("a new pod for each try, each runs to its end", "BackoffLimitExceeded", pastLimit, 4).
			with(containerRuns(4), logs("4 full runs", fourFullRuns))},
		{name: "pi-with-timeout", expect: fails("stopped at its deadline", "DeadlineExceeded", pastDeadline, 1)},
		{name: "backoff-per-index", expect: fails("each index has its own retry, the even ones fail", "FailedIndexes", failedIndexes, 10).
			succeeding(5).indexes("1,3,5,7,9", "0,2,4,6,8").with(podsByIndex(2, 1, 2, 1, 2, 1, 2, 1, 2, 1))},
		{name: "max-failed-indexes", expect: fails("two indexes fail at once, one too many", "MaxFailedIndexesExceeded", pastMaxIndexes, 4).
			indexes("", "0,2").with(podsByIndex(1, 1, 1, 1))},
	}
}

func policyExamples() []*example {
	return []*example{
		{name: "pod-failure-policy", expect: fails("exit code 42 fails the whole Job", "PodFailurePolicy", exit42, 3).with(podsInAll(3))},
		{
			name: "disruption-ignored", script: []step{evictPods(allReady)},
			expect: completes("an eviction does not count, though no retry is allowed", 1).with(podsInAll(2)),
		},
		{name: "success-policy", expect: succeedsByPolicy("index 2 alone is enough", anyNumber).indexes("2", "")},
		{name: "success-leader", expect: succeedsByPolicy("the leader succeeds, its workers are stopped", 0).
			indexes("0", "").with(podsByIndex(1, 1, 1))},
	}
}

// clockExamples are those of the controllers of CronJobs and of finished Jobs.
func clockExamples() []*example {
	return []*example{
		{
			name: "cronjob", run: "hello-run-bc96rj",
			expect: completes("a run that is asked for, besides those of the schedule", 1).
				with(logs("it said the time and hello", timeAndHello)).with(cronTraits()...),
		},
		{
			name: "pi-with-ttl",
			expect: expectation{
				summary: "deleted when its time to live is over", outcome: outcome{gone: true},
				traits: []trait{ended(batchv1.JobComplete), outlivedEnd(5 * time.Second), noPods()},
			},
		},
	}
}

func scriptedExamples() []*example {
	return []*example{
		{
			name: "suspend-resume", script: []step{
				patch(allReady, `{"spec":{"suspend":true}}`),
				patch(restedWhileSuspended, `{"spec":{"suspend":false}}`),
			},
			expect: completes("suspended while it runs, and resumed", 2).resumed().with(startsAnew(), podsInAll(4)),
		},
		{
			name: "queued", script: []step{
				patch(suspended, `{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/os":"linux"}}}}}`),
				patch(suspended, `{"spec":{"suspend":false}}`),
			},
			expect: completes("created suspended, told where to run, resumed", 5).resumed().
				with(podsInAll(5), selectNode("kubernetes.io/os", "linux")),
		},
		{
			name: "pod-replacement", script: []step{deletePods(allReady)},
			expect: completes("deleted pods are replaced only once they are gone", 3).failing(3).
				with(mostTerminating(3), mostAlive(3), podsInAll(6)),
		},
		{
			name: "elastic", script: []step{
				patch(allReady, `{"spec":{"parallelism":4,"completions":4}}`),
				patch(allReady, `{"spec":{"parallelism":3,"completions":3}}`),
			},
			expect: completes("grows from 2 to 4 indexes, shrinks to 3", 3).indexes("0-2", "").
				with(podsByIndex(1, 1, 1, 1), stoppedIndexes("3")),
		},
		{
			name: "old", script: []step{orphanPods(allReady)},
			expect: expectation{summary: "deleted, its pods stay", outcome: outcome{gone: true}, traits: []trait{noPods()}},
		},
		{
			name: "new", adopts: "old",
			expect: completes("takes over the pods of old by its selector", 4).with(logs("two pods of old, two of new", twoOfEach)),
		},
	}
}

// completes expects a Job to succeed by the number of its pods.
func completes(summary string, succeeded int32) expectation {
	return expectation{
		summary: summary,
		outcome: outcome{
			conditions: ends(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, batchv1.JobReasonCompletionsReached, reached),
			succeeded:  succeeded,
		},
		events: []string{"SuccessfulCreate", "Completed"},
	}
}

// succeedsByPolicy expects a Job with one succeeded pod to be enough for the
// first rule of its success policy.
func succeedsByPolicy(summary string, failed int32) expectation {
	e := completes(summary, 1).failing(failed)
	e.outcome.conditions = ends(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, batchv1.JobReasonSuccessPolicy, matchedFirst)
	return e
}

// fails expects a Job to fail after so many pods.
func fails(summary, reason, message string, pods int32) expectation {
	return expectation{
		summary: summary,
		outcome: outcome{conditions: ends(batchv1.JobFailureTarget, batchv1.JobFailed, reason, message), failed: pods},
		events:  []string{"SuccessfulCreate", reason},
	}
}

func ends(interim, terminal batchv1.JobConditionType, reason, message string) []condition {
	return []condition{{string(interim), true, reason, message}, {string(terminal), true, reason, message}}
}

func (e expectation) succeeding(n int32) expectation { e.outcome.succeeded = n; return e }
func (e expectation) failing(n int32) expectation    { e.outcome.failed = n; return e }

func (e expectation) indexes(completed, failed string) expectation {
	e.outcome.completedIndexes, e.outcome.failedIndexes = completed, failed
	return e
}

func (e expectation) with(traits ...trait) expectation {
	e.traits = append(e.traits[:len(e.traits):len(e.traits)], traits...)
	return e
}

// resumed expects the Job to have been suspended and resumed.
func (e expectation) resumed() expectation {
	resumed := condition{string(batchv1.JobSuspended), false, "JobResumed", "Job resumed"}
	e.outcome.conditions = append([]condition{resumed}, e.outcome.conditions...)
	e.events = append(e.events[:len(e.events):len(e.events)], "Suspended", "Resumed")
	return e
}
