package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func announces(tp *tape, kind batchv1.JobConditionType, reason string) {
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { setCondition(s, kind, reason, tp.now) })
}

func announcesSuccess(tp *tape) {
	announces(tp, batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached)
}

func announcesFailure(tp *tape) {
	announces(tp, batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded)
}

// finish writes a terminal condition with the final counts of a Job of two pods.
func finish(tp *tape, kind batchv1.JobConditionType) {
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
		s.Active, s.Succeeded, s.UncountedTerminatedPods = 0, 2, &batchv1.UncountedTerminatedPods{}
		setCondition(s, kind, "", tp.now)
	})
}

// succeed lets both pods of a Job succeed and be recorded.
func succeed(tp *tape) {
	starts(tp)
	tp.ends("a-0", 0)
	tp.ends("a-1", 0)
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { succeededList(s, "a-0", "a-1") })
}

// The terminal condition comes last, and a verdict stays (I4).
func TestConditions(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"Complete with a pod that holds the finalizer": {want: []string{"I2", "I4"}, play: func(tp *tape) {
			succeed(tp)
			announcesSuccess(tp)
			tp.release(executorA, "a-0")
			finish(tp, batchv1.JobComplete)
		}},
		"a status after the end": {want: []string{"I4"}, play: running(func(tp *tape) {
			completes(tp)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Ready = new(int32(0)) })
		})},
		"Complete while a pod runs that is no longer the Job's": {play: running(func(tp *tape) {
			tp.pod(user, "job-a", "a-2", noIndex, func(pod *corev1.Pod) { pod.Labels = nil })
			tp.wait(time.Hour)
			completes(tp)
		})},
	})
}

// declare lets the executor announce a verdict on a Job with two pods, after something happened.
func declare(kind batchv1.JobConditionType, reason string, what func(*tape), changes ...func(*batchv1.Job)) func(*tape) {
	return func(tp *tape) {
		tp.job("a", changes...)
		for i, pod := range []string{"a-0", "a-1"} { // They exist for long enough, so it does not matter who made them.
			tp.pod(user, "job-a", pod, int32(i))
		}
		tp.wait(time.Hour)
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active, s.StartTime = 2, new(metav1.NewTime(tp.now)) })
		what(tp)
		announces(tp, kind, reason)
	}
}

// restart lets a container of the first pod restart n times.
func restart(n int32) func(*tape) {
	return func(tp *tape) {
		tp.edit(kubelet, "a-0", func(pod *corev1.Pod) {
			pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodRunning, []corev1.ContainerStatus{{RestartCount: n}}
		})
	}
}

// givenAway lets both pods succeed. The first is another's when the executor releases it, which
// was so long ago.
func givenAway(ago time.Duration) func(*tape) {
	return func(tp *tape) {
		tp.ends("a-0", 0)
		tp.ends("a-1", 0)
		tp.edit("webhook", "a-0", func(pod *corev1.Pod) { pod.OwnerReferences[0].UID = "of another" })
		tp.deletes("webhook", "a-0")
		tp.release(executorA, "a-0")
		tp.wait(ago)
	}
}

// A verdict has a cause, and failure goes before success.
func TestVerdicts(t *testing.T) {
	onFailure := func(job *batchv1.Job) {
		job.Spec.BackoffLimit, job.Spec.Template.Spec.RestartPolicy = new(int32(3)), corev1.RestartPolicyOnFailure
	}
	succeedFirst := func(job *batchv1.Job) {
		job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("0"), SucceededCount: new(int32(1))}}}
	}
	end := func(codes ...int32) func(*tape) {
		return func(tp *tape) {
			for i, code := range codes {
				tp.ends([]types.UID{"a-0", "a-1"}[i], code)
			}
		}
	}
	surplus := func(tp *tape) {
		tp.spec(parallel(1))
		tp.deletes(user, "a-0")
		tp.release(executorA, "a-0")
	}
	deletedFirst := func(tp *tape) { // Index 0 succeeds, index 1 fails, and another pod of index 0 succeeds.
		tp.deletes(user, "a-0")
		end(0, 42)(tp)
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Succeeded, s.CompletedIndexes = 1, "0" })
		tp.pod(user, "job-a", "b-0", 0)
		tp.ends("b-0", 0)
	}
	listed := func(tp *tape) { tp.judge.lists(executorA, tp.now); tp.wait(time.Second); end(42, 0)(tp) }
	passes := func(d time.Duration) func(*tape) { return func(tp *tape) { tp.wait(d) } }
	success, failure := batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget
	failJob := policyOn(42, batchv1.PodFailurePolicyActionFailJob)
	queue := func(job *batchv1.Job) { job.Spec.Completions = nil }
	broken := []string{"verdict"}
	runStreams(t, map[string]streamCase{
		"completions reached":                          {play: declare(success, batchv1.JobReasonCompletionsReached, end(0, 0))},
		"completions not reached":                      {want: broken, play: declare(success, batchv1.JobReasonCompletionsReached, end(0, 0), completions(3))},
		"a completion was given away a moment ago":     {play: declare(success, batchv1.JobReasonCompletionsReached, givenAway(0))},
		"a completion was given away long ago":         {want: broken, play: declare(success, batchv1.JobReasonCompletionsReached, givenAway(time.Hour))},
		"completions reached, a pod runs":              {want: broken, play: declare(success, batchv1.JobReasonCompletionsReached, end(0), completions(1))},
		"a work queue, one succeeded and one runs":     {want: broken, play: declare(success, batchv1.JobReasonCompletionsReached, end(0), queue)},
		"a work queue, one succeeded and one failed":   {play: declare(success, batchv1.JobReasonCompletionsReached, end(0, 1), queue)},
		"a work queue, all failed":                     {want: broken, play: declare(success, batchv1.JobReasonCompletionsReached, end(1, 1), queue)},
		"success although a failure came before":       {want: broken, play: declare(success, batchv1.JobReasonCompletionsReached, end(42, 0), completions(1), failJob)},
		"the same, a moment after a new list":          {play: declare(success, batchv1.JobReasonCompletionsReached, func(tp *tape) { end(42, 0)(tp); tp.judge.lists(executorA, tp.now) }, completions(1), failJob)},
		"the same, long after a new list":              {want: broken, play: declare(success, batchv1.JobReasonCompletionsReached, listed, completions(1), failJob)},
		"success, and a failure after it":              {play: declare(success, batchv1.JobReasonCompletionsReached, end(0, 42), completions(1), failJob)},
		"success although too many failed before":      {want: broken, play: declare(success, batchv1.JobReasonCompletionsReached, end(1, 0), completions(1), noRetries)},
		"a FailJob exit code":                          {play: declare(failure, batchv1.JobReasonPodFailurePolicy, end(42), failJob)},
		"another exit code":                            {want: broken, play: declare(failure, batchv1.JobReasonPodFailurePolicy, end(41), failJob)},
		"more failures than allowed":                   {play: declare(failure, batchv1.JobReasonBackoffLimitExceeded, end(1), noRetries)},
		"as many failures as allowed":                  {want: broken, play: declare(failure, batchv1.JobReasonBackoffLimitExceeded, end(1))},
		"a failure that it let go as surplus":          {want: broken, play: declare(failure, batchv1.JobReasonBackoffLimitExceeded, surplus, noRetries)},
		"the same, and the answer may be lost":         {play: declare(failure, batchv1.JobReasonBackoffLimitExceeded, func(tp *tape) { tp.judge.disturbed(tp.now); surplus(tp) }, noRetries)},
		"restarts enough":                              {play: declare(failure, batchv1.JobReasonBackoffLimitExceeded, restart(3), onFailure)},
		"restarts too few":                             {want: broken, play: declare(failure, batchv1.JobReasonBackoffLimitExceeded, restart(2), onFailure)},
		"the deadline passed":                          {play: declare(failure, batchv1.JobReasonDeadlineExceeded, passes(time.Minute), deadline(60))},
		"the deadline is yet to pass":                  {want: broken, play: declare(failure, batchv1.JobReasonDeadlineExceeded, passes(59*time.Second), deadline(60))},
		"a deadline of thousands of years":             {want: broken, play: declare(failure, batchv1.JobReasonDeadlineExceeded, passes(time.Minute), deadline(999_999_999_999))},
		"no deadline":                                  {want: broken, play: declare(failure, batchv1.JobReasonDeadlineExceeded, passes(time.Minute))},
		"no rule of that name":                         {want: broken, play: declare(failure, "Mood", end(1))},
		"failed indexes, none of them":                 {want: broken, play: declare(failure, batchv1.JobReasonFailedIndexes, end(1), indexedJob(2))},
		"more failed indexes than allowed, no limit":   {want: broken, play: declare(failure, batchv1.JobReasonMaxFailedIndexesExceeded, end(1), indexedJob(2))},
		"the success policy is not met":                {want: broken, play: declare(success, batchv1.JobReasonSuccessPolicy, end(), indexedJob(2), succeedFirst)},
		"success by a pod that was being deleted":      {play: declare(success, batchv1.JobReasonSuccessPolicy, deletedFirst, indexedJob(2), succeedFirst, failJob)},
		"a Job without success policy":                 {want: broken, play: declare(success, batchv1.JobReasonSuccessPolicy, end(0))},
		"a deleting pod decides nothing that succeeds": {play: declare(success, batchv1.JobReasonCompletionsReached, func(tp *tape) { end(0, 0)(tp); tp.deletes(user, "a-0") })},
	})
}

func TestSuccessPolicyMet(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: batchv1.JobSpec{
		Completions: new(int32(5)),
		SuccessPolicy: &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{
			{SucceededIndexes: new("0-2"), SucceededCount: new(int32(2))}, {SucceededIndexes: new("4")}, {SucceededCount: new(int32(4))},
		}},
	}}
	for completed, met := range map[string]bool{"": false, "0": false, "0,2": true, "4": true, "0,3": false, "3": false} {
		job.Status.CompletedIndexes = completed
		if missing := successPolicyMissing(nil, job); (missing == "") != met {
			t.Errorf("completed %q: missing %q, met should be %t", completed, missing, met)
		}
	}
}

// deletesInForeground deletes Job a, and the garbage collector deletes its pods. One is stopped with
// an exit code.
func deletesInForeground(tp *tape, code int32) {
	tp.spec(func(job *batchv1.Job) { job.DeletionTimestamp = &metav1.Time{Time: tp.now} })
	for _, pod := range []types.UID{"a-0", "a-1"} {
		tp.edit("garbage-collector", pod, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: tp.now} })
	}
	tp.ends("a-0", code)
}

// A Job neither fails nor succeeds because its own pods are deleted with it.
func TestPodsThatAreDeletedWithTheirJob(t *testing.T) {
	foreground := func(code int32, then func(tp *tape), changes ...func(*batchv1.Job)) func(tp *tape) {
		return func(tp *tape) {
			starts(tp, changes...)
			deletesInForeground(tp, code)
			then(tp)
		}
	}
	listed := func(as func(*batchv1.JobStatus, ...types.UID)) func(tp *tape) {
		return func(tp *tape) { tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { as(s, "a-0") }) }
	}
	runStreams(t, map[string]streamCase{
		"released and not counted": {play: foreground(143, releasesBoth, noRetries)},
		"failed because of them":   {want: []string{"verdict"}, play: foreground(143, announcesFailure, noRetries)},
		"recorded as failed":       {want: []string{"I2"}, play: foreground(143, listed(failedList))},
		"recorded as succeeded":    {want: []string{"I2"}, play: foreground(0, listed(succeededList))},
		"complete because of them": {want: []string{"verdict"}, play: func(tp *tape) {
			starts(tp)
			tp.ends("a-1", 0)
			deletesInForeground(tp, 0)
			announcesSuccess(tp)
		}},
		"a work queue that had a success is complete without them": {want: []string{"verdict"}, play: func(tp *tape) {
			starts(tp, func(job *batchv1.Job) { job.Spec.Completions = nil })
			tp.ends("a-1", 0)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { succeededList(s, "a-1") })
			deletesInForeground(tp, 143)
			announcesSuccess(tp)
		}},
		"failed because of a pod that failed before": {play: func(tp *tape) {
			starts(tp, noRetries)
			tp.ends("a-1", 1)
			deletesInForeground(tp, 143)
			announcesFailure(tp)
		}},
	})
}
