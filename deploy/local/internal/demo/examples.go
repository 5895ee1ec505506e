package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// An example is a manifest and its expected end. It is named after the manifest's file; the
// Job may have another name.
type example struct {
	name string
	job  *batchv1.Job
	// shows says what there is to see.
	shows string
	// wants are the sentences that are said at the end, as compare has them; the first is about
	// the conditions.
	wants []string
	// events are the reasons of the expected events.
	events []string
	// script is the list of steps that the demo takes while the Job runs.
	script []step
	// shares, if not empty, is a directory that the pods must share.
	shares string
	// adopts, if not empty, is the name of another Job. This one is created
	// when that is gone, with its selector, to take over its pods.
	adopts string
	// run, if not empty, says that the manifest is a CronJob, cron, which is made to
	// start a run. job is the Job of that, and run its name.
	run  string
	cron *batchv1.CronJob
	// start makes the CronJob start its run.
	start start
	// beside, if not nil, is another such example: their runs share a group.
	beside *example
	// cronWants are those of wants that are about the CronJob.
	cronWants []string
}

// loadExamples reads the manifests.
func loadExamples(dir string) ([]*example, error) {
	examples := examplesInOrder()
	for _, ex := range examples {
		file := ex.name + ".yaml"
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, fmt.Errorf("example manifest: %w", err)
		}
		if err := ex.decode(data); err != nil {
			return nil, fmt.Errorf("example manifest %s: %w", file, err)
		}
	}
	return examples, nil
}

func (ex *example) decode(manifest []byte) error {
	if ex.run == "" {
		ex.job = &batchv1.Job{}
		return yaml.UnmarshalStrict(manifest, ex.job)
	}
	ex.cron = &batchv1.CronJob{}
	if err := yaml.UnmarshalStrict(manifest, ex.cron); err != nil {
		return err
	}
	ex.job = runOf(ex.cron, ex.run)
	return nil
}

// shareDirectories mounts the shared directories into pods that run in containers. Pods
// that run as processes of the node share them anyway.
func shareDirectories(examples []*example) {
	const volume = "shared"
	for _, ex := range examples {
		if ex.shares == "" {
			continue
		}
		pod := &ex.job.Spec.Template.Spec
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			// /run is a file system of the cluster's own, and ends with it.
			HostPath: &corev1.HostPathVolumeSource{
				Path: "/run/jobpolicy-demo/" + ex.name,
				Type: new(corev1.HostPathDirectoryOrCreate),
			},
		}})
		for i := range pod.Containers {
			c := &pod.Containers[i]
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: ex.shares})
		}
	}
}

// create creates the example's CronJob or Job.
func (ex *example) create(ctx context.Context, client kubernetes.Interface) error {
	if ex.cron != nil {
		return createCronJob(ctx, client, ex.cron)
	}
	return createJob(ctx, client, ex.job)
}

func createJob(ctx context.Context, client kubernetes.Interface, job *batchv1.Job) error {
	if _, err := client.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create Job %s: %w", job.Name, err)
	}
	return nil
}

// errNoSelector: a Job to take pods over from has no UID to select them by.
var errNoSelector = errors.New("its selector does not name its UID")

// adopting returns a Job whose selector is that of another, by the label with
// which the API server tells the pods of Jobs apart.
func adopting(job, from *batchv1.Job) (*batchv1.Job, error) {
	const label = batchv1.ControllerUidLabel
	uid := from.Spec.Selector.MatchLabels[label]
	if uid == "" {
		return nil, fmt.Errorf("take over the pods of Job %s: %w", from.Name, errNoSelector)
	}
	job = job.DeepCopy()
	job.Spec.Selector.MatchLabels[label] = uid
	job.Spec.Template.Labels[label] = uid
	return job, nil
}
