package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// An observer watches the Jobs and their pods, each of which has a name of its own in all namespaces, and remembers what a finished Job does not
// show any more.
type observer struct {
	examples []*example
	url      string

	mu   sync.Mutex
	jobs map[string]*history
	pods map[types.UID]*podPast
	said map[string]saying
	// metrics are the highest values of the executor's metrics of watchedSeries.
	metrics map[string]float64
}

// What alerts are made of: pods that a missing ConfigMap hinders, and for how long the Job that makes no progress
// for longest has made none. And how often pods were refused.
const (
	hinderedSeries = `jobpolicy_hindered_pods{reason="CreateContainerConfigError"}`
	stuckSeries    = "jobpolicy_job_without_progress_seconds"
	refusedSeries  = `jobpolicy_refused_writes_total{write="create_pod"}`
)

var watchedSeries = []string{hinderedSeries, stuckSeries, refusedSeries}

// A saying is what the engine last said of a Job.
type saying struct {
	summary string
	// verdict is why the Job ends; its rule is empty until it does.
	verdict verdict
}

// A verdict is the part of an explanation that says how and why a Job ends.
type verdict struct {
	DecidingRule string       `json:"decidingRule"`
	Rules        []ruleAnswer `json:"rules"`
}

// A ruleAnswer is the answer of one rule.
type ruleAnswer struct {
	Rule   string `json:"rule"`
	Detail string `json:"detail"`
}

// observe starts the watches and returns when they are established.
func observe(ctx context.Context, client kubernetes.Interface, executorURL string, examples []*example) (*observer, error) {
	o := newObserver(executorURL, examples)
	factory := informers.NewSharedInformerFactory(client, 0)
	jobs, pods := factory.Batch().V1().Jobs().Informer(), factory.Core().V1().Pods().Informer()
	if _, err := jobs.AddEventHandler(onChange(o.sawJob)); err != nil {
		return nil, err
	}
	if _, err := pods.AddEventHandler(onChange(o.sawPod)); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), jobs.HasSynced, pods.HasSynced) {
		return nil, fmt.Errorf("watch Jobs and pods: %w", context.Cause(ctx))
	}
	return o, nil
}

// onChange tells saw of each change of an object, and whether it still exists.
func onChange[T any](saw func(object T, exists bool)) cache.ResourceEventHandler {
	handle := func(obj any, exists bool) {
		if final, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = final.Obj
		}
		if typed, ok := obj.(T); ok {
			saw(typed, exists)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { handle(obj, true) },
		UpdateFunc: func(_, obj any) { handle(obj, true) },
		DeleteFunc: func(obj any) { handle(obj, false) },
	}
}

// listen asks the executor for the last decision on each Job. If the executor does not know
// a Job any more, the last decision that it returned stays. listen gives up after a second,
// because the scripts wait for it; the next call asks again.
func (o *observer) listen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if metrics, err := o.page(ctx, "/metrics"); err == nil {
		o.sawMetrics(string(metrics))
	}
	page, err := o.page(ctx, "/debug/decisions")
	if err != nil {
		return
	}
	var decisions []struct {
		Name, Reason string
		Verdict      verdict
	}
	if json.Unmarshal(page, &decisions) != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range decisions {
		o.said[d.Name] = saying{d.Reason, d.Verdict}
	}
}

// sawMetrics remembers the highest values of watchedSeries.
func (o *observer) sawMetrics(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range strings.Lines(text) {
		series, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if value, err := strconv.ParseFloat(number, 64); err == nil && slices.Contains(watchedSeries, series) {
			o.metrics[series] = max(o.metrics[series], value)
		}
	}
}

// pageTimeout is how long the executor may take to answer with a page. It is long, because
// a page that cannot be read fails the demo.
const pageTimeout = 30 * time.Second

// page reads a page of the executor.
func (o *observer) page(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.url+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", request.URL, response.Status)
	}
	return io.ReadAll(response.Body)
}

// why says in one line why a Job ended: the rule that decided and the numbers that it
// compared. It is empty if no rule has decided.
func (o *observer) why(job string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	v := o.said[job].verdict
	for _, answer := range v.Rules {
		if answer.Rule == v.DecidingRule {
			return ruleName(answer.Rule) + ": " + answer.Detail
		}
	}
	return ""
}

// ruleName is a rule of the contract as documents spell it: RULE_DEADLINE_PASSED
// is deadlinePassed.
func ruleName(rule string) string {
	words := strings.Split(strings.ToLower(strings.TrimPrefix(rule, "RULE_")), "_")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// jobLogs returns the logs of the pods that a Job controls and that are still
// there.
func jobLogs(ctx context.Context, client kubernetes.Interface, job types.UID) ([]string, error) {
	pods, err := podsOf(ctx, client, job)
	if err != nil {
		return nil, err
	}
	var logs []string
	for i := range pods {
		if pods[i].Status.StartTime == nil {
			logs = append(logs, "") // No node has taken it.
			continue
		}
		log, err := podLog(ctx, client, &pods[i])
		if err != nil {
			return nil, err
		}
		logs = append(logs, log)
	}
	return logs, nil
}

// podsOf lists the pods that a Job controls, by name.
func podsOf(ctx context.Context, client kubernetes.Interface, job types.UID) ([]corev1.Pod, error) {
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		owner := metav1.GetControllerOf(&pod)
		return owner == nil || owner.UID != job
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}

func podLog(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (string, error) {
	stream, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("logs of pod %s: %w", pod.Name, err)
	}
	defer stream.Close()
	log, err := io.ReadAll(stream)
	return string(log), err
}
