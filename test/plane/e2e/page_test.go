package e2e

import (
	"os"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chromedp/chromedp"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/web/browser"
)

// The page shows a Job of a real control plane from Running to Complete while nobody
// touches the page.
func TestThePageShowsAJobLive(t *testing.T) {
	t.Parallel()
	ctx := browser.New(t)
	namespace := newNamespace(t)
	// Its pods run until the page has shown them.
	release := t.TempDir() + "/go"
	job := createJob(t, namespace, "live", batchv1.JobSpec{
		Parallelism: new(int32(2)), Completions: new(int32(2)), CompletionMode: new(batchv1.IndexedCompletion),
		Template: shell("until [ -e "+release+" ]; do sleep 0.2; done", corev1.RestartPolicyNever),
	})
	browser.Do(ctx, t, chromedp.Navigate(plane.ExecutorURL()+"/debug/page/#jobs?ns="+namespace))
	browser.Await(ctx, t, `document.querySelector('tr.row .state')?.textContent === 'Running' && document.querySelector('tr.row td.num').textContent === '2 / 2'`)

	browser.Do(ctx, t, chromedp.Navigate(plane.ExecutorURL()+"/debug/page/#job/"+string(job.UID)))
	browser.Await(ctx, t, `document.querySelector('.top .state')?.textContent === 'Running' && document.querySelectorAll('.bars .run').length === 2`)
	browser.Screenshot(ctx, t, "page-live-running")
	must.Succeed(t, os.WriteFile(release, nil, 0o644))
	browser.Await(ctx, t, `document.querySelector('.top .state')?.textContent === 'Complete' && document.querySelectorAll('.bars .succeeded').length === 2`)
	browser.Screenshot(ctx, t, "page-live-complete")
	if name := browser.Text(ctx, t, "h1"); name != namespace+"/live" {
		t.Errorf("the page is about %q, want %s/live", name, namespace)
	}
	browser.Do(ctx, t, chromedp.Navigate(plane.ExecutorURL()+"/debug/page/#jobs?ns="+namespace))
	browser.Await(ctx, t, `document.querySelector('tr.row .state')?.textContent === 'Complete' && document.querySelector('tr.row .done').textContent === '2 of 2'`)
}
