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
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       *cron.Spec.JobTemplate.Spec.DeepCopy(),
	}
}

func createCronJob(ctx context.Context, client kubernetes.Interface, cron *batchv1.CronJob) error {
	if _, err := client.BatchV1().CronJobs(namespace).Create(ctx, cron, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create CronJob %s: %w", cron.Name, err)
	}
	return nil
}

// askForRun makes a CronJob start one run at once, in addition to its schedule.
func (d *director) askForRun(ctx context.Context, ex *example) error {
	p := d.progress[ex.name]
	if ex.cron == nil || !p.created || p.asked {
		return nil
	}
	p.asked = true
	d.progress[ex.name] = p
	command := fmt.Sprintf("kubectl annotate cronjob %s %s=%s", ex.cron.Name, runNow, runText)
	d.say(command + "   # it is due every minute; one run comes now")
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{runNow: runText}}})
	if err != nil {
		return err
	}
	_, err = d.client.BatchV1().CronJobs(namespace).Patch(ctx, ex.cron.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// cronSeen is a CronJob as the API server has it, and its row in the executor's table, by
// column.
type cronSeen struct {
	cron *batchv1.CronJob
	row  map[string]string
}

// cronWants are what is said of the CronJob once its run has ended.
var cronWants = []string{"the request is cleared", "lastSuccessfulTime set", "next run at the next whole minute"}

func (c cronSeen) sentences() []string {
	said := slices.Clone(cronWants)
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
	return said
}

// checkCron checks the CronJob of an example. Its status and the executor's table are
// updated at different moments after a run has ended, so it looks more than once.
func checkCron(ctx context.Context, client kubernetes.Interface, obs *observer, name string) (cronSeen, error) {
	seen := cronSeen{cron: &batchv1.CronJob{}}
	for range 20 {
		cron, err := client.BatchV1().CronJobs(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return seen, err
		}
		seen.cron = cron
		table, err := obs.page(ctx, cronPage)
		if err != nil {
			return seen, err
		}
		seen.row = cronRow(string(table), name)
		if slices.Equal(seen.sentences(), cronWants) {
			break
		}
		time.Sleep(250 * time.Millisecond)
	}
	return seen, missingEvents(ctx, client, seen.cron.UID, []string{"SuccessfulCreate"})
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
