package page

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"jobpolicy.dev/test/web/browser"
)

const (
	manyJobs = 10_000
	manyPods = 100_000
)

// many are 10,000 Jobs; the last one has 100,000 pods.
func many() objects {
	var o objects
	for i := range manyJobs - 1 {
		job := newJob(i, fmt.Sprintf("team-%02d", i%20), fmt.Sprintf("job-%05d", i), time.Duration(i)*time.Second)
		if i%10 == 0 {
			end(job, batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit", time.Minute)
		} else {
			end(job, batchv1.JobComplete, "CompletionsReached", "Reached expected number of succeeded pods", time.Minute)
		}
		o.jobs = append(o.jobs, job)
	}
	big := newJob(manyJobs, "wide", "big", time.Hour)
	big.Spec.Parallelism, big.Spec.Completions, big.Spec.CompletionMode = new(int32(manyPods)), new(int32(manyPods)), new(batchv1.IndexedCompletion)
	big.Status.StartTime, big.Status.CompletedIndexes, big.Status.Succeeded = &big.CreationTimestamp, fmt.Sprintf("0-%d", manyPods*6/10-1), manyPods*6/10
	big.Status.Active, big.Status.Ready = manyPods*4/10, new(int32(manyPods*4/10))
	for i := range manyPods {
		phase := corev1.PodRunning
		if i < manyPods*6/10 {
			phase = corev1.PodSucceeded
		}
		o.pods = append(o.pods, podOf(big, i, i, phase))
	}
	o.jobs = append(o.jobs, big)
	return o
}

// press presses one key after the other.
func press(ctx context.Context, t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		browser.Do(ctx, t, chromedp.KeyEvent(key))
	}
}

// focused is true once the keyboard is on this Job.
func focused(job string) string {
	return fmt.Sprintf(`document.activeElement.textContent === %q`, job)
}

// Ten thousand Jobs are in the list, and a few dozen of them in the page.
func TestManyJobs(t *testing.T) {
	url := startExecutor(t, many())
	ctx := browser.New(t)
	browser.Do(ctx, t, chromedp.Navigate(url))
	browser.Await(ctx, t, `document.querySelector('#count')?.textContent === '10,000 Jobs'`)
	if rows := browser.Eval[int](ctx, t, `document.querySelectorAll('tr.row').length`); rows < 10 || rows > 60 {
		t.Errorf("%d rows are in the page, want those that are seen", rows)
	}
	if all := browser.Eval[string](ctx, t, `document.querySelector('.virtual').getAttribute('aria-rowcount')`); all != "10001" {
		t.Errorf("a screen reader hears of %s rows, want 10001 with the head", all)
	}
	browser.Screenshot(ctx, t, "page-10000-jobs")

	t.Run("by keyboard", func(t *testing.T) {
		browser.Do(ctx, t, chromedp.Evaluate[chromedp.Void](`document.querySelector('tr.row a').focus()`))
		press(ctx, t, kb.ArrowDown)
		browser.Await(ctx, t, focused("team-00/job-00020"))
		press(ctx, t, kb.End)
		browser.Await(ctx, t, focused("wide/big"))
		press(ctx, t, kb.Home)
		browser.Await(ctx, t, focused("team-00/job-00000"))
		press(ctx, t, kb.Enter)
		browser.Await(ctx, t, `document.querySelector('.life h1')?.textContent === 'team-00/job-00000'`)
		browser.Do(ctx, t, chromedp.Navigate(url+"#jobs"))
	})
	t.Run("filtered", func(t *testing.T) {
		browser.Do(ctx, t, chromedp.Navigate(url+"#jobs?ns=team-00&state=Failed"))
		browser.Await(ctx, t, `document.querySelector('#count').textContent === '500 of 10,000 Jobs'`)
		browser.Do(ctx, t, chromedp.Navigate(url+"#jobs?q=job-0999"))
		browser.Await(ctx, t, `document.querySelector('#count').textContent === '9 of 10,000 Jobs'`)
		browser.Do(ctx, t, chromedp.Navigate(url+"#jobs"))
		browser.Await(ctx, t, `document.querySelector('#count').textContent === '10,000 Jobs'`)
	})
	t.Run("scrolled", func(t *testing.T) {
		// To draw after each of 200 jumps through the list; a row per Job would take minutes.
		took := browser.Eval[float64](ctx, t, `(async () => {
			const scroll = document.querySelector('.scroll');
			const begin = performance.now();
			for (let i = 0; i < 200; i++) {
				scroll.scrollTop = scroll.scrollHeight * i / 200;
				await new Promise(requestAnimationFrame);
			}
			return (performance.now() - begin) / 200;
		})()`)
		t.Logf("a jump through the list takes %.1f ms", took)
		browser.Await(ctx, t, `document.querySelector('.scroll').scrollTop > 300000 && document.querySelectorAll('tr.row').length < 60`)
	})
	t.Run("a Job of 100,000 pods", func(t *testing.T) {
		browser.Do(ctx, t, chromedp.Navigate(url+"#job/"+string(uid(manyJobs))))
		browser.Await(ctx, t, `document.querySelectorAll('.cells i').length === 200 && document.querySelector('.tiles')?.textContent.includes('60000 of 100000')`)
		if label := browser.Eval[string](ctx, t, `document.querySelector('.cells').getAttribute('aria-label')`); label != "Indexes: succeeded 60000, failed 0, active 40000, ending 0" {
			t.Errorf("a screen reader hears %q", label)
		}
		if n := browser.Eval[int](ctx, t, `document.querySelectorAll('.bars tr').length`); n != 0 {
			t.Errorf("%d pods are drawn one by one", n)
		}
		browser.Screenshot(ctx, t, "page-100000-pods")
	})
}
