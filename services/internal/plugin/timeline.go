package plugin

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/services/internal/buildinfo"
	"jobpolicy.dev/services/internal/cluster"
	"jobpolicy.dev/services/internal/explain"
	"jobpolicy.dev/services/internal/timeline"
)

const timelineLong = `Draws the life of a Job: a bar for each pod that is still there, and what happened to the
Job, from its conditions and events.

In a bar, . is a pod that does not run yet and = one that does; it ends with + (succeeded),
x (failed) or > (not ended).`

type timelineCommand struct {
	IO
	cluster cluster.Flags
	html    string
}

func newTimeline(streams IO) *cobra.Command {
	c := &timelineCommand{IO: streams}
	cmd := &cobra.Command{
		Use: "timeline job/NAME", Short: "The life of a Job as a picture", Long: timelineLong,
		Example: "  kubectl jobpolicy timeline job/backup\n  kubectl jobpolicy timeline job/backup --html life.html",
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVar(&c.html, "html", "", "Write a page to this `file`, too.")
	c.cluster.AddFlags(cmd.Flags(), true)
	return cmd
}

func (c *timelineCommand) run(ctx context.Context, args []string) error {
	name, err := jobArgument(args)
	if err != nil {
		return err
	}
	reader, err := c.cluster.Connect("kubectl-jobpolicy/" + buildinfo.Version())
	if err != nil {
		return err
	}
	facts, err := readFacts(ctx, reader, name)
	if err != nil {
		return err
	}
	chart := chartOf(facts)
	if err := chart.WriteText(c.Out); err != nil {
		return err
	}
	for _, text := range facts.Unread {
		fmt.Fprintln(c.Err, "not known:", text)
	}
	if c.html == "" {
		return nil
	}
	file, err := os.Create(c.html)
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	if err := chart.WriteHTML(file); err != nil {
		file.Close()
		return fmt.Errorf("--html: %w", err)
	}
	return file.Close()
}

func chartOf(f explain.Facts) timeline.Chart {
	var bars []timeline.Bar
	for i := range f.Pods {
		bars = append(bars, barOf(&f.Pods[i]))
	}
	return timeline.New("Job "+f.Job.Namespace+"/"+f.Job.Name, f.Now, bars, marksOf(f))
}

func barOf(p *corev1.Pod) timeline.Bar {
	b := timeline.Bar{Name: p.Name, Created: p.CreationTimestamp.Time, Text: string(p.Status.Phase)}
	restarts, exit := int32(0), ""
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		restarts += s.RestartCount
		if running := s.State.Running; running != nil && (b.Started.IsZero() || running.StartedAt.Time.Before(b.Started)) {
			b.Started = running.StartedAt.Time
		}
		t := s.State.Terminated
		if t == nil {
			continue
		}
		if b.Started.IsZero() || t.StartedAt.Time.Before(b.Started) {
			b.Started = t.StartedAt.Time
		}
		if t.FinishedAt.After(b.Ended) {
			b.Ended = t.FinishedAt.Time
		}
		if t.ExitCode != 0 {
			exit = fmt.Sprintf(", exit code %d", t.ExitCode)
		}
	}
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		b.Outcome, b.Text = "succeeded", "succeeded"
	case corev1.PodFailed:
		b.Outcome, b.Text = "failed", "failed"+exit
	default:
		b.Ended = time.Time{} // one container may have ended, the pod has not
	}
	if b.Outcome != "" && b.Ended.IsZero() {
		b.Ended = b.Created
	}
	if restarts > 0 {
		b.Text += fmt.Sprintf(", restarts %d", restarts)
	}
	return b
}

// marksOf are the Job's start, conditions and events.
func marksOf(f explain.Facts) []timeline.Mark {
	marks := []timeline.Mark{{At: f.Job.CreationTimestamp.Time, Text: "created"}}
	if start := f.Job.Status.StartTime; start != nil {
		marks = append(marks, timeline.Mark{At: start.Time, Text: "started"})
	}
	for _, condition := range f.Job.Status.Conditions {
		text := fmt.Sprintf("%s (%s)", condition.Type, condition.Reason)
		if condition.Status != corev1.ConditionTrue {
			text = fmt.Sprintf("%s=%s (%s)", condition.Type, condition.Status, condition.Reason)
		}
		marks = append(marks, timeline.Mark{At: condition.LastTransitionTime.Time, Text: strings.TrimSuffix(text+": "+condition.Message, ": ")})
	}
	for i := range f.Events {
		if e := &f.Events[i]; e.Type == corev1.EventTypeWarning {
			marks = append(marks, timeline.Mark{At: explain.Seen(e), Text: e.Reason + ": " + e.Message})
		}
	}
	return marks
}
