package parity

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ownManager is the managedBy value of Jobs that are ours even if the built-in
// controller runs.
const ownManager = "jobpolicy.dev/executor"

// An actor does one line of steps on one side.
type actor struct {
	kubelet
	c      *Case
	before facts
	// used are the pods that steps of the line have taken.
	used map[types.UID]bool
	// builtin: the controller is Kubernetes' own.
	builtin bool
	// down is set after a step of the line has killed the controller.
	down bool
}

// do does one step, and returns how many pods it concerned (0 if it is not about pods).
func (a *actor) do(ctx context.Context, st step) (int, error) {
	f := a.before
	act := map[string]struct {
		pods []handle
		do   func(handle) error
	}{
		"run":     {f.pending, func(h handle) error { return a.run(ctx, h.Pod) }},
		"succeed": {f.active, func(h handle) error { return a.succeed(ctx, h.Pod, st.outcome(0)) }},
		"fail":    {f.active, func(h handle) error { return a.fail(ctx, h.Pod, st.outcome(1)) }},
		"halfway": {f.active, func(h handle) error { return a.halfway(ctx, h.Pod, st.outcome(0)) }},
		"restart": {f.active, func(h handle) error { return a.restart(ctx, h.Pod, st) }},
		"remove":  {slices.Concat(f.active, f.pending), func(h handle) error { return a.remove(ctx, h.Pod) }},
		"relabel": {slices.Concat(f.active, f.pending), func(h handle) error { return a.relabel(ctx, h.Pod) }},
		"end":     {f.ending, func(h handle) error { return a.end(ctx, h, st.words[0]) }},
	}
	pods, ok := act[st.verb]
	if !ok {
		return 0, a.doJob(ctx, st)
	}
	chosen := st.pods.choose(slices.DeleteFunc(slices.Clone(pods.pods), func(h handle) bool { return a.used[h.UID] }))
	for _, h := range chosen {
		// A pod that is removed may still end by itself in the same line.
		a.used[h.UID] = st.verb != "remove"
		if err := pods.do(h); err != nil {
			return 0, err
		}
	}
	return len(chosen), nil
}

func (k kubelet) end(ctx context.Context, h handle, how string) error {
	k.mu.Lock()
	h.ended = true
	k.mu.Unlock()
	phase := corev1.PodFailed
	if how == "succeeded" {
		phase = corev1.PodSucceeded
	}
	return k.finalize(ctx, h.Pod, phase)
}

// remove deletes a pod as a user would.
func (k kubelet) remove(ctx context.Context, pod *corev1.Pod) error {
	err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
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

// word returns the step's i-th word, or "".
func (st step) word(i int) string {
	if i >= len(st.words) {
		return ""
	}
	return st.words[i]
}

func (st step) outcome(exit int32) outcome {
	how := outcome{exit: exit, container: st.options["container"], condition: st.options["condition"]}
	if st.options["exit"] != "" {
		how.exit = int32(st.number("exit"))
	}
	return how
}

// doJob does a step on the Job itself, or on its surroundings.
func (a *actor) doJob(ctx context.Context, st step) error {
	jobs := a.client.BatchV1().Jobs(namespace)
	switch st.verb {
	case "delete":
		policy := metav1.DeletionPropagation(st.word(0))
		return jobs.Delete(ctx, a.name, metav1.DeleteOptions{PropagationPolicy: &policy})
	case "recreate":
		return a.recreate(ctx)
	case "pod":
		return a.addPod(ctx, a.c, st)
	case "crash":
		a.crash(st.word(0))
		return nil
	case "hold", "wait":
		return nil
	}
	patch, err := st.patch()
	if err != nil {
		return err
	}
	_, err = jobs.Patch(ctx, a.name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// crash kills the controller; on our side the executor, or the engine.
func (a *actor) crash(what string) {
	if !a.down {
		a.down = true
		a.outage.begin(what)
	}
}

// patch returns the strategic merge patch of a step that edits the Job.
func (st step) patch() (string, error) {
	argument, inSpec := st.word(0), `{"spec":{%q:%s}}`
	key, value := st.option()
	inTemplate := func(format string, args ...any) (string, error) {
		return `{"spec":{"template":` + fmt.Sprintf(format, args...) + `}}`, nil
	}
	switch st.verb {
	case "suspend":
		return fmt.Sprintf(inSpec, "suspend", "true"), nil
	case "resume":
		return fmt.Sprintf(inSpec, "suspend", "false"), nil
	case "parallelism", "completions", "backoffLimit", "activeDeadlineSeconds":
		return fmt.Sprintf(inSpec, st.verb, argument), nil
	case "edit":
		return fmt.Sprintf(inSpec, argument, literal(st.word(1))), nil
	case "resize":
		return fmt.Sprintf(`{"spec":{"parallelism":%s,"completions":%s}}`, argument, argument), nil
	case "template":
		return inTemplate(`{"metadata":{"labels":{%q:%q}}}`, key, value)
	case "annotate":
		return inTemplate(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	case "nodeSelector":
		return inTemplate(`{"spec":{"nodeSelector":{%q:%q}}}`, key, value)
	case "toleration":
		return inTemplate(`{"spec":{"tolerations":[{"key":%q,"operator":"Exists"}]}}`, argument)
	case "gate":
		return inTemplate(`{"spec":{"schedulingGates":[{"name":%q}]}}`, argument)
	case "affinity":
		return inTemplate(`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":`+
			`{"nodeSelectorTerms":[{"matchExpressions":[{"key":%q,"operator":"Exists"}]}]}}}}}`, argument)
	case "cpu":
		return inTemplate(`{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":%q}}}]}}`, argument)
	case "image":
		return inTemplate(`{"spec":{"containers":[{"name":"main","image":%q}]}}`, argument)
	case "label":
		return fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value), nil
	case "finalizer":
		return fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, argument), nil
	case "unfinalizer":
		return fmt.Sprintf(`{"metadata":{"$deleteFromPrimitiveList/finalizers":[%q]}}`, argument), nil
	}
	return "", fmt.Errorf("no step is called %q", st.verb)
}

// literal is a word as JSON: unchanged if it is JSON, otherwise as a string.
func literal(word string) string {
	if json.Valid([]byte(word)) {
		return word
	}
	return strconv.Quote(word)
}

// How often to try to create the Job again, and when to start the controller again in
// between: it may have to free the name.
const (
	recreatePeriod = 150 * time.Millisecond
	maxRecreates   = 100
	downRecreates  = 10
)

// recreate creates the Job again, as soon as its name is free.
func (a *actor) recreate(ctx context.Context) error {
	for i := 0; ; i++ {
		err := a.createJob(ctx, a.c)
		if !apierrors.IsAlreadyExists(err) || i == maxRecreates {
			return err
		}
		time.Sleep(recreatePeriod)
		if a.down && i == downRecreates {
			a.down = false
			a.outage.end()
		}
	}
}

func (a *actor) createJob(ctx context.Context, c *Case) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: a.name}, Spec: *c.Spec.DeepCopy()}
	if manager := job.Spec.ManagedBy; manager != nil && *manager == ownManager && a.builtin {
		// What the built-in controller would do if it were its own.
		job.Spec.ManagedBy = nil
	}
	_, err := a.client.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{})
	return err
}
