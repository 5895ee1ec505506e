package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"jobpolicy.dev/engine/snapshot"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the `file` that leads to the API server")
	engine := flag.String("engine", "dns:///localhost:8443", "the engine's `address`")
	certificates := flag.String("certificates", "tls", "the `folder` of ca.crt, tls.crt and tls.key")
	retryDelay := flag.Duration("retry-delay", 10*time.Second, "the `delay` before a failed pod is tried again; it doubles")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	config.QPS, config.Burst = 50, 100
	conn, err := jobpolicyv1grpc.Dial(*engine, *certificates)
	check(err)
	objects := dynamic.NewForConfigOrDie(config)
	c := &controller{
		engine:      jobpolicyv1grpc.NewPolicyServiceClient(conn),
		settings:    &jobpolicyv1.Settings{PodFailureBackoff: durationpb.New(*retryDelay)},
		trainings:   objects.Resource(resource),
		client:      kubernetes.NewForConfigOrDie(config),
		createAfter: map[types.UID]time.Time{},
	}
	changes := watch(objects)
	for {
		next, err := c.reconcile(context.Background())
		if err != nil {
			log.Println(err)
			next = time.Now().Add(time.Second)
		}
		select {
		case <-changes:
		case <-time.After(time.Until(next)):
		}
	}
}

// watch returns a channel that has something in it after any Training or pod changed.
func watch(objects dynamic.Interface) <-chan struct{} {
	changes := make(chan struct{}, 1)
	changed := func() {
		select {
		case changes <- struct{}{}:
		default:
		}
	}
	informers := dynamicinformer.NewDynamicSharedInformerFactory(objects, 0)
	for _, r := range []schema.GroupVersionResource{resource, corev1.SchemeGroupVersion.WithResource("pods")} {
		_, err := informers.ForResource(r).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
		})
		check(err)
	}
	informers.Start(nil)
	return changes
}

type controller struct {
	engine    jobpolicyv1grpc.PolicyServiceClient
	settings  *jobpolicyv1.Settings
	trainings dynamic.NamespaceableResourceInterface
	client    kubernetes.Interface
	// createAfter is when pods may be created again of a Training of which one was refused.
	createAfter map[types.UID]time.Time
	asked       int
}

// reconcile brings every Training one step forward, and returns when to do so again if
// nothing happens. It reads past every cache, so the view is current.
func (c *controller) reconcile(ctx context.Context) (next time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	trainings, err := c.trainings.List(ctx, metav1.ListOptions{})
	if err != nil {
		return next, err
	}
	pods, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: labelAttempt})
	if err != nil {
		return next, err
	}
	next = time.Now().Add(time.Minute)
	owned := map[types.UID][]corev1.Pod{}
	for _, pod := range pods.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && owner.Kind == kind.Kind {
			owned[owner.UID] = append(owned[owner.UID], pod)
		}
	}
	for _, object := range trainings.Items {
		t := &Training{}
		check(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, t))
		if t.Status.Groups == nil {
			t.Status.Groups = map[string]batchv1.JobStatus{}
		}
		again, err := c.advance(ctx, t, owned[t.UID])
		if err != nil {
			log.Println(t.Namespace, t.Name, err)
			again = time.Now().Add(time.Second)
		}
		if !again.IsZero() && again.Before(next) {
			next = again
		}
		delete(owned, t.UID)
	}
	for _, pods := range owned { // Their Training is gone.
		err = cmp.Or(c.remove(ctx, pods), err)
	}
	return next, err
}

// advance brings a Training one step forward: its own rules come first, then the
// engine's decision on each group.
func (c *controller) advance(ctx context.Context, t *Training, pods []corev1.Pod) (next time.Time, err error) {
	groups, stale := map[string][]corev1.Pod{}, []corev1.Pod(nil)
	for _, pod := range pods {
		if pod.Labels[labelAttempt] != t.attempt() {
			stale = append(stale, pod)
		}
		groups[pod.Labels[labelGroup]] = append(groups[pod.Labels[labelGroup]], pod)
	}
	if len(stale) > 0 { // The next attempt begins when the pods of the last one are gone.
		return next, c.remove(ctx, stale)
	}
	if over, err := c.judge(ctx, t); err != nil || over {
		return next, err
	}
	for i, g := range t.Spec.Groups {
		again, err := c.step(ctx, t, g.Name, t.job(i), groups[g.Name])
		if err != nil {
			return next, fmt.Errorf("group %s: %w", g.Name, err)
		}
		if next.IsZero() || !again.IsZero() && again.Before(next) {
			next = again
		}
	}
	return next, nil
}

// judge applies the Training's policies. It reports whether it wrote what follows.
func (c *controller) judge(ctx context.Context, t *Training) (over bool, err error) {
	if t.Status.Phase != "" {
		return false, nil
	}
	succeeded, group, failure := t.ends()
	if failure != nil {
		t.fail(group, failure)
		return true, c.write(ctx, t)
	}
	match, err := c.engine.MatchSuccessPolicy(ctx, &jobpolicyv1.MatchSuccessPolicyRequest{
		Policy: t.successPolicy(), Completions: int32(len(t.Spec.Groups)), SucceededIndexes: succeeded,
	})
	if err != nil || match.RuleIndex == nil {
		return false, err
	}
	t.Status.Phase = "Complete"
	return true, c.write(ctx, t)
}

// step asks the engine about a group, and carries the decision out in the contract's
// order. It stops at the first error: the next one begins with what is true then.
func (c *controller) step(ctx context.Context, t *Training, group string, job *batchv1.Job, pods []corev1.Pod) (again time.Time, err error) {
	status, err := wire.JobStatus(&job.Status)
	if err != nil {
		return again, err
	}
	decision, err := c.decide(ctx, job, status, pods, false)
	if err != nil {
		return again, err
	}
	for _, p := range wire.NewPods(job, decision.GetCreate()) {
		if err := c.create(ctx, t, p.From(job), cmp.Or(decision.GetStatus(), status)); err != nil {
			return again, err
		}
	}
	for _, d := range decision.GetDelete() {
		if err := c.delete(ctx, find(pods, d.GetUid()), d.GetReleaseFirst()); err != nil {
			return again, err
		}
	}
	if decision.GetStatus() != nil {
		if t.Status.Groups[group], err = wire.APIStatus(decision.GetStatus()); err != nil {
			return again, err
		}
		if err := c.write(ctx, t); err != nil {
			return again, err
		}
	}
	for _, uid := range decision.GetRelease() {
		if err := c.release(ctx, find(pods, uid)); err != nil {
			return again, err
		}
	}
	for _, event := range decision.GetEvents() {
		log.Println(job.Namespace, job.Name, event.GetReason(), event.GetMessage())
	}
	return answer.Next(decision, time.Now()), nil
}

// decide asks the engine; once more if it has to know which pods are active.
func (c *controller) decide(ctx context.Context, job *batchv1.Job, status *jobpolicyv1.JobStatus, pods []corev1.Pod, active bool) (*jobpolicyv1.DecideJobResponse, error) {
	spec, err := wire.JobSpec(job)
	if err != nil {
		return nil, err
	}
	facts := make([]snapshot.Pod, len(pods))
	for i := range pods {
		pod, err := wire.Pod(&pods[i])
		if err != nil {
			return nil, err
		}
		facts[i] = snapshot.Pod(pod)
	}
	c.asked++
	request := snapshot.Request(spec, status, facts, snapshot.Options{ActivePods: active})
	request.RequestId, request.Now, request.Settings = strconv.Itoa(c.asked), timestamppb.Now(), c.settings
	request.Job = &jobpolicyv1.JobRef{Uid: []byte(string(job.UID) + job.Spec.Template.Labels[labelGroup]), Namespace: job.Namespace, Name: job.Name}
	request.Deferrals = []*jobpolicyv1.Deferral{{Step: jobpolicyv1.Step_STEP_CREATE_PODS, Until: timestamppb.New(c.createAfter[job.UID])}}
	decision, err := c.engine.DecideJob(ctx, request)
	if err != nil {
		return nil, err
	}
	if err := answer.Check(request, decision); err != nil {
		return nil, err
	}
	switch decision.GetDisposition() {
	case jobpolicyv1.Disposition_DISPOSITION_APPLY, jobpolicyv1.Disposition_DISPOSITION_SETTLED:
		return decision, nil
	case jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE:
		if !active {
			return c.decide(ctx, job, status, pods, true)
		}
	}
	return nil, fmt.Errorf("no way to carry out %s", decision.GetDisposition())
}

// find finds a pod by its UID. The engine names only pods that it was told of.
func find(pods []corev1.Pod, uid []byte) *corev1.Pod {
	return &pods[slices.IndexFunc(pods, func(pod corev1.Pod) bool {
		its, err := wire.UIDBytes(pod.UID)
		return err == nil && bytes.Equal(its, uid)
	})]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
