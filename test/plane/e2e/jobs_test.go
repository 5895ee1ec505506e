package e2e

import (
	"os"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/deploy/local/must"
)

// An end is what a finished Job's status says.
type end struct {
	Complete, Failed      string
	Succeeded, FailedPods int32
	CompletedIndexes      string
}

func endOf(job *batchv1.Job) end {
	return end{
		Complete:         conditionReason(job, batchv1.JobComplete),
		Failed:           conditionReason(job, batchv1.JobFailed),
		Succeeded:        job.Status.Succeeded,
		FailedPods:       job.Status.Failed,
		CompletedIndexes: job.Status.CompletedIndexes,
	}
}

// failsOnce fails the first pod of index 1 and lets all others succeed. The
// directory tells the second pod of index 1 that there was a first.
const failsOnce = `
mark="/tmp/jobpolicy-e2e-$UID_OF_JOB"
test "$JOB_COMPLETION_INDEX" = 1 || exit 0
mkdir "$mark" 2>/dev/null && exit 1
rmdir "$mark"
`

func TestJobsRunToTheirEnd(t *testing.T) {
	t.Parallel()
	quick := shell("true", corev1.RestartPolicyNever)
	cases := map[string]struct {
		spec batchv1.JobSpec
		want end
	}{
		"a single pod succeeds": {
			spec: batchv1.JobSpec{Template: quick},
			want: end{Complete: "CompletionsReached", Succeeded: 1},
		},
		"more parallelism than completions": {
			spec: batchv1.JobSpec{Parallelism: new(int32(9)), Completions: new(int32(4)), Template: quick},
			want: end{Complete: "CompletionsReached", Succeeded: 4},
		},
		"fewer pods at once than completions": {
			spec: batchv1.JobSpec{Parallelism: new(int32(2)), Completions: new(int32(5)), Template: quick},
			want: end{Complete: "CompletionsReached", Succeeded: 5},
		},
		"a work queue ends when all workers have": {
			spec: batchv1.JobSpec{Parallelism: new(int32(3)), Template: shell("sleep 1", corev1.RestartPolicyNever)},
			want: end{Complete: "CompletionsReached", Succeeded: 3},
		},
		"nothing to complete": {
			spec: batchv1.JobSpec{Completions: new(int32(0)), Template: quick},
			want: end{Complete: "CompletionsReached"},
		},
		"every index once": {
			spec: batchv1.JobSpec{Parallelism: new(int32(3)), Completions: new(int32(7)), CompletionMode: new(batchv1.IndexedCompletion), Template: quick},
			want: end{Complete: "CompletionsReached", Succeeded: 7, CompletedIndexes: "0-6"},
		},
		"one index fails once and is retried": {
			spec: batchv1.JobSpec{
				Parallelism: new(int32(3)), Completions: new(int32(3)), CompletionMode: new(batchv1.IndexedCompletion),
				Template: shell(failsOnce, corev1.RestartPolicyNever),
			},
			want: end{Complete: "CompletionsReached", Succeeded: 3, FailedPods: 1, CompletedIndexes: "0-2"},
		},
		"pods fail until the back-off limit is exceeded": {
			spec: batchv1.JobSpec{BackoffLimit: new(int32(1)), Template: shell("exit 3", corev1.RestartPolicyNever)},
			want: end{Failed: "BackoffLimitExceeded", FailedPods: 2},
		},
		"containers restart until the back-off limit is reached": {
			spec: batchv1.JobSpec{BackoffLimit: new(int32(2)), Template: shell("exit 3", corev1.RestartPolicyOnFailure)},
			want: end{Failed: "BackoffLimitExceeded", FailedPods: 1},
		},
		"an init container restarts until the back-off limit is reached": {
			spec: batchv1.JobSpec{BackoffLimit: new(int32(1)), Template: withInit(shell("true", corev1.RestartPolicyOnFailure), "exit 1")},
			want: end{Failed: "BackoffLimitExceeded", FailedPods: 1},
		},
		"the deadline passes": {
			spec: batchv1.JobSpec{ActiveDeadlineSeconds: new(int64(2)), Parallelism: new(int32(2)), Template: shell("sleep 600", corev1.RestartPolicyNever)},
			want: end{Failed: "DeadlineExceeded", FailedPods: 2},
		},
	}
	namespace := newNamespace(t)
	i := 0
	for name, tc := range cases {
		job := "job-" + string(rune('a'+i))
		i++
		tc.spec.Template = withJobUID(tc.spec.Template)
		createJob(t, namespace, job, tc.spec)
		t.Run(name, func(t *testing.T) {
			must.Equal(t, "end of the Job", tc.want, endOf(waitFinished(t, namespace, job)))
		})
	}
}

func withInit(template corev1.PodTemplateSpec, script string) corev1.PodTemplateSpec {
	template.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "none", Command: []string{"sh", "-c", script}}}
	return template
}

// withJobUID returns the template with containers that know their Job's UID, in
// UID_OF_JOB.
func withJobUID(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	told := template.DeepCopy()
	for i := range told.Spec.Containers {
		told.Spec.Containers[i].Env = append(told.Spec.Containers[i].Env, corev1.EnvVar{
			Name: "UID_OF_JOB",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
				FieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']",
			}},
		})
	}
	return *told
}

func TestParallelismIsFollowed(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createJob(t, namespace, "scaled", batchv1.JobSpec{
		Parallelism: new(int32(0)), Completions: new(int32(6)), Template: shell("sleep 600", corev1.RestartPolicyNever),
	})
	for _, n := range []int32{4, 1, 0, 2} {
		patchJob(t, namespace, "scaled", `{"spec":{"parallelism":`+string(rune('0'+n))+`}}`)
		job := waitJob(t, namespace, "scaled", "as many pods as wanted", func(job *batchv1.Job) bool {
			return job.Status.Active == n && ptr.Deref(job.Status.Ready, -1) == n && ptr.Deref(job.Status.Terminating, -1) == 0
		})
		if job.Status.Failed != 0 {
			t.Errorf("pods that were not wanted any more counted as failed: %s", describe(job))
		}
	}
}

func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	// Its pods run until the Job is resumed.
	release := t.TempDir() + "/go"
	createJob(t, namespace, "paused", batchv1.JobSpec{
		Parallelism: new(int32(2)), Completions: new(int32(2)), ActiveDeadlineSeconds: new(int64(600)),
		Template: shell("until [ -e "+release+" ]; do sleep 0.2; done", corev1.RestartPolicyNever),
	})
	running := waitJob(t, namespace, "paused", "two pods ready", func(job *batchv1.Job) bool { return ptr.Deref(job.Status.Ready, 0) == 2 })
	first := running.Status.StartTime
	patchJob(t, namespace, "paused", `{"spec":{"suspend":true}}`)
	suspended := waitJob(t, namespace, "paused", "suspended", func(job *batchv1.Job) bool {
		return conditionReason(job, batchv1.JobSuspended) == "JobSuspended" && job.Status.Active == 0 && ptr.Deref(job.Status.Terminating, -1) == 0
	})
	if suspended.Status.StartTime != nil {
		t.Errorf("a suspended Job has start time %v", suspended.Status.StartTime)
	}
	time.Sleep(1100 * time.Millisecond) // so that a later start time can be told from the first
	patchJob(t, namespace, "paused", `{"spec":{"suspend":false}}`)
	must.Succeed(t, os.WriteFile(release, nil, 0o644))
	job := waitFinished(t, namespace, "paused")
	if !first.Before(job.Status.StartTime) {
		t.Errorf("start time after resuming is %v, at first it was %v", job.Status.StartTime, first)
	}
	want := end{Complete: "CompletionsReached", Succeeded: 2}
	must.Equal(t, "end of the Job", want, endOf(job))
	waitEvents(t, job, "Suspended", "Resumed", "Completed", "SuccessfulCreate")
}
