package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"jobpolicy.dev/executor/podjob"
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
	objects, pods := dynamic.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config).CoreV1()
	policy := jobpolicyv1grpc.NewPolicyServiceClient(conn)
	settings := &jobpolicyv1.Settings{PodFailureBackoff: durationpb.New(*retryDelay)}
	groups := &podjob.Controller{Ask: jobpolicyv1grpc.Asker(policy), Pods: pods, Settings: settings, Event: logEvent}
	c := &controller{objects.Resource(resource), pods, policy, groups}
	check(podjob.Run(context.Background(), objects, c.reconcile, resource))
}

type controller struct {
	trainings dynamic.NamespaceableResourceInterface
	pods      corev1client.PodsGetter
	policy    jobpolicyv1grpc.PolicyServiceClient
	groups    *podjob.Controller
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
	pods, err := c.pods.Pods("").List(ctx, metav1.ListOptions{LabelSelector: labelAttempt})
	if err != nil {
		return next, err
	}
	owned := podjob.ByOwner(pods.Items, kind)
	for _, object := range trainings.Items {
		t, pods := &Training{}, owned.Take(&object)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, t); err != nil {
			log.Println(object.GetNamespace(), object.GetName(), "cannot be read:", err) // Its pods stay as they are.
			continue
		}
		if t.Status.Groups == nil {
			t.Status.Groups = map[string]batchv1.JobStatus{}
		}
		again, err := c.advance(ctx, t, pods)
		if err != nil {
			log.Println(t.Namespace, t.Name, err)
			again = time.Now().Add(time.Second)
		}
		next = answer.Earlier(next, again)
	}
	for _, pods := range owned { // Their Training is gone.
		err = cmp.Or(c.groups.Remove(ctx, pods), err)
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
		return next, c.groups.Remove(ctx, stale)
	}
	if over, err := c.judge(ctx, t); err != nil || over {
		return next, err
	}
	for i, g := range t.Spec.Groups {
		again, err := c.groups.Step(ctx, podjob.Group{
			Owner: *metav1.NewControllerRef(t, kind), Job: t.job(i), Pods: groups[g.Name],
			WriteStatus: func(ctx context.Context, status batchv1.JobStatus) error {
				t.Status.Groups[g.Name] = status
				return c.write(ctx, t)
			},
		})
		if err != nil {
			return next, fmt.Errorf("group %s: %w", g.Name, err)
		}
		next = answer.Earlier(next, again)
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
	answers, err := c.policy.MatchSuccessPolicy(ctx, &jobpolicyv1.MatchSuccessPolicyRequest{Jobs: []*jobpolicyv1.SuccessPolicyProgress{{
		Policy: t.successPolicy(), Completions: int32(len(t.Spec.Groups)), SucceededIndexes: answer.Indexes(succeeded...),
	}}})
	if err != nil || answers.GetMatches()[0].RuleIndex == nil {
		return false, err
	}
	t.Status.Phase = "Complete"
	return true, c.write(ctx, t)
}

// write writes the status, unless somebody else has written the Training meanwhile.
func (c *controller) write(ctx context.Context, t *Training) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
	if err != nil {
		return err
	}
	written, err := c.trainings.Namespace(t.Namespace).UpdateStatus(ctx, &unstructured.Unstructured{Object: object}, metav1.UpdateOptions{})
	if err == nil {
		t.ResourceVersion = written.GetResourceVersion()
	}
	return err
}

func logEvent(group *batchv1.Job, event *jobpolicyv1.JobEvent) {
	log.Println(group.Namespace, group.Name, event.GetReason(), event.GetMessage())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
