package bench

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/test/kit/ledger"
)

// pageSize is how many pods one request lists.
const pageSize = 2000

// verify compares the Jobs' statuses and pods with what the simulated kubelet
// did. A contender that is fast and wrong fails.
func (r *run) verify(ctx context.Context) error {
	var errs []error
	for _, job := range r.observer.all(r.namespace) {
		if job.Job == nil {
			errs = append(errs, errors.New("a job was never seen"))
			continue
		}
		l := r.kubelet.counts(r.namespace, job.UID)
		if problems := verifyPods(job.Job, l); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("job %s: %q", job.Name, problems))
		}
		if !r.contender.writesStatus {
			continue
		}
		// The newest status, and not what the watch has delivered so far.
		now, err := r.client.BatchV1().Jobs(r.namespace).Get(ctx, job.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if problems := verifyStatus(now, l, r.scenario.ends); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("job %s: %q", job.Name, problems))
		}
	}
	if problems := r.observer.problems(r.namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("statuses on the way: %q", problems))
	}
	t, _, err := r.kubelet.totals(r.namespace)
	if t.seen != r.scenario.Pods {
		errs = append(errs, fmt.Errorf("there were %d pods, want %d", t.seen, r.scenario.Pods))
	}
	return errors.Join(append(errs, err, r.verifyStored(ctx))...)
}

// verifyPods checks that there were exactly the pods that the Job needs.
func verifyPods(job *batchv1.Job, l podCounts) (problems []string) {
	want := int(*job.Spec.Completions)
	expect := func(what string, got, want int) {
		if got != want {
			problems = append(problems, fmt.Sprintf("%s: %d, want %d", what, got, want))
		}
	}
	expect("pods created", l.seen, want)
	expect("pods ended", l.ended(), want)
	expect("finalizers left", l.finalizers, 0)
	if ledger.IsIndexed(job) {
		expect("indexes that had a pod", l.indexes, want)
		expect("indexes that had several pods", l.repeated, 0)
	}
	return problems
}

// verifyStatus checks every count of a status of a Job that has ended.
func verifyStatus(job *batchv1.Job, l podCounts, ends batchv1.JobConditionType) (problems []string) {
	s := &job.Status
	expect := func(what string, got, want any) {
		if got != want {
			problems = append(problems, fmt.Sprintf("%s: %v, want %v", what, got, want))
		}
	}
	expect("condition", terminal(job), ends)
	expect("succeeded", s.Succeeded, int32(l.succeeded))
	expect("failed", s.Failed, int32(l.failed))
	expect("active", s.Active, int32(0))
	expect("ready", ptr.Deref(s.Ready, 0), int32(0))
	expect("terminating", ptr.Deref(s.Terminating, 0), int32(0))
	expect("uncounted pods", s.UncountedTerminatedPods == nil || len(s.UncountedTerminatedPods.Succeeded)+len(s.UncountedTerminatedPods.Failed) == 0, true)
	if ledger.IsIndexed(job) {
		expect("completed indexes", s.CompletedIndexes, firstIndexes(l.succeeded))
	}
	if job.Spec.BackoffLimitPerIndex != nil {
		expect("failed indexes", ptr.Deref(s.FailedIndexes, ""), firstIndexes(l.failed))
	}
	return problems
}

// firstIndexes is how a status writes the indexes 0 to n-1.
func firstIndexes(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "0"
	case 2:
		return "0,1"
	}
	return fmt.Sprintf("0-%d", n-1)
}

// verifyStored checks the pods in the API server once more, independently of
// every watch.
func (r *run) verifyStored(ctx context.Context) error {
	stored, held := 0, 0
	err := eachItem(ctx, func() { stored, held = 0, 0 }, metav1.ListOptions{},
		func(opts metav1.ListOptions) (runtime.Object, error) {
			return r.client.CoreV1().Pods(r.namespace).List(ctx, opts)
		},
		func(o runtime.Object) error {
			stored++
			if ledger.Held(o.(*corev1.Pod)) {
				held++
			}
			return nil
		})
	if err != nil {
		return err
	}
	least, most := r.scenario.Pods, r.scenario.Pods
	if r.scenario.keep > 0 {
		// Those that finished last may still be there: when the Job has ended, no pod is deleted any more.
		least, most = r.scenario.keep, int(r.figures[MostPods])
	}
	if stored < least || stored > most || held > 0 {
		return fmt.Errorf("the API server has %d pods, %d of them with the finalizer; want %d to %d and none", stored, held, least, most)
	}
	return nil
}

// eachItem reads a list page by page and calls each for every object. If the list expires
// between two pages (410), it begins again.
func eachItem(ctx context.Context, begin func(), opts metav1.ListOptions, list func(metav1.ListOptions) (runtime.Object, error), each func(runtime.Object) error) error {
	opts.Limit = pageSize
	for {
		begin()
		err := pager.New(pager.SimplePageFunc(list)).EachListItem(ctx, opts, each)
		if !apierrors.IsResourceExpired(err) {
			return err
		}
	}
}
