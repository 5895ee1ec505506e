package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/explain"
	"jobpolicy.dev/services/internal/cli"
)

const waitLong = `Waits until a Job is finished, and prints what changes meanwhile. The exit code is 0 if the
Job is Complete and 1 if it has Failed. It is 3 if the Job was deleted before its end, or if
--timeout is over. If the Job was deleted right after its end, wait learns from its events how
it ended. With -o json or yaml, wait prints only the end.`

// waitEvery is how often wait reads the Job. Tests set a shorter time.
var waitEvery = time.Second

type waitCommand struct {
	cli.IO
	cluster clusterFlags
	output  *cli.Output
	timeout time.Duration
	quiet   bool
	// deleted: the Job was deleted, and its events say how it ended.
	deleted bool
}

func newWait(streams cli.IO) *cobra.Command {
	c := &waitCommand{IO: streams}
	cmd := &cobra.Command{
		Use: "wait job/NAME", Short: "Wait until a Job is Complete or Failed", Long: waitLong,
		Example: `  kubectl jobpolicy wait job/backup --timeout 1h && echo done`,
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Var(cli.Value(&c.timeout, cli.ParseDuration), "timeout", "How long to wait, such as `1h`. Default: for ever.")
	fs.BoolVarP(&c.quiet, "quiet", "q", false, "Say only how it ended.")
	c.output = cli.AddOutput(cmd, "wide")
	c.cluster.AddFlags(fs, true)
	cmd.ValidArgsFunction = complete(&c.cluster, true, false)
	return cmd
}

var errWaitTimeout = errors.New("--timeout is over, and the Job is not finished")

func (c *waitCommand) run(ctx context.Context, args []string) error {
	name, err := jobArgument(args)
	if err != nil {
		return err
	}
	reader, err := c.cluster.Connect()
	if err != nil {
		return err
	}
	job, err := reader.Job(ctx, name)
	if err != nil {
		return err
	}
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.timeout, errWaitTimeout)
		defer cancel()
	}
	if job, err = c.follow(ctx, reader, job); err != nil {
		return err
	}
	return c.ended(job)
}

// follow reads the Job again and again until it is finished.
func (c *waitCommand) follow(ctx context.Context, reader *clusterReader, job *batchv1.Job) (*batchv1.Job, error) {
	uid, told := job.UID, ""
	for {
		if wire.FinishedCondition(job) != nil {
			return job, nil
		}
		if line := progress(job); line != told && !c.silent() {
			fmt.Fprintf(c.Out, "%s  %s\n", now().Format(c.clock()), line)
			told = line
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(waitEvery):
		}
		next, err := reader.Job(ctx, job.Name)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case apierrors.IsNotFound(err), err == nil && next.UID != uid:
			return c.lastSeen(ctx, reader, job)
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return nil, err
		case err != nil:
			fmt.Fprintf(c.Err, "%v; looking again\n", err)
		default:
			job = next
		}
	}
}

// lastSeen returns a deleted Job as it was last read, with its end if its events show it: a
// Job with a short time to live may be gone before wait reads it again. The event may come
// a little later.
func (c *waitCommand) lastSeen(ctx context.Context, reader *clusterReader, job *batchv1.Job) (*batchv1.Job, error) {
	for since := time.Now(); ; {
		events, err := reader.EventsOf(ctx, job.UID)
		if end := endOf(events); end != nil {
			job.Status.Conditions = append(job.Status.Conditions, *end)
			c.deleted = true
			return job, nil
		}
		if err != nil || time.Since(since) >= 2*waitEvery {
			return nil, fmt.Errorf("job %s was deleted before it was seen to finish", job.Name)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(waitEvery):
		}
	}
}

// endOf is the condition that a Job had at its end, by its events. Nil: they show no end.
func endOf(events []corev1.Event) *batchv1.JobCondition {
	for i := range events {
		e := &events[i]
		end := &batchv1.JobCondition{
			Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: e.Reason, Message: e.Message, LastTransitionTime: metav1.NewTime(explain.Seen(e)),
		}
		if e.Reason == "Completed" {
			end.Type = batchv1.JobComplete
			return end
		}
		if slices.Contains(engine.FailureReasons(), e.Reason) {
			return end
		}
	}
	return nil
}

// silent reports whether nothing is printed before the end.
func (c *waitCommand) silent() bool {
	return c.quiet || c.output.Format == "json" || c.output.Format == "yaml"
}

// clock is the format of the times of lines; -o wide adds the day and the zone.
func (c *waitCommand) clock() string {
	if c.output.Format == "wide" {
		return time.RFC3339
	}
	return time.TimeOnly
}

// A waitReport says how a Job ended, for programs.
type waitReport struct {
	Namespace string                   `json:"namespace"`
	Job       string                   `json:"job"`
	Outcome   batchv1.JobConditionType `json:"outcome"`
	Reason    string                   `json:"reason"`
	Message   string                   `json:"message"`
	Ended     time.Time                `json:"ended"`
	// Deleted: the Job was deleted, and its events say how it ended. Status is the last one
	// that was read.
	Deleted bool              `json:"deleted,omitempty"`
	Status  batchv1.JobStatus `json:"status"`
}

// progress is a Job's status in one line.
func progress(job *batchv1.Job) string {
	line := fmt.Sprintf("active %d, ready %d, succeeded %d", job.Status.Active, ptr.Deref(job.Status.Ready, 0), job.Status.Succeeded)
	if n := job.Spec.Completions; n != nil {
		line += fmt.Sprintf(" of %d", *n)
	}
	line += fmt.Sprintf(", failed %d", job.Status.Failed)
	if ptr.Deref(job.Spec.Suspend, false) {
		line += ", suspended"
	}
	if job.DeletionTimestamp != nil {
		line += ", being deleted"
	}
	return line
}

func (c *waitCommand) ended(job *batchv1.Job) error {
	condition := wire.FinishedCondition(job)
	report := waitReport{
		Namespace: job.Namespace, Job: job.Name, Outcome: condition.Type, Reason: condition.Reason, Message: condition.Message,
		Ended: wire.Time(condition.LastTransitionTime.Time), Deleted: c.deleted, Status: job.Status,
	}
	done, err := c.output.Machine(c.Out, report)
	if !done {
		c.tellEnd(job, condition)
	}
	if err == nil && condition.Type != batchv1.JobComplete {
		return cli.ErrNo
	}
	return err
}

func (c *waitCommand) tellEnd(job *batchv1.Job, condition *batchv1.JobCondition) {
	took := ""
	if start := job.Status.StartTime; start != nil && !condition.LastTransitionTime.IsZero() {
		took = " after " + simulate.Clock(condition.LastTransitionTime.Sub(start.Time))
	}
	painted := cli.Bad
	if condition.Type == batchv1.JobComplete {
		painted = cli.Good
	}
	counts := progress(job)
	if c.deleted {
		counts = "the Job has since been deleted"
	}
	fmt.Fprintf(c.Out, "%s%s: %s (%s)\n", cli.Paint(c.Out, painted, string(condition.Type)), took, condition.Message, counts)
}
