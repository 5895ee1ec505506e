package executor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"jobpolicy.dev/executor/internal/policy"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// testPolicies are an API server's JobPolicies.
func testPolicies(policies ...runtime.Object) *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{policy.Resource: "JobPolicyList"}, policies...)
}

// testPolicy keeps failed Jobs for some seconds.
func testPolicy(generation int64, ttl int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"job": map[string]any{"ttlSecondsAfterFailed": ttl}}}}
	u.SetAPIVersion("jobpolicy.dev/v1alpha1")
	u.SetKind("JobPolicy")
	u.SetNamespace("ns")
	u.SetName("policy")
	u.SetGeneration(generation)
	return u
}

func withPolicy(job *batchv1.Job) {
	job.Annotations = map[string]string{wire.Policy: "policy"}
}

// awaitOptions waits for a request with these options: the time to live (0: no options) and whether there are problems.
func awaitOptions(t *testing.T, d *script, what string, ttl int32, problems bool) *jobpolicyv1.JobSpec {
	t.Helper()
	var spec *jobpolicyv1.JobSpec
	eventually(t, what, func() bool {
		requests := d.Requests()
		if len(requests) == 0 {
			return false
		}
		spec = requests[len(requests)-1].GetSpec()
		return spec.GetOptions().GetTtlSecondsAfterFailed() == ttl && (len(spec.GetOptionProblems()) > 0) == problems
	})
	return spec
}

// A Job is reconciled when its policy changes. While the policy cannot be read the engine is told so, and what the
// last valid options were; another process does not know these.
func TestOptionsFollowThePolicy(t *testing.T) {
	policies, d := testPolicies(testPolicy(1, 1)), &script{}
	resource := policies.Resource(policy.Resource).Namespace("ns")
	cfg := testConfig(newServer(testJob(withPolicy)), d)
	cfg.JobPolicies = policies
	e := start(t, cfg)
	awaitOptions(t, d, "the policy's options", 1, false)
	shown := func(ttl int32, problems int) {
		t.Helper()
		if got := e.Options(testUID(1)); got.From != "JobPolicy policy" || got.Job.GetTtlSecondsAfterFailed() != ttl || len(got.Problems) != problems {
			t.Errorf("shown are %v, want %d s of JobPolicy policy, and problems: %d", got, ttl, problems)
		}
	}
	shown(1, 0)
	if _, err := resource.Update(t.Context(), testPolicy(2, 2), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitOptions(t, d, "options of the changed policy", 2, false)
	if _, err := resource.Update(t.Context(), testPolicy(3, -1), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if spec := awaitOptions(t, d, "the last valid options", 2, true); !strings.Contains(spec.GetOptionProblems()[0], "spec.job.ttlSecondsAfterFailed: expected") {
		t.Errorf("problems %q, want them to name the field", spec.GetOptionProblems())
	}
	shown(2, 1)
	if got := e.Options("unknown"); got.From != "" || got.Job != nil {
		t.Errorf("shown of a Job that there is not: %v", got)
	}
	if err := resource.Delete(t.Context(), "policy", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the policy is gone", func() bool {
		requests := d.Requests()
		problems := requests[len(requests)-1].GetSpec().GetOptionProblems()
		return len(problems) == 1 && strings.Contains(problems[0], "does not exist")
	})

	restarted := &script{}
	cfg = testConfig(newServer(testJob(withPolicy)), restarted)
	cfg.JobPolicies = testPolicies()
	e = start(t, cfg)
	awaitOptions(t, restarted, "no options after a restart", 0, true)
	if got := e.Options(testUID(1)); got.Job != nil || len(got.Problems) != 1 {
		t.Errorf("shown after a restart: %v, want no options and a problem", got)
	}
}

// Whether a pod has run is told because of a policy's deadline to start, as because of one in an annotation. It
// is known from before the policy was there.
func TestADeadlineToStartByAPolicyKnowsOfPodsThatHaveRun(t *testing.T) {
	starts := testPolicy(1, 1)
	if err := unstructured.SetNestedField(starts.Object, int64(30), "spec", "job", "startDeadlineSeconds"); err != nil {
		t.Fatal(err)
	}
	d, policies := &script{}, testPolicies()
	cfg := testConfig(newServer(testJob(withPolicy), testPod(7, func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	})), d)
	cfg.JobPolicies = policies
	start(t, cfg)
	if awaitOptions(t, d, "a policy that is missing", 0, true); d.Requests()[0].GetPods().GetHasRun() {
		t.Error("a request without a deadline to start says that a pod has run")
	}
	if _, err := policies.Resource(policy.Resource).Namespace("ns").Create(t.Context(), starts, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitOptions(t, d, "the policy's options", 1, false)
	requests := d.Requests()
	if last := requests[len(requests)-1]; last.GetSpec().GetOptions().GetStartDeadlineSeconds() != 30 || !last.GetPods().GetHasRun() {
		t.Errorf("options %v, has run %v; want a deadline to start, and that a pod has run", last.GetSpec().GetOptions(), last.GetPods().GetHasRun())
	}
}

// A policy whose names do not fit the rules of a Job is one that the Job cannot use, as its own or as the default of its
// namespace: the engine is told so, and what the last options were.
func TestThePolicyMustFitTheJob(t *testing.T) {
	misfit := testPolicy(1, 1)
	if err := unstructured.SetNestedStringSlice(misfit.Object, []string{"bad-input"}, "spec", "job", "failureRuleNames"); err != nil {
		t.Fatal(err)
	}
	const want = `names the JobPolicy "policy", which does not fit the Job: spec.job.failureRuleNames: expected as many names`
	byDefault := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: map[string]string{wire.DefaultPolicy: "policy"}}}
	for name, objects := range map[string][]runtime.Object{"its own": {testJob(withPolicy)}, "the default": {testJob(), byDefault}} {
		t.Run(name, func(t *testing.T) {
			policies, d := testPolicies(misfit.DeepCopy()), &script{}
			cfg := testConfig(newServer(objects...), d)
			cfg.JobPolicies = policies
			start(t, cfg)
			if spec := awaitOptions(t, d, "a problem", 0, true); spec.GetOptions() != nil || !strings.Contains(spec.GetOptionProblems()[0], want) {
				t.Errorf("options %v, problems %q, want none and %q", spec.GetOptions(), spec.GetOptionProblems(), want)
			}
			for n, changed := range []*unstructured.Unstructured{testPolicy(0, 2), misfit.DeepCopy()} {
				changed.SetGeneration(int64(n + 2))
				if _, err := policies.Resource(policy.Resource).Namespace("ns").Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				awaitOptions(t, d, "the last options that fit", 2, n == 1)
			}
		})
	}
}

// Nobody is asked more often, and no request is other, because policies are read.
func TestPoliciesChangeNothingForOthers(t *testing.T) {
	policies, d := testPolicies(testPolicy(1, 1)), &script{}
	cfg := testConfig(newServer(testJob()), d)
	cfg.JobPolicies = policies
	e := start(t, cfg)
	d.Await(t, 1)
	for n := range 3 {
		if _, err := policies.Resource(policy.Resource).Namespace("ns").Update(t.Context(), testPolicy(int64(n+2), int64(n)), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// What comes after the changes has been handled: a Job that uses the policy has its options.
	job := testJob(withPolicy, func(j *batchv1.Job) { j.Name, j.UID, j.ResourceVersion = "user", testUID(2), "7" })
	if _, err := cfg.Client.BatchV1().Jobs("ns").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitOptions(t, d, "the policy's options", 2, false)
	of := func(name string) (n int) {
		for _, req := range d.Requests() {
			if req.GetJob().GetName() == name {
				n++
				if req.GetSpec().GetOptions() != nil && name == "job" {
					t.Errorf("the Job has options that it does not ask for: %v", req.GetSpec())
				}
			}
		}
		return n
	}
	if n := of("job"); n != 1 || !slices.Contains(cfg.Client.(*server).Done(), "create jobs") {
		t.Errorf("%d requests about the Job that asks for nothing, want 1", n)
	}
	if err := e.Ready(); err != nil {
		t.Error(err)
	}
}

// What is wrong with the options is told when it changes, also if nothing else is to be done; and once.
func TestProblemsAreToldOnce(t *testing.T) {
	problems := func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		d := &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
		for _, problem := range req.GetSpec().GetOptionProblems() {
			d.Events = append(d.Events, &jobpolicyv1.JobEvent{Type: jobpolicyv1.EventType_EVENT_TYPE_WARNING, Reason: "InvalidPolicy", Message: problem})
		}
		return d, nil
	}
	s, d, policies := newServer(testJob(withPolicy)), &script{Otherwise: problems}, testPolicies()
	cfg := testConfig(s, d)
	cfg.JobPolicies = policies
	e := start(t, cfg)
	if first := s.AwaitEvent(t, "InvalidPolicy"); !strings.Contains(first.Message, "does not exist") {
		t.Errorf("event %q", first.Message)
	}
	asked := len(d.Requests())
	e.watcher.policyChanged(testJob(withPolicy))
	d.Await(t, asked+1)
	if _, err := policies.Resource(policy.Resource).Namespace("ns").Create(t.Context(), testPolicy(1, -1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an event about the invalid policy", func() bool { return len(s.Events(t)) > 1 })
	list, err := s.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range list.Items {
		if event.Count != 1 {
			t.Errorf("event %q was sent %d times", event.Message, event.Count)
		}
	}
	if len(list.Items) != 2 {
		t.Errorf("%d events, want 2", len(list.Items))
	}
}

// A busy Job has the event about its options with each decision. Only the first one is told.
func TestProblemsAreToldOnceWhileTheJobIsBusy(t *testing.T) {
	const decisions = 4
	busy := func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		n := req.GetStatus().GetActive() + 1
		if n > decisions {
			return &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
		}
		return &jobpolicyv1.DecideJobResponse{
			Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY, Status: &jobpolicyv1.JobStatus{Active: n}, RequeueTime: req.GetNow(),
			Events: []*jobpolicyv1.JobEvent{
				{Type: jobpolicyv1.EventType_EVENT_TYPE_NORMAL, Reason: fmt.Sprint("Step", n)},
				{Type: jobpolicyv1.EventType_EVENT_TYPE_WARNING, Reason: reasonInvalidPolicy, Message: req.GetSpec().GetOptionProblems()[0]},
			},
		}, nil
	}
	s := newServer(testJob(withPolicy))
	cfg := testConfig(s, &script{Otherwise: busy})
	cfg.JobPolicies = testPolicies()
	start(t, cfg)
	s.AwaitEvent(t, fmt.Sprint("Step", decisions))
	list, err := s.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int32{}
	for _, event := range list.Items {
		told[event.Reason] += event.Count
	}
	want := map[string]int32{"Step1": 1, reasonInvalidPolicy: 1, "Step2": 1, "Step3": 1, "Step4": 1}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
