package parity

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/simulated/jobspec"
)

// added is the prefix of the names of added pods.
const added = "extra-"

// addPod adds a pod that the Job's controller has not created, from the Job's template
// and with the labels that its selector requires. It joins the Job only when it has its
// phase, so that nobody sees it before.
func (k kubelet) addPod(ctx context.Context, c *Case, st step) error {
	spec, uid, err := k.liveSpec(ctx, c)
	if err != nil {
		return err
	}
	pods := k.client.CoreV1().Pods(namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: added}, Spec: *spec.Template.Spec.DeepCopy()}
	index := st.options["index"]
	if index != "" {
		pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: index}
		pod.Spec.Hostname = k.name + "-" + index
	}
	if pod, err = pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := k.bring(ctx, pod, corev1.PodPhase(st.options["phase"])); err != nil {
		return err
	}
	meta := map[string]any{"uid": pod.UID}
	if spec.Selector != nil && st.options["labels"] != "none" {
		meta["labels"] = spec.Selector.MatchLabels
	}
	if st.options["tracked"] == "true" {
		meta["finalizers"] = []string{batchv1.JobTrackingFinalizer}
	}
	if meta["ownerReferences"], err = k.owners(ctx, st.options["owner"], uid); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return err
	}
	_, err = pods.Patch(ctx, pod.Name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// bring puts a new pod into a phase.
func (k kubelet) bring(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase) error {
	switch phase {
	case "", corev1.PodPending:
		return nil
	case corev1.PodRunning:
		return k.run(ctx, pod)
	}
	if err := k.run(ctx, pod); err != nil {
		return err
	}
	how := outcome{}
	if phase == corev1.PodFailed {
		how.exit = 1
	}
	return k.patch(ctx, pod, ended(pod, phase, how))
}

// liveSpec is the Job's spec with the API server's defaults, or the case's spec if
// there is no Job yet.
func (k kubelet) liveSpec(ctx context.Context, c *Case) (*batchv1.JobSpec, types.UID, error) {
	job, err := k.client.BatchV1().Jobs(namespace).Get(ctx, k.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &c.Spec, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return &job.Spec, job.UID, nil
}

// owners are what controls an added pod: the Job, a config map, or nothing.
func (k kubelet) owners(ctx context.Context, owner string, job types.UID) ([]metav1.OwnerReference, error) {
	switch owner {
	case "job":
		return []metav1.OwnerReference{{
			APIVersion: "batch/v1", Kind: "Job", Name: k.name, UID: job, Controller: new(true), BlockOwnerDeletion: new(true),
		}}, nil
	case "other":
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "owner-"}}
		other, err := k.client.CoreV1().ConfigMaps(namespace).Create(ctx, other, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		return []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: other.Name, UID: other.UID, Controller: new(true)}}, nil
	}
	return nil, nil
}

// relabel gives a pod other values of the labels that the Job selects by.
func (k kubelet) relabel(ctx context.Context, pod *corev1.Pod) error {
	job, err := k.client.BatchV1().Jobs(namespace).Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	labels := map[string]string{}
	for key := range job.Spec.Selector.MatchLabels {
		labels[key] = "other"
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "labels": labels}})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("relabel: %w", err)
	}
	return nil
}

// halfway ends a pod's main containers while its sidecars keep running.
func (k kubelet) halfway(ctx context.Context, pod *corev1.Pod, how outcome) error {
	status := ended(pod, corev1.PodRunning, how)
	running := pod.Status.DeepCopy()
	for i, c := range pod.Spec.InitContainers {
		if jobspec.Sidecar(c) {
			status.InitContainerStatuses[i] = running.InitContainerStatuses[i]
		}
	}
	return k.patch(ctx, pod, status)
}

// restart increases the restart count of one of a pod's containers: the first main one,
// unless another is named.
func (k kubelet) restart(ctx context.Context, pod *corev1.Pod, st step) error {
	status := pod.Status.DeepCopy()
	name := cmp.Or(st.options["container"], pod.Spec.Containers[0].Name)
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				list[i].RestartCount += int32(st.number("count"))
			}
		}
	}
	return k.patch(ctx, pod, *status)
}
