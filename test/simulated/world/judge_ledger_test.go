package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A release comes after the status that accounts for the pod (I1).
func TestRelease(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"of an ended pod that no status accounts for": {want: []string{"I1"}, play: running(func(tp *tape) {
			tp.ends("a-0", 0)
			tp.release(executorA, "a-0")
		})},
		"of an ended pod that the status lists": {play: running(func(tp *tape) { fails(tp, "a-0") })},
		"of a pod whose index is completed": {play: func(tp *tape) {
			completesIndex0(tp)
			tp.release(executorA, "a-0")
		}},
		"of a pod whose index another one had a moment ago": {play: secondOfItsIndex(time.Second)},
		"of a pod whose index another one had long ago":     {want: []string{"I1"}, play: secondOfItsIndex(time.Hour)},
		"of a failed pod of an index that is completed": {want: []string{"I1"}, play: func(tp *tape) {
			tp.job("a", indexedJob(2))
			tp.pod(executorA, "job-a", "a-0", 0)
			tp.pod(user, "job-a", "a-1", 0)
			tp.ends("a-0", 0)
			tp.ends("a-1", 1)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.CompletedIndexes, s.Succeeded = "0", 1 })
			tp.release(executorA, "a-1")
		}},
		"of a running pod that nothing asks to end": {want: []string{"I1"}, play: running(func(tp *tape) { tp.release(executorA, "a-0") })},
		"of a running pod of a suspended Job": {play: running(func(tp *tape) {
			tp.spec(suspend)
			tp.release(executorA, "a-0")
		})},
		"of a running pod too many": {play: running(func(tp *tape) {
			tp.spec(parallel(1))
			tp.release(executorA, "a-0")
		})},
		"of a pod that the policy ignores": {play: func(tp *tape) {
			starts(tp, policyOn(1, batchv1.PodFailurePolicyActionIgnore))
			tp.ends("a-0", 1)
			tp.release(executorA, "a-0")
		}},
		"of a pod that the policy counts": {want: []string{"I1"}, play: func(tp *tape) {
			starts(tp, policyOn(1, batchv1.PodFailurePolicyActionIgnore))
			tp.ends("a-0", 2)
			tp.release(executorA, "a-0")
		}},
		"of an ended pod after its Job is gone": {play: running(func(tp *tape) {
			tp.ends("a-0", 0)
			tp.removes(user, "jobs", "job-a")
			tp.release(executorA, "a-0")
		})},
		"of a pod that its Job no longer selects": {play: running(func(tp *tape) {
			tp.edit(user, "a-0", func(pod *corev1.Pod) { pod.Labels = nil })
			tp.release(executorA, "a-0")
		})},
		"by somebody else": {play: running(func(tp *tape) {
			tp.ends("a-0", 0)
			tp.release(user, "a-0")
		})},
	})
}

// The policy may ignore a disrupted pod that an executor still sees running when the Job has failed (I1).
func TestReleaseOfADisruptedPod(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"that succeeded after its Job had failed": {play: succeedsLate(0)},
		"that succeeded long before its release":  {want: []string{"I1"}, play: succeedsLate(time.Hour)},
		"that failed after its Job had failed":    {play: failsLate(0)},
		"that failed long before its release":     {want: []string{"I1"}, play: failsLate(time.Hour)},
		"that succeeded, of a Job that has not failed": {want: []string{"I1"}, play: func(tp *tape) {
			starts(tp, ignoresDisruptions)
			tp.ends("a-0", 0, disrupts)
			tp.release(executorA, "a-0")
		}},
	})
}

// ignoresDisruptions lets a Job ignore failures of disrupted pods.
func ignoresDisruptions(job *batchv1.Job) {
	job.Spec.BackoffLimit = new(int32(0))
	job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}
}

// succeedsLate lets a disrupted pod of a failed Job succeed. The pod is released some time later.
func succeedsLate(later time.Duration) func(*tape) {
	return func(tp *tape) {
		starts(tp, ignoresDisruptions)
		tp.ends("a-1", 1)
		announcesFailure(tp)
		tp.ends("a-0", 0, disrupts)
		tp.wait(later)
		tp.release(executorA, "a-0")
	}
}

// failsLate lets a disrupted pod of a failed Job fail with an exit code that counts, whether
// the pod was disrupted or not. The pod is released some time later.
func failsLate(later time.Duration) func(*tape) {
	return func(tp *tape) {
		starts(tp, ignoresDisruptions, func(job *batchv1.Job) {
			counts := batchv1.PodFailurePolicyRule{
				Action:      batchv1.PodFailurePolicyActionCount,
				OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}},
			}
			job.Spec.PodFailurePolicy.Rules = append([]batchv1.PodFailurePolicyRule{counts}, job.Spec.PodFailurePolicy.Rules...)
		})
		tp.ends("a-1", 1)
		announcesFailure(tp)
		tp.edit(kubelet, "a-0", disrupts)
		tp.ends("a-0", 42, disrupts)
		tp.wait(later)
		tp.release(executorA, "a-0")
	}
}

// policyOn gives a Job a pod failure policy with one rule, on an exit code.
func policyOn(code int32, action batchv1.PodFailurePolicyAction) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action:      action,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code}},
		}}}
	}
}

// A pod is counted once, when its finalizer is gone (I2, I3).
func TestLedger(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"counted while the finalizer is on": {want: []string{"I2"}, play: running(func(tp *tape) {
			tp.ends("a-0", 1)
			records(tp, "a-0")
			counts(tp)
		})},
		"counted when it is gone": {play: running(func(tp *tape) {
			fails(tp, "a-0")
			counts(tp)
		})},
		"recorded again after it was counted": {want: []string{"I2"}, play: running(func(tp *tape) {
			fails(tp, "a-0")
			counts(tp)
			records(tp, "a-0")
		})},
	})
}

// A pod is recorded in the list that its end belongs to (I2).
func TestRecords(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"a running pod recorded as failed": {want: []string{"I2"}, play: running(func(tp *tape) { records(tp, "a-0") })},
		"a deleted pod recorded as failed": {play: running(func(tp *tape) {
			tp.deletes(user, "a-0")
			records(tp, "a-0")
		})},
		"a deleted pod recorded as failed that may yet succeed": {want: []string{"I2"}, play: func(tp *tape) {
			starts(tp, func(job *batchv1.Job) { job.Spec.PodReplacementPolicy = new(batchv1.Failed) })
			tp.deletes(user, "a-0")
			records(tp, "a-0")
		}},
		"a failed pod recorded as succeeded": {want: []string{"I2"}, play: running(func(tp *tape) {
			tp.ends("a-0", 1)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { succeededList(s, "a-0") })
		})},
		"a succeeded pod recorded as failed": {want: []string{"I2"}, play: running(func(tp *tape) {
			tp.ends("a-0", 0)
			records(tp, "a-0")
		})},
		"a pod recorded that the policy ignores": {want: []string{"I2"}, play: func(tp *tape) {
			starts(tp, policyOn(1, batchv1.PodFailurePolicyActionIgnore))
			tp.ends("a-0", 1)
			records(tp, "a-0")
		}},
		"another Job's pod": {want: []string{"I8"}, play: running(func(tp *tape) {
			tp.job("b")
			tp.ends("a-0", 1)
			tp.status(executorA, "job-b", func(s *batchv1.JobStatus) { failedList(s, "a-0") })
		})},
	})
}

// secondOfItsIndex releases the second of two running pods of an index, some time after somebody
// deleted the first.
func secondOfItsIndex(later time.Duration) func(*tape) {
	return func(tp *tape) {
		tp.job("a", indexedJob(1))
		tp.pod(executorA, "job-a", "a-0", 0)
		tp.pod(user, "job-a", "b-0", 0)
		tp.wait(time.Hour)
		tp.deletes(user, "a-0")
		tp.wait(later)
		tp.release(executorA, "b-0")
	}
}

// failedBefore is the annotation of how often the pod's index has failed.
func failedBefore(failures string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[batchv1.JobIndexFailureCountAnnotation] = failures }
}

// The index sets agree with the ends of the pods.
func TestIndexes(t *testing.T) {
	failIndex := func(tp *tape, name types.UID, failures string) {
		tp.pod(executorA, "job-a", string(name), 0, failedBefore(failures))
		tp.ends(name, 1)
	}
	limited := retries(1)
	runStreams(t, map[string]streamCase{
		"completed without a success": {want: []string{"verdict"}, play: func(tp *tape) {
			tp.job("a", indexedJob(2))
			tp.pod(executorA, "job-a", "a-0", 0)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.CompletedIndexes, s.Succeeded = "0", 1 })
		}},
		"an index that goes": {want: []string{"I2"}, play: func(tp *tape) {
			completesIndex0(tp)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.CompletedIndexes, s.Succeeded = "", 0 })
		}},
		"an index that goes with the completions": {play: func(tp *tape) {
			tp.job("a", indexedJob(2))
			tp.pod(executorA, "job-a", "a-1", 1)
			tp.ends("a-1", 0)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.CompletedIndexes, s.Succeeded = "1", 1 })
			tp.spec(sized(1, 1))
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.CompletedIndexes, s.Succeeded = "", 0 })
		}},
		"failed too early": {want: []string{"verdict"}, play: func(tp *tape) {
			tp.job("a", indexedJob(2), limited)
			failIndex(tp, "a-0", "0")
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.FailedIndexes = new("0"); failedList(s, "a-0") })
		}},
		"failed once too often": {play: func(tp *tape) {
			tp.job("a", indexedJob(2), limited)
			failIndex(tp, "a-0", "0")
			tp.wait(10 * time.Second)
			failIndex(tp, "a-1", "1")
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.FailedIndexes = new("0"); failedList(s, "a-0", "a-1") })
		}},
		"failed once, after what another Job counted": {play: func(tp *tape) {
			tp.job("a", indexedJob(2), limited)
			tp.job("b", indexedJob(2), limited)
			tp.pod(user, "job-b", "a-0", 0, failedBefore("1"))
			tp.edit(user, "a-0", loose)
			tp.edit(user, "a-0", func(pod *corev1.Pod) { pod.Labels = map[string]string{"job": "a"} })
			tp.edit(executorA, "a-0", func(pod *corev1.Pod) {
				pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "a", UID: "job-a", Controller: new(true)}}
			})
			tp.ends("a-0", 1)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.FailedIndexes = new("0"); failedList(s, "a-0") })
		}},
		"failed by the policy": {play: func(tp *tape) {
			tp.job("a", indexedJob(2), limited, policyOn(1, batchv1.PodFailurePolicyActionFailIndex))
			failIndex(tp, "a-0", "0")
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.FailedIndexes = new("0"); failedList(s, "a-0") })
		}},
	})
}
