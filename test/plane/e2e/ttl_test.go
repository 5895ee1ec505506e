package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/kit/objects"
)

// policy is the annotation that holds the options of a Job.
func policy(spec string) map[string]string { return map[string]string{wire.Policy: spec} }

func TestFinishedJobsExpire(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		ttl    *int32
		policy map[string]string
		script string
		// then changes the Job after it has finished.
		then string
		want time.Duration
	}{
		"at once":                         {ttl: new(int32(0)), script: "true", want: 0},
		"after two seconds":               {ttl: new(int32(2)), script: "true", want: 2 * time.Second},
		"a failed one too":                {ttl: new(int32(1)), script: "false", want: time.Second},
		"sooner than was said first":      {ttl: new(int32(3600)), script: "true", then: `{"spec":{"ttlSecondsAfterFinished":1}}`, want: time.Second},
		"when it is said later":           {script: "true", then: `{"spec":{"ttlSecondsAfterFinished":3}}`, want: 3 * time.Second},
		"by the option for success":       {ttl: new(int32(3600)), policy: policy("{job: {ttlSecondsAfterComplete: 2, ttlSecondsAfterFailed: 3600}}"), script: "true", want: 2 * time.Second},
		"by the option for failure":       {policy: policy("{job: {ttlSecondsAfterComplete: 3600, ttlSecondsAfterFailed: 2}}"), script: "false", want: 2 * time.Second},
		"by the default":                  {policy: policy("{job: {defaultTtlSecondsAfterFinished: 2}}"), script: "true", want: 2 * time.Second},
		"the Job goes before the default": {ttl: new(int32(1)), policy: policy("{job: {defaultTtlSecondsAfterFinished: 3600}}"), script: "true", want: time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			job := createFinishing(t, namespace, batchv1.JobSpec{TTLSecondsAfterFinished: tc.ttl, Template: shell(tc.script, corev1.RestartPolicyNever)}, tc.policy)
			life := watchJob(t, job)
			if tc.then != "" {
				waitFinished(t, namespace, job.Name)
				patchJob(t, namespace, job.Name, tc.then)
			}
			checkExpired(t, life, tc.want)
		})
	}
}

// What takes a Job's time to live away keeps it; so does what cannot be read.
func TestFinishedJobsAreKept(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	template := shell("true", corev1.RestartPolicyNever)
	removed := createFinishing(t, namespace, batchv1.JobSpec{TTLSecondsAfterFinished: new(int32(15)), Template: template}, nil)
	patchJob(t, namespace, removed.Name, `{"spec":{"ttlSecondsAfterFinished":null}}`)
	lengthened := createFinishing(t, namespace, batchv1.JobSpec{TTLSecondsAfterFinished: new(int32(15)), Template: template}, nil)
	garbled := createFinishing(t, namespace, batchv1.JobSpec{Template: template}, policy("{job: {defaultTtlSecondsAfterFinished: 15}}"))
	waitFinished(t, namespace, lengthened.Name)
	patchJob(t, namespace, lengthened.Name, `{"spec":{"ttlSecondsAfterFinished":3600}}`)
	waitFinished(t, namespace, removed.Name)
	waitFinished(t, namespace, garbled.Name)
	patchJob(t, namespace, garbled.Name, fmt.Sprintf(`{"metadata":{"annotations":{%q:"{job: {ttlSecondsAfterComplete: two}}"}}}`, wire.Policy))
	waitEvents(t, garbled, "InvalidPolicy")
	// A Job that finishes after them, with the same time to live, goes; they stay.
	last := createFinishing(t, namespace, batchv1.JobSpec{TTLSecondsAfterFinished: new(int32(15)), Template: template}, nil)
	checkExpired(t, watchJob(t, last), 15*time.Second)
	for _, job := range []*batchv1.Job{removed, lengthened, garbled} {
		if left := getJob(t, namespace, job.Name); left.DeletionTimestamp != nil {
			t.Errorf("%s is being deleted", job.Name)
		}
	}
}

// A Job whose policy cannot be read does not start. When it can be read, it does.
func TestAJobWithAnInvalidPolicyWaits(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := createFinishing(t, namespace, batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)}, policy("{job: {ttl: 1}}"))
	waitEvents(t, job, "InvalidPolicy")
	if job = getJob(t, namespace, job.Name); job.Status.StartTime != nil || len(jobPods(t, job)) > 0 {
		t.Errorf("the Job has started: %s", describe(job))
	}
	patchJob(t, namespace, job.Name, fmt.Sprintf(`{"metadata":{"annotations":{%q:"{job: {ttlSecondsAfterComplete: 3600}}"}}}`, wire.Policy))
	waitFinished(t, namespace, job.Name)
}

// A Job that finishes while nobody looks after its time to live goes when
// somebody does again. The executor is stopped, so this test is not parallel.
func TestAJobThatFinishedUnattendedExpires(t *testing.T) {
	const manager = "example.com/unattended"
	namespace := newNamespace(t)
	other := startExecutor(t, "--engine=embedded", "--managed-by="+manager, "--leader-elect=false", "--controllers=*,-ttl-after-finished-controller")
	eventually(t, "the other executor is ready", other.ready)
	must.Succeed(t, plane.Kill(cluster.Executor))
	job := createFinishing(t, namespace, batchv1.JobSpec{
		ManagedBy: new(manager), TTLSecondsAfterFinished: new(int32(1)), Template: shell("true", corev1.RestartPolicyNever),
	}, nil)
	life := watchJob(t, job)
	waitFinished(t, namespace, job.Name)
	time.Sleep(2 * time.Second)
	if left := getJob(t, namespace, job.Name); left.DeletionTimestamp != nil {
		t.Error("the Job is deleted, and nobody is there to do it")
	}
	start(t, cluster.Executor)
	checkExpired(t, life, time.Second)
}

// createFinishing creates a Job that runs once.
func createFinishing(t *testing.T, namespace string, spec batchv1.JobSpec, annotations map[string]string) *batchv1.Job {
	t.Helper()
	spec.BackoffLimit = new(int32(0))
	return objects.Create(t, client.BatchV1().Jobs(namespace), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{GenerateName: "finishing-", Annotations: annotations}, Spec: spec})
}

// watchJob watches a Job from its creation on.
func watchJob(t *testing.T, job *batchv1.Job) watch.Interface {
	t.Helper()
	life, err := client.BatchV1().Jobs(job.Namespace).Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: job.ResourceVersion, FieldSelector: "metadata.name=" + job.Name,
	})
	must.Succeed(t, err)
	t.Cleanup(life.Stop)
	return life
}

// checkExpired waits until the Job is gone, and checks how it went: not before
// its time by the API server's clock, and after its pods.
func checkExpired(t *testing.T, life watch.Interface, ttl time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var job *batchv1.Job
	for {
		select {
		case <-ctx.Done():
			t.Fatal("the Job is not deleted")
		case event := <-life.ResultChan():
			now, ok := event.Object.(*batchv1.Job)
			if !ok {
				t.Fatalf("the watch ended: %v", event)
			}
			if event.Type == watch.Deleted {
				checkGone(t, job, ttl)
				return
			}
			job = now
		}
	}
}

// checkGone looks at the last version of a Job.
func checkGone(t *testing.T, job *batchv1.Job, ttl time.Duration) {
	t.Helper()
	if job == nil || job.DeletionTimestamp == nil || !slices.Contains(job.Finalizers, metav1.FinalizerDeleteDependents) {
		t.Fatalf("the Job was not deleted in the foreground: %v", job)
	}
	i := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		t.Fatalf("the Job had not finished: %s", describe(job))
	}
	finished := job.Status.Conditions[i].LastTransitionTime
	if kept := job.DeletionTimestamp.Sub(finished.Time); kept < ttl {
		t.Errorf("the Job was deleted %v after it finished, want at least %v", kept, ttl)
	}
	if pods := jobPods(t, job); len(pods) > 0 {
		t.Errorf("the Job went before its %d pods", len(pods))
	}
}
