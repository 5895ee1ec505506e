package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
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
	// quota, if not empty, is the name of a quota that has no room for a pod, in the example's namespace.
	quota string
	// node, if not empty, is the name of a node that is Ready, and that no kubelet runs.
	node string
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
		err := yaml.UnmarshalStrict(manifest, ex.job)
		ex.job.Namespace = cmp.Or(ex.job.Namespace, namespace)
		return err
	}
	ex.cron = &batchv1.CronJob{}
	if err := yaml.UnmarshalStrict(manifest, ex.cron); err != nil {
		return err
	}
	ex.cron.Namespace = cmp.Or(ex.cron.Namespace, namespace)
	ex.job = runOf(ex.cron, ex.run)
	return nil
}

// command is a kubectl command, written for an object named NAME, as it is for the example's.
func (ex *example) command(text, name string) string {
	text = strings.ReplaceAll(text, "NAME", name)
	if space := ex.job.Namespace; space != namespace {
		text = strings.ReplaceAll(text, "kubectl ", "kubectl -n "+space+" ")
	}
	return text
}

// createNamespaces creates the namespaces of the examples with their quotas, and waits until pods can be created in them.
func createNamespaces(ctx context.Context, client kubernetes.Interface, examples []*example) error {
	for _, ex := range examples {
		name := ex.job.Namespace
		if name == namespace {
			continue
		}
		_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
		if err := createQuota(ctx, client, name, ex.quota); err != nil {
			return err
		}
		err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			_, err := client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("service account of namespace %s: %w", name, err)
		}
	}
	return nil
}

// createQuota creates a quota that has no room for a pod, unless its name is empty.
func createQuota(ctx context.Context, client kubernetes.Interface, space, name string) error {
	if name == "" {
		return nil
	}
	_, err := client.CoreV1().ResourceQuotas(space).Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create quota %s: %w", name, err)
	}
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
	if ex.node != "" {
		if err := createNode(ctx, client, ex.node); err != nil {
			return err
		}
	}
	return createJob(ctx, client, ex.job)
}

// createNode creates a node that is Ready and takes no pods from the scheduler. The control plane believes that for 50 s, in which its
// kubelet should say something.
func createNode(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create node %s: %w", name, err)
	}
	return nil
}

func createJob(ctx context.Context, client kubernetes.Interface, job *batchv1.Job) error {
	if _, err := client.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
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
