// Package page opens the executor's page in a real browser, and
// checks what a person sees.
package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chromedp/chromedp"

	"jobpolicy.dev/test/web/browser"
)

const hostile = `<img src=x onerror=alert(1)>"'><script>alert(2)</script>`

// cast are Jobs and CronJobs in many situations.
func cast() objects {
	var o objects
	small := newJob(1, "batch", "resize-images", 40*time.Second)
	small.Spec.Parallelism, small.Spec.Completions = new(int32(3)), new(int32(8))
	small.Status.StartTime, small.Status.Active, small.Status.Ready = &small.CreationTimestamp, 3, new(int32(3))
	small.Annotations = map[string]string{"jobpolicy.dev/policy": "{job: {whenJobFails: EndPods, retryDelay: {delaysSeconds: [4, 1]}}}"}
	for i := range 3 {
		o.pods = append(o.pods, podOf(small, i, -1, corev1.PodRunning))
	}
	failed := podOf(small, 7, -1, corev1.PodFailed)
	failed.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, FinishedAt: metav1.NewTime(small.CreationTimestamp.Add(8 * time.Second))},
	}}}
	small.Status.Failed = 1
	o.pods = append(o.pods, failed)

	broken := newJob(2, "batch", "nightly-report", time.Hour)
	end(broken, batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit "+hostile, 9*time.Minute)
	o.jobs = append(o.jobs, newJob(4, "batch", hostile, time.Minute)) // no API server would take the name
	held := newJob(3, "research", "train", 2*time.Hour)
	held.Spec.Suspend = new(true)
	o.jobs = append(o.jobs, small, broken, held, newJob(6, "web", "full", time.Minute))
	for i, waiting := range map[int]string{5: "ImagePullBackOff", 7: "ContainerCreating"} {
		stuck := newJob(i, "web", "stuck-"+strings.ToLower(waiting), time.Hour)
		stuck.Status.StartTime, stuck.Status.Active = &stuck.CreationTimestamp, 1
		pod := podOf(stuck, i*10, -1, corev1.PodPending)
		pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: waiting}}}}
		o.jobs, o.pods = append(o.jobs, stuck), append(o.pods, pod)
	}
	for i := range 20 {
		done := newJob(10+i, []string{"batch", "research", "web"}[i%3], fmt.Sprintf("import-%02d", i), time.Duration(i)*time.Hour)
		end(done, batchv1.JobComplete, "CompletionsReached", "Reached expected number of succeeded pods", 3*time.Minute)
		o.jobs = append(o.jobs, done)
	}
	for i, schedule := range []string{"30 2 * * *", "*/5 * * * *", "0 9 * * 1-5"} {
		o.crons = append(o.crons, &batchv1.CronJob{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "batch", Name: []string{"backup", "poll", "mail"}[i], UID: uid(500 + i), ResourceVersion: "1", Generation: 1,
				CreationTimestamp: metav1.Now(), Annotations: map[string]string{"jobpolicy.dev/managed-by": "jobpolicy.dev/executor", "note": hostile},
			},
			Spec: batchv1.CronJobSpec{Schedule: schedule, TimeZone: new("Europe/Berlin"), Suspend: new(true), ConcurrencyPolicy: batchv1.AllowConcurrent, JobTemplate: batchv1.JobTemplateSpec{Spec: small.Spec}},
		})
	}
	return o
}

// A Job whose pods cannot be created or do not start has a row that says so, with the reason.
func TestThePageSaysWhatHindersAJob(t *testing.T) {
	url := startExecutor(t, cast())
	ctx := browser.New(t)
	browser.Do(ctx, t, chromedp.Navigate(url+"#jobs?ns=web&q=stuck-image"))
	browser.Await(ctx, t, `document.querySelector('tr.row .state')?.textContent === 'Stuck'`)
	want := "the image cannot be pulled (ImagePullBackOff)"
	if text := browser.Text(ctx, t, "tr.row"); !strings.Contains(text, want) {
		t.Errorf("the row of the Job whose image is missing lacks %q:\n%s", want, text)
	}
	// The filter knows what the pods wait for.
	browser.Do(ctx, t, chromedp.Navigate(url+"#jobs?wait=ImagePullBackOff"))
	browser.Await(ctx, t, `document.querySelectorAll('tr.row').length === 1 && document.querySelector('#wait').value === 'ImagePullBackOff'`)

	browser.Do(ctx, t, chromedp.Navigate(url+"#jobs?ns=web&q=full"))
	browser.Await(ctx, t, `document.querySelector('tr.row .state')?.textContent === 'Blocked'`)
	want = "the quota is used up: "
	if text := browser.Text(ctx, t, "tr.row"); !strings.Contains(text, want) || !strings.Contains(text, quota) {
		t.Errorf("the row of the Job without room lacks %q and %q:\n%s", want, quota, text)
	}
	browser.Do(ctx, t, chromedp.Navigate(url+"#jobs?ns=web"))
	browser.Await(ctx, t, `[...document.querySelectorAll('tr.row .state')].some((s) => s.textContent === 'Blocked')`)
	browser.Screenshot(ctx, t, "page-jobs-hindered")

	// The executor reads no events, so the page says only that the pod does not start.
	browser.Do(ctx, t, chromedp.Navigate(url+"#jobs?wait=Pending"))
	browser.Await(ctx, t, `document.querySelectorAll('tr.row').length === 1 && document.querySelector('tr.row .state').textContent === 'Stuck'`)
	want = "it has been Pending for 1h"
	if text := browser.Text(ctx, t, "tr.row"); !strings.Contains(text, want) {
		t.Errorf("the row of the Job whose pod is late lacks %q:\n%s", want, text)
	}
	browser.Do(ctx, t, chromedp.Navigate(url+"#job/"+string(uid(7))))
	browser.Await(ctx, t, `document.querySelector('.top .state')?.textContent === 'Stuck'`)
	want = "1 of 1 active pods cannot start: it has been Pending for 1h"
	if text := browser.Text(ctx, t, ".life"); !strings.Contains(text, want) {
		t.Errorf("the life of the Job whose pod does not start lacks %q:\n%s", want, text)
	}
}

func TestWhatAPersonSees(t *testing.T) {
	url := startExecutor(t, cast())
	ctx := browser.New(t)
	browser.Do(ctx, t, chromedp.Navigate(url))
	browser.Await(ctx, t, `document.querySelectorAll('tr.row').length === 27`)
	if text := browser.Text(ctx, t, ".virtual"); !strings.Contains(text, hostile) {
		t.Errorf("a Job's name is not shown as it is:\n%s", text)
	}
	browser.Screenshot(ctx, t, "page-jobs-light")
	const background = `getComputedStyle(document.documentElement).backgroundColor + getComputedStyle(document.body).backgroundColor`
	light := browser.Eval[string](ctx, t, background)
	browser.Dark(ctx, t, true)
	if dark := browser.Eval[string](ctx, t, background); dark == light {
		t.Errorf("the background is %s for who prefers light and who prefers dark", dark)
	}
	browser.Screenshot(ctx, t, "page-jobs-dark")

	browser.Do(ctx, t, chromedp.Navigate(url+"#job/"+string(uid(1))))
	browser.Await(ctx, t, `document.querySelectorAll('.bars tbody tr').length === 4`)
	for _, want := range []string{
		"The Job runs: 3 of 3 wanted pods are active, 3 of them ready; 0 of 8 completions.", "failed, exit code 3", "5 of 6 left",
		"Options of the annotation jobpolicy.dev/policy: job.retryDelay delaysSeconds [4, 1]; job.whenJobFails EndPods",
	} {
		if text := browser.Text(ctx, t, ".life"); !strings.Contains(text, want) {
			t.Errorf("the life of the Job lacks %q:\n%s", want, text)
		}
	}
	browser.Screenshot(ctx, t, "page-job-dark")
	browser.Dark(ctx, t, false)
	browser.Screenshot(ctx, t, "page-job-light")

	browser.Do(ctx, t, chromedp.Navigate(url+"#job/"+string(uid(2))))
	browser.Await(ctx, t, `document.querySelector('.headline')?.textContent.includes('<script>alert(2)')`)
	browser.Screenshot(ctx, t, "page-job-failed")

	browser.Do(ctx, t, chromedp.Navigate(url+"#cronjobs"))
	browser.Await(ctx, t, `document.querySelectorAll('.calendar tbody tr').length === 3`)
	browser.Screenshot(ctx, t, "page-cronjobs-light")
	if text := browser.Text(ctx, t, ".calendar"); !strings.Contains(text, "02:30") || !strings.Contains(text, "more") {
		t.Errorf("the calendar lacks the run at 02:30, or how many more there are:\n%s", text)
	}

	browser.Do(ctx, t, chromedp.Navigate(url+"#engine"))
	browser.Await(ctx, t, `document.querySelectorAll('.engine table').length >= 3`)
	for _, want := range []string{"not needed: the engine is in this process", "job_orphan_pod", "none: the Job goes on"} {
		if text := browser.Text(ctx, t, ".engine"); !strings.Contains(text, want) {
			t.Errorf("the health lacks %q:\n%s", want, text)
		}
	}
	browser.Screenshot(ctx, t, "page-engine-light")
	browser.Dark(ctx, t, true)
	browser.Screenshot(ctx, t, "page-engine-dark")
}
