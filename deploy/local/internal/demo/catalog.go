package demo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Reasons and messages as the documents and the built-in controller have them.
const (
	reached       = "SuccessCriteriaMet, Complete (CompletionsReached: Reached expected number of succeeded pods)"
	byPolicy      = "SuccessCriteriaMet, Complete (SuccessPolicy: Matched rules at index 0)"
	resumedBefore = "not Suspended (JobResumed: Job resumed), "
)

// clusterGroup is the group of CronJobs that counts the runs of all namespaces.
const clusterGroup = "reports"

// examplesInOrder lists the manifests and what is said of each Job at its end. See compare
// for how the sentences are written, and sentences.go for those that there are.
func examplesInOrder() []*example {
	return slices.Concat(simpleExamples(), retryExamples(), policyExamples(), optionExamples(), clockExamples(), scriptedExamples())
}

func simpleExamples() []*example {
	return []*example{
		completes("hello", "a pod says hello", "succeeded 1", `it said hello ~ output Hello world!\n`),
		completes("pi", "2000 digits of pi", "succeeded 1", `all digits ~ output 3\.14159265358979323846\d{979}\d{1000}\s*`),
		completes("pi-parallel", "four times pi, two at a time", "succeeded 4", "never more than 2 active ~ active at most: [0-2]"),
		completes("work-queue", "workers that share a queue, no completions", "succeeded 3",
			"each of 9 items taken once ~ lines (?:[^i].*\n)*item 1\nitem 2\nitem 3\nitem 4\nitem 5\nitem 6\nitem 7\nitem 8\nitem 9(?:\n[^i].*)*").
			sharing("/tmp"),
		completes("indexed", "every pod knows its index", "succeeded 5", "completedIndexes 0-4",
			`each index printed once ~ output My index is 0\n\|My index is 1\n\|My index is 2\n\|My index is 3\n\|My index is 4\n`),
		completes("sidecar", "a sidecar does not keep the Job from ending", "succeeded 1"),
		{
			name: "managed-elsewhere", shows: "another controller's Job is left alone",
			wants: []string{"no condition", "succeeded 0", "failed 0", noPods},
		},
	}
}

// noPods: the Job controls no pod at the end.
const noPods = "no pod of its own ~ pods left: 0"

func retryExamples() []*example {
	const pastLimit = "BackoffLimitExceeded: Job has reached the specified backoff limit"
	return []*example{
		fails("retry-on-failure", "the container restarts, its last run is cut short", pastLimit,
			"failed 1", "container runs: 4", "pods in all: 1"),
		fails("retry-never", "a new pod for each try, each runs to its end", pastLimit,
			"failed 4", "container runs: 4", `4 full runs ~ output (?:[^|]*completed[^|]*\|){3}[^|]*completed[^|]*`),
		fails("pi-with-timeout", "stopped at its deadline", "DeadlineExceeded: Job was active longer than specified deadline", "failed 1"),
		fails("backoff-per-index", "each index has its own retry, the even ones fail", "FailedIndexes: Job has failed indexes",
			"succeeded 5", "failed 10", "completedIndexes 1,3,5,7,9", "failedIndexes 0,2,4,6,8", "pods by index 2,1,2,1,2,1,2,1,2,1"),
		fails("max-failed-indexes", "two indexes fail at once, one too many",
			"MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes",
			"failed 4", "failedIndexes 0,2", "pods by index 1,1,1,1"),
	}
}

func policyExamples() []*example {
	failJob := fails("pod-failure-policy", "exit code 42 fails the whole Job", "PodFailurePolicy: ", "failed 3", "pods in all: 3")
	failJob.wants[0] = "FailureTarget, Failed (PodFailurePolicy: exit code 42 matches a FailJob rule) ~ " +
		`FailureTarget, Failed \(PodFailurePolicy: Container main for pod default/job-pod-failure-policy-example-[^ ]+ failed with exit code 42 matching FailJob rule at index 0\)`
	anyPod := completes("success-policy", "index 2 alone is enough", "succeeded 1", `any failed ~ failed \d+`, "completedIndexes 2")
	leader := completes("success-leader", "the leader succeeds, its workers are stopped", "succeeded 1", "failed 0",
		"completedIndexes 0", "pods by index 1,1,1")
	anyPod.wants[0], leader.wants[0] = byPolicy, byPolicy
	return []*example{
		failJob,
		completes("disruption-ignored", "an eviction does not count, though no retry is allowed", "succeeded 1", "pods in all: 2").
			doing(evictPods(allReady)),
		anyPod, leader,
	}
}

// optionExamples are those of what a JobPolicy adds to the Kubernetes API (docs/policy.md).
func optionExamples() []*example {
	start := fails("start-deadline", "no node for it: fails at the deadline to start",
		"StartDeadlineExceeded: No pod of the Job ran before its deadline to start", "failed 1")
	start.wants[0] = "not jobpolicy.dev/Started (NoPodRan: No pod of the Job has run since it started), " + start.wants[0]
	return []*example{
		start,
		fails("never-started", "a missing ConfigMap: fails instead of waiting for ever", "PodNeverStarted: ", "failed 1").
			classified("PodNeverStarted", "NeverStarted", "problem=Configuration"),
		fails("try-deadline", "tries that hang are ended and repeated", "BackoffLimitExceeded: ", "failed 3").
			classified("BackoffLimitExceeded", "Deadline", "tries=3"),
		fails("more-memory", "the next try of an index gets more memory", "FailedIndexes: Job has failed indexes", "succeeded 1", "failed 3",
			"completedIndexes 0", "failedIndexes 1", "pods by index 1,3", "memory limits 32Mi, 32Mi, 64Mi, 96Mi"),
		fails("retry-delay", "a longer delay before the second try than before the third", "BackoffLimitExceeded: Job has reached the specified backoff limit",
			"failed 3", `tries 4s and 1s after the failure, or later ~ seconds before tries (?:[4-9]|\d\d+),\d+`),
		fails("lost-node", "pods that nobody ends, because their node is lost, are replaced all the same",
			"DeadlineExceeded: Job was active longer than specified deadline", "failed 2", "pods in all: 2",
			"replaced while the first is there ~ alive at most: 2").doing(deletePods(allActive)),
		unreadyNode(), underQuota(), stuckPods(),
		fails("keep-logs", "when it fails, the pod that still runs is ended, and its log stays",
			"BackoffLimitExceeded: Job has reached the specified backoff limit", "failed 2", `both logs stay ~ output index 0\n\|index 1\n`),
		completes("few-pods", "finished pods are deleted once they are counted", "succeeded 20", "pods in all: 20", "at most 9 are left ~ pods left: [1-9]"),
	}
}

// unreadyNode shows that a pod that does not end is replaced when its node is gone, and not while that is Ready. By the deadline alone
// the next pod would come two or three seconds after the first was to be gone.
func unreadyNode() *example {
	const wait = 5 * time.Second
	ex := fails("unready-node", "a pod that does not end is replaced when its node is gone, not while that is Ready",
		"DeadlineExceeded: Job was active longer than specified deadline", "failed 2", "pods in all: 2",
		`5s after it was to be gone, not sooner ~ seconds from due to the next pod (?:[5-9]|1\d)`)
	ex.node = "slow"
	return ex.doing(deletePods(allActive), deleteNode(ex.node, overdue(wait)))
}

// underQuota shows a delay of the Job's own while a quota refuses its pod. With the executor's delays, which double up to a minute,
// eight tries take two minutes.
func underQuota() *example {
	const tries = 8
	ex := completes("quota", "tries again each second while a quota refuses its pod", "succeeded 1", "pods in all: 1",
		"refused at least 8 times ~ "+regexp.QuoteMeta(refusedSeries)+` at most (?:[89]|\d\d+)`,
		`less than a minute ~ first pod [1-5]?\ds after the first start`)
	ex.quota, ex.events = "full", append(ex.events, "FailedCreate")
	return ex.doing(deleteQuota(ex.quota, func(past history) bool { return past.metrics[refusedSeries] >= tries }))
}

// stuckPods shows what alerts are made of. A pod of never-started may be counted as the three of this Job are, so
// fewer than three would not be theirs.
func stuckPods() *example {
	ex := completes("stuck-pods", "metrics for alerts count pods that cannot start", "succeeded 3",
		"counted as hindered ~ "+regexp.QuoteMeta(hinderedSeries)+` at most [3-9]`,
		"and as a Job without progress ~ "+regexp.QuoteMeta(stuckSeries)+` at most [1-9][^ ]*`,
		`then configured ~ output configured\n\|configured\n\|configured\n`)
	ex.script = []step{createConfigMap("settings", "GREETING", "configured", func(past history) bool {
		return past.metrics[hinderedSeries] >= 3 && past.metrics[stuckSeries] >= 1
	})}
	return ex
}

// clockExamples are those of the controllers of CronJobs and of finished Jobs.
func clockExamples() []*example {
	const cleared, successful = "the request is cleared", "lastSuccessfulTime set"
	hello := completes("cronjob", "a run that is asked for, besides those of the schedule",
		"succeeded 1", `it said the time and hello ~ output [^\n|]*\nHello from the Kubernetes cluster\n`).
		running("hello-run-"+runHash, askForRun("it is due every minute; one run comes now"), cleared, successful, "next run at the next whole minute")
	customers := completes("group-customers", "a run of a group of CronJobs that load one database", "succeeded 1").
		running("load-customers-run-"+runHash, askForRun("one run comes now"), cleared, successful)
	orders := completes("group-orders", "another one of the group; one waits until the other has ended", "succeeded 1").
		running("load-orders-run-"+runHash, askForRun("at the same time"), cleared, successful, "not beside load-customers")
	orders.beside = customers
	red := completes("cluster-group-red", "a run of a group of the whole cluster", "succeeded 1").
		running("report-red-run-"+runHash, askForRun("one run comes now"), cleared, successful)
	blue := completes("cluster-group-blue", "one of another namespace; one waits until the other has ended", "succeeded 1").
		running("report-blue-run-"+runHash, askForRun("at the same time"), cleared, successful, "not beside report-red")
	blue.beside = red
	year := time.Now().UTC().Year()
	thisYear, lastYear := newYear(year), newYear(year-1)
	missed := completes("missed-runs", "the two newest missed runs start, one after another", "succeeded 1").
		running(fmt.Sprintf("yearly-%d", thisYear.Unix()/60), resumeWithMissedRuns(), successful,
			"the older one first ~ runs one after another: "+lastYear.Format(time.RFC3339)+", "+thisYear.Format(time.RFC3339),
			"the next one is published ~ next-schedule-time "+newYear(year+1).Format(time.RFC3339))
	return []*example{hello, customers, orders, red, blue, missed, {
		name: "pi-with-ttl", shows: "deleted when its time to live is over",
		wants: []string{
			"gone", "Complete before ~ before: " + regexp.QuoteMeta(reached),
			`deleted 5s after, not sooner ~ deleted (?:[5-9]|\d\d+)s after its end`, noPods,
		},
	}}
}

func scriptedExamples() []*example {
	grown := `{"spec":{"parallelism":4,"completions":4}}`
	return []*example{
		completes("suspend-resume", "suspended while it runs, and resumed", "succeeded 2", "start times: 2", "pods in all: 4").resumed().
			doing(patch(allReady, `{"spec":{"suspend":true}}`), patch(restedWhileSuspended, `{"spec":{"suspend":false}}`)),
		completes("queued", "created suspended, told where to run, resumed", "succeeded 5", "pods in all: 5",
			`all with nodeSelector kubernetes.io/os=linux ~ node selectors map\[kubernetes\.io/os:linux\]`).resumed().
			doing(patch(suspended, `{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/os":"linux"}}}}}`),
				patch(suspended, `{"spec":{"suspend":false}}`)),
		completes("pod-replacement", "deleted pods are replaced only once they are gone", "succeeded 3", "failed 3",
			"seen terminating: 3", "never more than 3 pods alive ~ alive at most: [0-3]", "pods in all: 6").doing(deletePods(allReady)),
		completes("elastic", "grows from 2 to 4 indexes, shrinks to 3", "succeeded 3", "completedIndexes 0-2", "pods by index 1,1,1,1",
			"the pod of index 3 stopped ~ stopped pods of indexes 3").
			doing(patch(allReady, grown), patch(allReady, strings.ReplaceAll(grown, "4", "3"))),
		{
			name: "old", shows: "deleted, its pods stay", wants: []string{"gone", noPods},
			script: []step{orphanPods(allReady)},
		},
		completes("new", "takes over the pods of old by its selector", "succeeded 4",
			`two pods of old, two of new ~ output template of new\n\|template of new\n\|template of old\n\|template of old\n`).adopting("old"),
	}
}

// completes expects a Job to succeed by the number of its pods, without failed ones unless
// the sentences say so.
func completes(name, shows string, wants ...string) *example {
	if !slices.ContainsFunc(wants, func(want string) bool { return strings.Contains(want, "failed ") }) {
		wants = slices.Insert(wants, 1, "failed 0")
	}
	return &example{name: name, shows: shows, wants: append([]string{reached}, wants...), events: []string{"SuccessfulCreate", "Completed"}}
}

// fails expects a Job to fail for a reason, without succeeded pods unless the sentences say so.
func fails(name, shows, because string, wants ...string) *example {
	if !slices.ContainsFunc(wants, func(want string) bool { return strings.HasPrefix(want, "succeeded ") }) {
		wants = append([]string{"succeeded 0"}, wants...)
	}
	reason, _, _ := strings.Cut(because, ":")
	return &example{
		name: name, shows: shows, events: []string{"SuccessfulCreate", reason},
		wants: append([]string{"FailureTarget, Failed (" + because + ")"}, wants...),
	}
}

// resumed expects the Job to have been suspended and resumed.
func (ex *example) resumed() *example {
	ex.wants[0] = resumedBefore + ex.wants[0]
	ex.events = append(ex.events, "Suspended", "Resumed")
	return ex
}

// classified expects the condition of the option endCondition, with a part of its brackets.
func (ex *example) classified(reason, class, part string) *example {
	ex.wants[0] = fmt.Sprintf(`FailureTarget, jobpolicy.dev/FailureClassified (%[2]s: … %[3]s), Failed (%[1]s: …) ~ `+
		`FailureTarget \(%[1]s: .*\), jobpolicy\.dev/FailureClassified \(%[2]s: .* \[.*%[3]s\]\), Failed \(%[1]s: .*\)`, reason, class, part)
	return ex
}

// running says which run of a CronJob is the example's, what makes that start, and what is said of the CronJob.
func (ex *example) running(run string, start start, cronWants ...string) *example {
	ex.run, ex.start, ex.cronWants = run, start, cronWants
	ex.wants = append(ex.wants, cronWants...)
	return ex
}

func newYear(year int) time.Time { return time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC) }

func (ex *example) doing(script ...step) *example  { ex.script = script; return ex }
func (ex *example) sharing(dir string) *example    { ex.shares = dir; return ex }
func (ex *example) adopting(other string) *example { ex.adopts = other; return ex }
