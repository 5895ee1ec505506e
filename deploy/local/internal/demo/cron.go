package demo

import (
	"context"
	"encoding/json"
	"errors"
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

// cronTraits are the conditions that a CronJob has to meet once its run has ended.
func cronTraits() []trait {
	return []trait{
		{"the request is cleared", func(e evidence) error {
			if text, asked := e.cron.cron.Annotations[runNow]; asked {
				return fmt.Errorf("the request %q stands", text)
			}
			return nil
		}},
		{"lastSuccessfulTime set", func(e evidence) error {
			if e.cron.cron.Status.LastSuccessfulTime == nil {
				return errors.New("no lastSuccessfulTime")
			}
			return nil
		}},
		{"next run at the next whole minute", nextMinute},
	}
}

// nextMinute wants the next run to be due at the first whole minute after the CronJob was
// created or last ran: a run that the demo asks for does not change the schedule.
func nextMinute(e evidence) error {
	cron := e.cron.cron
	since := cron.CreationTimestamp
	if last := cron.Status.LastScheduleTime; last != nil {
		since = *last
	}
	want := since.UTC().Truncate(time.Minute).Add(time.Minute).Format(time.RFC3339)
	if next := e.cron.row[columnNext]; next != want {
		return fmt.Errorf("next run at %q, not at %s", next, want)
	}
	return nil
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
		differs := func(t trait) bool { return t.differs(evidence{cron: seen}) != nil }
		if !slices.ContainsFunc(cronTraits(), differs) {
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
