package e2e

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/executor/wire"
)

// The series of which alerts are made.
const (
	hinderedSeries = `jobpolicy_hindered_pods{reason="ImagePullBackOff"}`
	retriesSeries  = `jobpolicy_jobs_without_retries`
	nextRunSeries  = `jobpolicy_next_schedule_time_seconds`
	stuckSeries    = `jobpolicy_job_without_progress_seconds`
)

// gaugesOf are the values of these series; one that is not there is left out.
func gaugesOf(t *testing.T, series ...string) map[string]float64 {
	t.Helper()
	_, page := get(plane.ExecutorURL() + "/metrics")
	values := map[string]float64{}
	for line := range strings.Lines(page) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, s := range series {
			if value, err := strconv.ParseFloat(number, 64); s == name && err == nil {
				values[s] = value
			}
		}
	}
	return values
}

// What alerts are made of does not change when the executor is killed and comes back: all of it is in the cluster. The
// test is the node of the pod whose image nobody can pull. CronJobs of tests that pause meanwhile may have an earlier next
// run; no other test has pods that cannot start, or Jobs without retries, while it pauses.
func TestWhatAlertsAreMadeOfSurvivesARestart(t *testing.T) {
	w := newCronWorld(t, client)
	stuck := shell("true", corev1.RestartPolicyNever)
	stuck.Spec.SchedulerName = "nobody"
	job := createJob(t, w.namespace, "stuck", batchv1.JobSpec{Template: stuck})
	cannotPull(t, onePod(t, job))
	createJob(t, w.namespace, "last-retry", batchv1.JobSpec{
		BackoffLimit: new(int32(1)),
		Template:     withJobUID(shell(`mark="/tmp/jobpolicy-e2e-$UID_OF_JOB"; mkdir "$mark" 2>/dev/null && exit 1; rmdir "$mark"; exec sleep 600`, corev1.RestartPolicyNever)),
	})
	yearly := cron("yearly", onceAYear, "true")
	yearly.Annotations[wire.Policy] = "{cronJob: {publishNextScheduleTime: true}}"
	w.create(t, yearly)
	published := w.waitCron(t, "yearly", "it has a next run", func(c *batchv1.CronJob) bool { return c.Annotations[wire.NextScheduleTime] != "" })
	next, err := time.Parse(time.RFC3339, published.Annotations[wire.NextScheduleTime])
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{hinderedSeries: 1, retriesSeries: 1}
	asWanted := func(when string) {
		t.Helper()
		eventually(t, when, func() (bool, string) {
			got, run := gaugesOf(t, hinderedSeries, retriesSeries), gaugesOf(t, nextRunSeries)[nextRunSeries]
			return maps.Equal(got, want) && run > 0 && run <= float64(next.Unix()), fmt.Sprintf("%v, next run %v, want %v, next run at most %v", got, run, want, next.Unix())
		})
	}
	asWanted("before the executor is killed")
	waitJob(t, w.namespace, "last-retry", "its second pod runs", func(job *batchv1.Job) bool { return *job.Status.Ready == 1 })
	before := gaugesOf(t, stuckSeries)[stuckSeries]
	killAndStart(t, cluster.Executor)
	asWanted("after it was killed")
	if after := gaugesOf(t, stuckSeries)[stuckSeries]; before <= 0 || after < before {
		t.Errorf("seconds without progress: %v before the executor was killed, and %v after that", before, after)
	}

	pod := onePod(t, getJob(t, w.namespace, "stuck"))
	now := metav1.Now()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}}
	if _, err := client.CoreV1().Pods(w.namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want[hinderedSeries] = 0
	asWanted("the image was pulled")
	eventually(t, "the Job makes progress", func() (bool, string) {
		seconds, is := gaugesOf(t, stuckSeries)[stuckSeries]
		return is && seconds < before, fmt.Sprint(seconds, " seconds, before: ", before)
	})
}
