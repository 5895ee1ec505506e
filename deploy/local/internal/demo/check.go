package demo

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// check compares how a Job ended with what is expected; it lists what differs.
func check(ctx context.Context, client kubernetes.Interface, obs *observer, ex *example) []string {
	job, err := client.BatchV1().Jobs(namespace).Get(ctx, ex.job.Name, metav1.GetOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	problem := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	checkStatus(job, ex.expect, problem)
	highest := obs.active[job.Name]
	problem(ex.expect.maxActive == 0 || highest <= ex.expect.maxActive, "%d pods were active at once", highest)
	runs := obs.containerRuns(job.Name)
	problem(ex.expect.containerRuns == 0 || runs == ex.expect.containerRuns, "the containers ran %d times, not %d", runs, ex.expect.containerRuns)
	if ex.script != nil {
		anew := job.Status.StartTime != nil && job.Status.StartTime.After(ex.script.firstStart)
		problem(ex.script.resumed && anew, "it was not suspended and resumed, or its start time was not set anew")
	}
	if ex.expect.logs != nil {
		logs, err := obs.jobLogs(ctx, client, job.Name)
		err = errors.Join(err, ex.expect.logs(logs))
		problem(err == nil, "logs: %v", err)
	}
	problem(checkFinalizers(ctx, client, job) == nil, "%v", checkFinalizers(ctx, client, job))
	missing := missingEvents(ctx, client, job, ex.expect.events)
	problem(len(missing) == 0, "events are missing: %s", strings.Join(missing, ", "))
	return problems
}

func checkStatus(job *batchv1.Job, want expectation, problem func(bool, string, ...any)) {
	last := "none"
	for _, c := range job.Status.Conditions {
		if c.Type == want.condition && c.Status == corev1.ConditionTrue {
			last = c.Reason
		}
	}
	problem(last == want.reason, "condition %s has reason %s, not %s", want.condition, last, want.reason)
	problem(job.Status.Succeeded == want.succeeded, "succeeded is %d, not %d", job.Status.Succeeded, want.succeeded)
	problem(job.Status.Failed == want.failed, "failed is %d, not %d", job.Status.Failed, want.failed)
	problem(job.Status.Active == 0, "active is %d", job.Status.Active)
	problem(job.Status.CompletedIndexes == want.completedIndexes, "completedIndexes is %q, not %q", job.Status.CompletedIndexes, want.completedIndexes)
}

// checkFinalizers finds pods that a finished Job left with its finalizer.
func checkFinalizers(ctx context.Context, client kubernetes.Interface, job *batchv1.Job) error {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job.Name})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) {
			return fmt.Errorf("pod %s still holds the finalizer", pod.Name)
		}
	}
	return nil
}

// missingEvents returns the reasons for which a Job has no event. Events are
// recorded after the fact, so it looks more than once.
func missingEvents(ctx context.Context, client kubernetes.Interface, job *batchv1.Job, want []string) []string {
	var missing []string
	for range 20 {
		events, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(job.UID)).String(),
		})
		if err != nil {
			return []string{err.Error()}
		}
		missing = slices.DeleteFunc(slices.Clone(want), func(reason string) bool {
			return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == reason })
		})
		if len(missing) == 0 || ctx.Err() != nil {
			return missing
		}
		time.Sleep(250 * time.Millisecond)
	}
	return missing
}

// digitsOfPi wants 2000 digits, of which it knows the first and the last.
func digitsOfPi(logs []string) error {
	if len(logs) != 1 {
		return fmt.Errorf("%d pods have logs, not 1", len(logs))
	}
	digits := strings.TrimSpace(logs[0])
	if len(digits) != 2001 || !strings.HasPrefix(digits, "3.14159265358979323846") {
		return fmt.Errorf("%d characters that begin with %.22q", len(digits), digits)
	}
	return nil
}

var itemLine = regexp.MustCompile(`(?m)^item (\d)$`)

// eachItemOnce wants the items 1 to 9 among the workers' lines, each once.
func eachItemOnce(logs []string) error {
	var items []string
	for _, match := range itemLine.FindAllStringSubmatch(strings.Join(logs, "\n"), -1) {
		items = append(items, match[1])
	}
	slices.Sort(items)
	if got := strings.Join(items, ""); got != "123456789" {
		return fmt.Errorf("items taken: %s", got)
	}
	return nil
}

// eachIndexOnce wants one pod for each index to print it.
func eachIndexOnce(logs []string) error {
	sorted := slices.Sorted(slices.Values(logs))
	for i, log := range sorted {
		if strings.TrimSpace(log) != fmt.Sprintf("My index is %d", i) {
			return fmt.Errorf("a pod printed %q", log)
		}
	}
	if len(sorted) != 5 {
		return fmt.Errorf("%d pods have logs, not 5", len(sorted))
	}
	return nil
}

// fourFullRuns wants four pods that each ran to the end.
func fourFullRuns(logs []string) error {
	full := 0
	for _, log := range logs {
		if strings.Contains(log, "completed") {
			full++
		}
	}
	if full != 4 || len(logs) != 4 {
		return fmt.Errorf("%d of %d pods ran to the end", full, len(logs))
	}
	return nil
}
