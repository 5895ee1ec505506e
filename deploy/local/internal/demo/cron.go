package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// runNow is the annotation that asks a CronJob for a run at once, and runText the
	// value that the demo writes: each value starts one run.
	runNow  = "jobpolicy.dev/run-now"
	runText = "demo"
	// runHash is how the name of that run ends: the engine makes it of runText.
	runHash = "bc96rj"
	// nextScheduleTime is the annotation that says when the next run is due.
	nextScheduleTime = "jobpolicy.dev/next-schedule-time"
	// cronPage shows a table of CronJobs in plain text.
	cronPage = "/debug/cronjobs"
	// Columns of that table.
	columnName = "NAME"
	columnNext = "NEXT SCHEDULE"
	columnWhy  = "WHY"
)

// runOf returns the Job that a CronJob makes of its template.
func runOf(cron *batchv1.CronJob, name string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cron.Namespace},
		Spec:       *cron.Spec.JobTemplate.Spec.DeepCopy(),
	}
}

func createCronJob(ctx context.Context, client kubernetes.Interface, cron *batchv1.CronJob) error {
	if _, err := client.BatchV1().CronJobs(cron.Namespace).Create(ctx, cron, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create CronJob %s: %w", cron.Name, err)
	}
	return nil
}

// A start makes a CronJob start a run.
type start struct {
	// commands are the kubectl commands that do the same, for the CronJob NAME.
	commands []string
	do       func(context.Context, kubernetes.Interface, *batchv1.CronJob) error
}

// askForRun asks for one run at once, in addition to the schedule.
func askForRun(why string) start {
	return start{
		commands: []string{fmt.Sprintf("kubectl annotate cronjob NAME %s=%s   # %s", runNow, runText, why)},
		do: func(ctx context.Context, client kubernetes.Interface, cron *batchv1.CronJob) error {
			return mergeCronJob(ctx, client, cron, map[string]any{"metadata": map[string]any{"annotations": map[string]string{runNow: runText}}})
		},
	}
}

// resumeWithMissedRuns resumes a suspended CronJob as if it had been suspended for years.
func resumeWithMissedRuns() start {
	const last, resume = `{"status":{"lastScheduleTime":"2020-01-01T00:00:00Z"}}`, `{"spec":{"suspend":false}}`
	return start{
		commands: []string{
			"kubectl patch cronjob NAME --subresource=status --type=merge -p '" + last + "'",
			"kubectl patch cronjob NAME --type=merge -p '" + resume + "'",
		},
		do: func(ctx context.Context, client kubernetes.Interface, cron *batchv1.CronJob) error {
			crons := client.BatchV1().CronJobs(cron.Namespace)
			if _, err := crons.Patch(ctx, cron.Name, types.MergePatchType, []byte(last), metav1.PatchOptions{}, "status"); err != nil {
				return err
			}
			_, err := crons.Patch(ctx, cron.Name, types.MergePatchType, []byte(resume), metav1.PatchOptions{})
			return err
		},
	}
}

func mergeCronJob(ctx context.Context, client kubernetes.Interface, cron *batchv1.CronJob, patch map[string]any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = client.BatchV1().CronJobs(cron.Namespace).Patch(ctx, cron.Name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// startRun makes the CronJob of an example start its run.
func (d *director) startRun(ctx context.Context, ex *example) error {
	p := d.progress[ex.name]
	if ex.cron == nil || !p.created || p.started {
		return nil
	}
	p.started = true
	d.progress[ex.name] = p
	commands := ex.command(strings.Join(ex.start.commands, "\n$ "), ex.cron.Name)
	d.say(commands)
	if err := ex.start.do(ctx, d.client, ex.cron); err != nil {
		return fmt.Errorf("%s: %w", commands, err)
	}
	return nil
}

// cronSeen is a CronJob as the API server has it, its runs in the order in which they were created, and its row in
// the executor's table, by column.
type cronSeen struct {
	cron *batchv1.CronJob
	runs []batchv1.Job
	row  map[string]string
	// beside is the run of another CronJob of its group; nil: there is none.
	beside *batchv1.Job
}

// sentences are what is said of the CronJob.
func (c cronSeen) sentences() []string {
	said := []string{"the request is cleared", "lastSuccessfulTime set", "next run at the next whole minute"}
	if text, asked := c.cron.Annotations[runNow]; asked {
		said[0] = fmt.Sprintf("the request %q stands", text)
	}
	if c.cron.Status.LastSuccessfulTime == nil {
		said[1] = "no lastSuccessfulTime"
	}
	// The first whole minute after the CronJob was created or last ran: a run that the demo asks
	// for does not change the schedule.
	since := c.cron.CreationTimestamp
	if last := c.cron.Status.LastScheduleTime; last != nil {
		since = *last
	}
	due := since.UTC().Truncate(time.Minute).Add(time.Minute).Format(time.RFC3339)
	if next := c.row[columnNext]; next != due {
		said[2] = fmt.Sprintf("next run at %q, not at %s", next, due)
	}
	if next, published := c.cron.Annotations[nextScheduleTime]; published {
		said = append(said, "next-schedule-time "+next)
	}
	if c.beside != nil {
		said = append(said, besideSentence(c.runs, c.beside))
	}
	return append(said, runsSentence(c.runs))
}

// besideSentence says whether the first of the runs was active at the same time as that of another CronJob. Times
// count in whole seconds.
func besideSentence(runs []batchv1.Job, other *batchv1.Job) string {
	name := strings.TrimSuffix(other.Name, "-run-"+runHash)
	if len(runs) > 0 && (createdAfter(&runs[0], other) || createdAfter(other, &runs[0])) {
		return "not beside " + name
	}
	return "beside " + name
}

// createdAfter reports whether a Job was created when another one had succeeded.
func createdAfter(job, other *batchv1.Job) bool {
	end := other.Status.CompletionTime
	return end != nil && !job.CreationTimestamp.Before(end)
}

// runsSentence says for which times the runs are, and whether each was created after the one before it had ended.
func runsSentence(runs []batchv1.Job) string {
	how, times := "one after another", make([]string, 0, len(runs))
	for i := range runs {
		times = append(times, runs[i].Annotations[batchv1.CronJobScheduledTimestampAnnotation])
		if i == 0 {
			continue
		}
		if !createdAfter(&runs[i], &runs[i-1]) {
			how = "side by side"
		}
	}
	return "runs " + how + ": " + strings.Join(times, ", ")
}

// checkCron checks the CronJob of an example. Its status and the executor's table are
// updated at different moments after a run has ended, so it looks more than once.
func checkCron(ctx context.Context, client kubernetes.Interface, obs *observer, ex *example) (cronSeen, error) {
	seen := cronSeen{cron: &batchv1.CronJob{}}
	if other := ex.beside; other != nil {
		seen.beside = obs.past(other.job.Name).job
	}
	for range 20 {
		cron, err := client.BatchV1().CronJobs(ex.cron.Namespace).Get(ctx, ex.cron.Name, metav1.GetOptions{})
		if err != nil {
			return seen, err
		}
		seen.cron = cron
		if seen.runs, err = runsOf(ctx, client, cron); err != nil {
			return seen, err
		}
		table, err := obs.page(ctx, cronPage)
		if err != nil {
			return seen, err
		}
		seen.row = cronRow(string(table), ex.cron.Name)
		if expected, said := compare(ex.cronWants, nil, seen.sentences()); expected == said {
			break
		}
		time.Sleep(250 * time.Millisecond)
	}
	return seen, missingEvents(ctx, client, seen.cron.UID, []string{"SuccessfulCreate"})
}

// runsOf lists the Jobs that a CronJob controls, in the order in which they were created.
func runsOf(ctx context.Context, client kubernetes.Interface, cron *batchv1.CronJob) ([]batchv1.Job, error) {
	list, err := client.BatchV1().Jobs(cron.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Jobs: %w", err)
	}
	runs := slices.DeleteFunc(list.Items, func(job batchv1.Job) bool { return !metav1.IsControlledBy(&job, cron) })
	slices.SortFunc(runs, func(a, b batchv1.Job) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return runs, nil
}

// columnGap separates two columns; within a column there are only single spaces.
var columnGap = regexp.MustCompile(` {2,}`)

// cronRow finds the row of a CronJob in the executor's table; empty if it is not
// there.
func cronRow(table, name string) map[string]string {
	var titles []string
	for line := range strings.Lines(table) {
		cells := columnGap.Split(strings.TrimSpace(line), -1)
		if titles == nil {
			titles = cells
			continue
		}
		row := map[string]string{}
		for i, cell := range cells[:min(len(cells), len(titles))] {
			row[titles[i]] = cell
		}
		if row[columnName] == name {
			return row
		}
	}
	return nil
}
