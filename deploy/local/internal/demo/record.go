package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// midway is the age at which an unfinished Job is recorded.
const midway = 3 * time.Second

// A recording is what the API server shows of a Job at a moment. The tests of kubectl
// jobpolicy serve it to the commands that read Jobs.
type recording struct {
	Now    time.Time      `json:"now"`
	Job    *batchv1.Job   `json:"job"`
	Pods   []corev1.Pod   `json:"pods"`
	Events []corev1.Event `json:"events"`
}

// A recorder writes a recording of each Job midway and one at its end.
type recorder struct {
	client kubernetes.Interface
	// dir takes the files; empty: nothing is recorded.
	dir  string
	done map[string]bool
}

func newRecorder(client kubernetes.Interface, dir string) *recorder {
	return &recorder{client, dir, map[string]bool{}}
}

// record records the Jobs for which a moment has come.
func (r *recorder) record(ctx context.Context, obs *observer) error {
	if r.dir == "" {
		return nil
	}
	for _, ex := range obs.examples {
		job := obs.past(ex.job.Name).job
		if job == nil {
			continue
		}
		moment := "midway"
		if finished(job) {
			moment = "end"
		} else if time.Since(job.CreationTimestamp.Time) < midway {
			continue
		}
		name := ex.name + "-" + moment + ".json"
		if r.done[name] {
			continue
		}
		r.done[name] = true
		if err := r.write(ctx, job, name); err != nil {
			return fmt.Errorf("record %s: %w", name, err)
		}
	}
	return nil
}

func (r *recorder) write(ctx context.Context, job *batchv1.Job, name string) error {
	list := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(job.Spec.Selector)}
	pods, err := r.client.CoreV1().Pods(namespace).List(ctx, list)
	if err != nil {
		return err
	}
	events, err := r.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	rec := recording{Now: time.Now().UTC(), Job: job.DeepCopy(), Pods: pods.Items}
	rec.Job.ManagedFields = nil
	concerned := map[string]bool{string(job.UID): true}
	for i := range rec.Pods {
		rec.Pods[i].ManagedFields = nil
		concerned[string(rec.Pods[i].UID)] = true
	}
	for _, e := range events.Items {
		if concerned[string(e.InvolvedObject.UID)] {
			e.ManagedFields = nil
			rec.Events = append(rec.Events, e)
		}
	}
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, name), append(data, '\n'), 0o644)
}
