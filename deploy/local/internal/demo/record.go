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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
)

// midway is the age at which an unfinished Job is recorded.
const midway = 3 * time.Second

// A recording is what the API server shows of a Job at a moment, and the executor's last
// decision on it. The tests of kubectl jobpolicy serve it to the commands that read Jobs.
type recording struct {
	Now       time.Time         `json:"now"`
	Job       *batchv1.Job      `json:"job"`
	Pods      []corev1.Pod      `json:"pods"`
	Events    []corev1.Event    `json:"events"`
	Decisions []json.RawMessage `json:"decisions"`
}

// A recorder writes a recording of each Job midway and one at its end, and one of the
// cluster when each Job was there that is not a run of a CronJob.
type recorder struct {
	client kubernetes.Interface
	// dir takes the files; empty: nothing is recorded.
	dir string
	// cluster records the cluster.
	cluster func(context.Context) error
	done    map[string]bool
}

func newRecorder(c *cluster.Cluster, client kubernetes.Interface, opts Options) *recorder {
	return &recorder{client: client, dir: opts.RecordDir, done: map[string]bool{}, cluster: func(ctx context.Context) error {
		return recordCluster(ctx, c.RESTConfig(), c.ExecutorURL(), opts.BinDir, opts.RecordDir)
	}}
}

// run records until done is closed. Recordings take a while, and the scripts go on meanwhile.
func (r *recorder) run(ctx context.Context, obs *observer, done <-chan struct{}) error {
	if r.dir == "" {
		return nil
	}
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for last := false; ; {
		if err := r.record(ctx, obs); err != nil || last {
			return err
		}
		select {
		case <-done:
			last = true
		case <-tick.C:
		}
	}
}

// record records the Jobs for which a moment has come.
func (r *recorder) record(ctx context.Context, obs *observer) error {
	all := true
	for _, ex := range obs.examples {
		job := obs.past(ex.job.Name).job
		if job == nil {
			all = all && ex.cron != nil // Later runs come when others of the Jobs have ended.
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
		if err := r.write(ctx, obs, job, name); err != nil {
			return fmt.Errorf("record %s: %w", name, err)
		}
	}
	if all && !r.done["cluster"] {
		r.done["cluster"] = true
		return r.cluster(ctx)
	}
	return nil
}

func (r *recorder) write(ctx context.Context, obs *observer, job *batchv1.Job, name string) error {
	list := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(job.Spec.Selector)}
	pods, err := r.client.CoreV1().Pods(job.Namespace).List(ctx, list)
	if err != nil {
		return err
	}
	events, err := r.client.CoreV1().Events(job.Namespace).List(ctx, metav1.ListOptions{})
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
	if rec.Decisions, err = decisionsOn(ctx, obs, job); err != nil {
		return err
	}
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, name), append(data, '\n'), 0o644)
}

// decisionsOn are the executor's last decisions that are about a Job: one, or none.
func decisionsOn(ctx context.Context, obs *observer, job *batchv1.Job) ([]json.RawMessage, error) {
	page, err := obs.page(ctx, "/debug/decisions")
	if err != nil {
		return nil, err
	}
	var all []json.RawMessage
	if err := json.Unmarshal(page, &all); err != nil {
		return nil, err
	}
	on := []json.RawMessage{}
	for _, decision := range all {
		var of struct{ UID types.UID }
		if err := json.Unmarshal(decision, &of); err != nil {
			return nil, err
		}
		if of.UID == job.UID {
			on = append(on, decision)
		}
	}
	return on, nil
}
