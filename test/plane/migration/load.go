package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/test/kit/ledger"
)

// Load creates Jobs in a namespace, one after the other, while something happens
// to their controllers, and holds what became of each against package ledger.
type Load struct {
	client    kubernetes.Interface
	namespace string
	options   LoadOptions
	seen      *ledger.History
	names     []string
	// enough ends the creation of Jobs, whose error then comes through created.
	enough  func()
	created chan error
}

// LoadOptions say what a load is.
type LoadOptions struct {
	// ManagedBy is the Jobs' spec.managedBy; nil for the cluster's own controller.
	ManagedBy *string
	// Image has a shell.
	Image string
	// Every is the time between two Jobs.
	Every time.Duration
	// Unfinished is how many Jobs may be under way: the next one waits until fewer are. So
	// a slow node is not given more and more to do. 0 means no limit.
	Unfinished int
}

// StartLoad creates a Job now and then until [Load.Finish] is called.
func StartLoad(ctx context.Context, client kubernetes.Interface, namespace string, options LoadOptions) (*Load, error) {
	seen, err := ledger.Watch(client, namespace)
	if err != nil {
		return nil, err
	}
	creating, enough := context.WithCancel(ctx)
	l := &Load{
		client: client, namespace: namespace, options: options, seen: seen,
		enough: enough, created: make(chan error, 1),
	}
	go func() { l.created <- l.create(creating) }()
	return l, nil
}

// create makes Jobs of all shapes in turn until ctx ends.
func (l *Load) create(ctx context.Context) error {
	for i := 0; ; i++ {
		job := shapes[i%len(shapes)](l.options.Image)
		job.Name = fmt.Sprintf("load-%03d", i)
		job.Spec.ManagedBy = l.options.ManagedBy
		// A cluster in trouble may refuse for a while; that is not what is tested.
		err := wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(context.Context) (bool, error) {
			_, err := l.client.BatchV1().Jobs(l.namespace).Create(context.WithoutCancel(ctx), job, metav1.CreateOptions{})
			return err == nil || apierrors.IsAlreadyExists(err), nil
		})
		if ctx.Err() != nil {
			l.names = append(l.names, job.Name)
			return nil
		}
		if err != nil {
			return fmt.Errorf("create Job %s: %w", job.Name, err)
		}
		l.names = append(l.names, job.Name)
		if !l.pause(ctx) {
			return nil
		}
	}
}

// pause waits until the next Job may be created, and reports whether that is before ctx
// ends.
func (l *Load) pause(ctx context.Context) bool {
	err := wait.PollUntilContextCancel(ctx, l.options.Every, false, func(ctx context.Context) (bool, error) {
		if l.options.Unfinished == 0 {
			return true, nil
		}
		jobs, err := l.client.BatchV1().Jobs(l.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, nil
		}
		unfinished := 0
		for i := range jobs.Items {
			if !ledger.IsFinished(&jobs.Items[i]) {
				unfinished++
			}
		}
		return unfinished < l.options.Unfinished, nil
	})
	return err == nil
}

// Finish stops creating Jobs, waits until all have ended, and checks each. It
// returns how many there were.
func (l *Load) Finish(ctx context.Context) (jobs int, err error) {
	defer l.seen.Stop()
	l.enough()
	if err := <-l.created; err != nil {
		return len(l.names), err
	}
	var errs []error
	for _, name := range l.names {
		errs = append(errs, l.finish(ctx, name))
	}
	errs = append(errs, soon(ctx, l.seen.Problems))
	return len(l.names), errors.Join(errs...)
}

// lag is how far a watch may be behind what was just read.
const lag = 20 * time.Second

// finish waits for the end of one Job and checks it.
func (l *Load) finish(ctx context.Context, name string) error {
	job, err := l.ended(ctx, name)
	if err != nil || job == nil {
		return err
	}
	return soon(ctx, func() []string { return l.wrong(job) })
}

// soon waits until a check finds nothing; if it still finds something, that is the error.
func soon(ctx context.Context, check func() []string) error {
	var problems []string
	_ = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, lag, true, func(context.Context) (bool, error) {
		problems = check()
		return len(problems) == 0, nil
	})
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}
	return nil
}

// wrong says what is wrong with a Job that has ended. Nobody deletes the pods of a load, and no
// size changes: no pod is stopped, and no index succeeds twice.
func (l *Load) wrong(job *batchv1.Job) []string {
	if !l.seen.SawEnd(job.UID) {
		return []string{fmt.Sprintf("job %s: the watch has not shown its end", job.Name)}
	}
	if pod := l.seen.Unreleased(job.UID); pod != "" {
		return []string{fmt.Sprintf("job %s: pod %s holds the finalizer", job.Name, pod)}
	}
	problems := slices.Concat(l.seen.Miscounts(job), l.seen.TooMany(job))
	if end := batchv1.JobConditionType(job.Annotations[wants]); !ledger.IsTrue(job, end) {
		problems = append(problems, fmt.Sprintf("job %s: not %s: %s", job.Name, end, ledger.Describe(job)))
	}
	if want := *job.Spec.Completions; ledger.IsTrue(job, batchv1.JobComplete) && job.Status.Succeeded != want {
		problems = append(problems, fmt.Sprintf("job %s: %d pods succeeded, want %d", job.Name, job.Status.Succeeded, want))
	}
	if n := l.seen.Stopped(job.UID); n > 0 {
		problems = append(problems, fmt.Sprintf("job %s: %d pods were stopped, so they were too many", job.Name, n))
	}
	return problems
}

// ended returns a Job when it has ended, or nil if it was never created.
func (l *Load) ended(ctx context.Context, name string) (*batchv1.Job, error) {
	var job *batchv1.Job
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		found, err := l.client.BatchV1().Jobs(l.namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, nil
		}
		job = found
		return ledger.IsFinished(job), nil
	})
	if err != nil && job != nil {
		return nil, fmt.Errorf("job %s/%s has not ended: %+v: %w", l.namespace, name, job.Status, err)
	}
	return job, err
}
