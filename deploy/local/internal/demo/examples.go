package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// An example is one manifest with what is to become of it.
type example struct {
	file   string
	job    *batchv1.Job
	expect expectation
	// script, if not nil, does something to the Job while it runs.
	script *script
}

// An expectation is how a Job has to end.
type expectation struct {
	summary          string
	condition        batchv1.JobConditionType
	reason           string
	succeeded        int32
	failed           int32
	completedIndexes string
	// maxActive bounds how many pods were ever seen active at once; 0: no bound.
	maxActive int32
	// containerRuns is how often the containers were started in all; 0: any.
	containerRuns int32
	// events have to be there, by reason.
	events []string
	// logs judges the logs of the Job's pods; nil: not looked at.
	logs func(logs []string) error
}

// examplesInOrder lists the manifests and their ends, as the documents print
// them.
func examplesInOrder() []*example {
	complete := func(summary string, succeeded int32) expectation {
		return expectation{
			summary: summary, condition: batchv1.JobComplete, reason: batchv1.JobReasonCompletionsReached,
			succeeded: succeeded, events: []string{"SuccessfulCreate", "Completed"},
		}
	}
	failed := func(summary, reason string, pods int32) expectation {
		return expectation{
			summary: summary, condition: batchv1.JobFailed, reason: reason, failed: pods,
			events: []string{"SuccessfulCreate", reason},
		}
	}
	return []*example{
		{file: "pi.yaml", expect: complete("2000 digits of pi", 1).withLogs(digitsOfPi)},
		{file: "pi-parallel.yaml", expect: complete("4 completions, never more than 2 pods at once", 4).withMaxActive(2)},
		{file: "work-queue.yaml", expect: complete("3 workers took each of 9 items once", 3).withLogs(eachItemOnce)},
		{file: "indexed.yaml", expect: complete("indexes 0-4, each printed by its own pod", 5).withIndexes("0-4").withLogs(eachIndexOnce)},
		{file: "retry-on-failure.yaml", expect: failed("4 runs in 1 pod, the last one cut short: failed 1", "BackoffLimitExceeded", 1).withRuns(4)},
		{file: "retry-never.yaml", expect: failed("4 full runs in 4 pods: failed 4", "BackoffLimitExceeded", 4).withRuns(4).withLogs(fourFullRuns)},
		{file: "pi-with-timeout.yaml", expect: failed("stopped at its deadline", "DeadlineExceeded", 1)},
		{file: "suspend-resume.yaml", expect: complete("suspended, resumed, start time set anew", 2).withEvents("Suspended", "Resumed"), script: &script{}},
	}
}

func (e expectation) withLogs(judge func([]string) error) expectation { e.logs = judge; return e }
func (e expectation) withMaxActive(n int32) expectation               { e.maxActive = n; return e }
func (e expectation) withIndexes(indexes string) expectation          { e.completedIndexes = indexes; return e }

func (e expectation) withRuns(n int32) expectation { e.containerRuns = n; return e }

func (e expectation) withEvents(reasons ...string) expectation {
	e.events = append(append([]string(nil), e.events...), reasons...)
	return e
}

// loadExamples reads the manifests.
func loadExamples(dir string) ([]*example, error) {
	examples := examplesInOrder()
	for _, ex := range examples {
		data, err := os.ReadFile(filepath.Join(dir, ex.file))
		if err != nil {
			return nil, fmt.Errorf("example manifest: %w", err)
		}
		ex.job = &batchv1.Job{}
		if err := yaml.UnmarshalStrict(data, ex.job); err != nil {
			return nil, fmt.Errorf("example manifest %s: %w", ex.file, err)
		}
	}
	return examples, nil
}

// apply creates the Jobs.
func apply(ctx context.Context, client kubernetes.Interface, examples []*example) error {
	for _, ex := range examples {
		_, err := client.BatchV1().Jobs(namespace).Create(ctx, ex.job, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create Job %s: %w", ex.job.Name, err)
		}
	}
	return nil
}

// A script suspends a Job once its pods run, and resumes it once they are gone.
type script struct {
	suspended, resumed bool
	firstStart         time.Time
}
