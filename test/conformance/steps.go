package conformance

import (
	"context"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// do does one step on one side. It returns how many pods it concerned, 0 for
// steps that concern none.
func (k kubelet) do(ctx context.Context, c *Case, st step, f facts) (int, error) {
	act := map[string]struct {
		pods []handle
		do   func(handle) error
	}{
		"run":     {f.pending, func(h handle) error { return k.run(ctx, h.Pod) }},
		"succeed": {f.active, func(h handle) error { return k.succeed(ctx, h.Pod) }},
		"fail":    {f.active, func(h handle) error { return k.fail(ctx, h.Pod, st.outcome()) }},
		"restart": {f.active, func(h handle) error { return k.restart(ctx, h.Pod, int32(st.number("count"))) }},
		"remove":  {append(f.active[:len(f.active):len(f.active)], f.pending...), func(h handle) error { return k.remove(ctx, h.Pod) }},
		"end":     {f.ending, func(h handle) error { return k.end(ctx, h, st.words[0]) }},
	}
	if pods, ok := act[st.verb]; ok {
		chosen := st.pods.choose(pods.pods)
		for _, h := range chosen {
			if err := pods.do(h); err != nil {
				return 0, err
			}
		}
		return len(chosen), nil
	}
	return 0, k.doJob(ctx, c, st)
}

func (k kubelet) end(ctx context.Context, h handle, how string) error {
	k.side.mu.Lock()
	h.ended = true
	k.side.mu.Unlock()
	phase := corev1.PodFailed
	if how == "succeeded" {
		phase = corev1.PodSucceeded
	}
	return k.finalize(ctx, h.Pod, phase)
}

// remove deletes a pod as a user would.
func (k kubelet) remove(ctx context.Context, pod *corev1.Pod) error {
	err := k.side.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (st step) number(option string) int {
	n, _ := strconv.Atoi(st.options[option])
	return n
}

// option is the step's only option.
func (st step) option() (key, value string) {
	for key, value = range st.options {
	}
	return key, value
}

func (st step) outcome() outcome {
	how := outcome{exit: 1, container: st.options["container"], condition: st.options["condition"]}
	if st.options["exit"] != "" {
		how.exit = int32(st.number("exit"))
	}
	return how
}

// doJob does a step on the Job itself.
func (k kubelet) doJob(ctx context.Context, c *Case, st step) error {
	argument := ""
	if len(st.words) > 0 {
		argument = st.words[0]
	}
	switch st.verb {
	case "parallelism", "completions", "backoffLimit", "activeDeadlineSeconds":
		return k.patchJob(ctx, fmt.Sprintf(`{"spec":{%q:%s}}`, st.verb, argument))
	case "resize":
		return k.patchJob(ctx, fmt.Sprintf(`{"spec":{"parallelism":%s,"completions":%s}}`, argument, argument))
	case "template":
		key, value := st.option()
		return k.patchJob(ctx, fmt.Sprintf(`{"spec":{"template":{"metadata":{"labels":{%q:%q}}}}}`, key, value))
	case "suspend":
		return k.patchJob(ctx, `{"spec":{"suspend":true}}`)
	case "resume":
		return k.patchJob(ctx, `{"spec":{"suspend":false}}`)
	case "delete":
		policy := metav1.DeletionPropagation(argument)
		return k.side.client.BatchV1().Jobs(k.namespace).Delete(ctx, k.job, metav1.DeleteOptions{PropagationPolicy: &policy})
	case "recreate":
		return k.createJob(ctx, c)
	case "hold", "wait":
		return nil
	}
	return fmt.Errorf("no step is called %q", st.verb)
}

func (k kubelet) patchJob(ctx context.Context, patch string) error {
	_, err := k.side.client.BatchV1().Jobs(k.namespace).Patch(ctx, k.job, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (k kubelet) createJob(ctx context.Context, c *Case) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: k.job}, Spec: *c.Spec.DeepCopy()}
	_, err := k.side.client.BatchV1().Jobs(k.namespace).Create(ctx, job, metav1.CreateOptions{})
	return err
}
