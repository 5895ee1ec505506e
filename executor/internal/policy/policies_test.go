package policy

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/options"
)

// A world is Policies over fake API servers, and the Jobs and CronJobs that follow them.
type world struct {
	t        *testing.T
	policies *Policies
	dynamic  *dynamicfake.FakeDynamicClient
	client   *fake.Clientset

	mu   sync.Mutex
	told []string
}

const manager = "jobpolicy.dev/executor"

// newWorld runs inside of a bubble. The objects are namespaces, Jobs and CronJobs.
func newWorld(t *testing.T, change func(*world, *Config), objects ...runtime.Object) *world {
	t.Helper()
	w := &world{
		t: t, client: fake.NewClientset(objects...),
		dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{Resource: "JobPolicyList"}),
	}
	cfg := Config{Client: w.dynamic, Kubernetes: w.client, Scope: controller.Scope{ManagedBy: manager, ReplaceBuiltin: true}, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(w, &cfg)
	}
	var err error
	if w.policies, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	jobs := controller.NewInformers(cfg.Namespaces, func(namespace string) cache.SharedIndexInformer {
		return batchinformers.NewJobInformer(w.client, namespace, 0, cache.Indexers{})
	})
	crons := controller.NewInformers(cfg.Namespaces, func(namespace string) cache.SharedIndexInformer {
		return batchinformers.NewCronJobInformer(w.client, namespace, 0, cache.Indexers{})
	})
	for _, set := range []*controller.Informers{jobs, jobs, crons} { // Two controllers follow Jobs.
		if err := w.policies.Follow(set, w.tell); err != nil {
			t.Fatal(err)
		}
	}
	go jobs.Run(t.Context())
	go crons.Run(t.Context())
	synctest.Wait()
	go w.policies.Run(t.Context())
	synctest.Wait()
	return w
}

func (w *world) tell(obj any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, obj.(metav1.Object).GetName())
}

// wantTold compares whose options may have changed since the last call.
func (w *world) wantTold(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.told)
	if diff := cmp.Diff(want, slices.Compact(w.told)); diff != "" {
		w.t.Errorf("told (-want +got):\n%s", diff)
	}
	w.told = nil
}

func (w *world) put(policy *unstructured.Unstructured) {
	w.t.Helper()
	policies := w.dynamic.Resource(Resource).Namespace(policy.GetNamespace())
	_, err := policies.Update(w.t.Context(), policy, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = policies.Create(w.t.Context(), policy, metav1.CreateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func testPolicy(name string, generation int64, job map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"job": job}}}
	u.SetAPIVersion("jobpolicy.dev/v1alpha1")
	u.SetKind("JobPolicy")
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetUID("uid")
	u.SetGeneration(generation)
	return u
}

func ttl(seconds int64) map[string]any { return map[string]any{"ttlSecondsAfterFailed": seconds} }

func testJob(name, policy string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	if policy != "" {
		job.Annotations = map[string]string{wire.Policy: policy}
	}
	return job
}

func testNamespace(policy string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: map[string]string{wire.DefaultPolicy: policy, "other": "x"}}}
}

// options is what the annotation's value makes of the options: the time to live of a failed Job, or the problems.
func (w *world) options(annotation string) string {
	annotations := map[string]string{}
	if annotation != "" {
		annotations[wire.Policy] = annotation
	}
	spec, problems := w.policies.Of("ns", annotations)
	switch {
	case len(problems) > 0:
		return strings.Join(problems, "\n")
	case spec == nil:
		return "none"
	}
	return fmt.Sprint(spec.GetJob().GetTtlSecondsAfterFailed())
}

func TestOptionsOfAnObject(t *testing.T) {
	cases := map[string]struct {
		annotation, namespace string
		want                  string
	}{
		"nobody asks":                  {want: "none"},
		"named":                        {annotation: "good", want: "1"},
		"default of the namespace":     {namespace: "good", want: "1"},
		"named, and another default":   {annotation: "other", namespace: "good", want: "2"},
		"in itself, and a default":     {annotation: `{"job": {"ttlSecondsAfterFailed": 3}}`, namespace: "good", want: "3"},
		"missing":                      {annotation: "gone", want: `annotation jobpolicy.dev/policy names the JobPolicy "gone", which does not exist in namespace "ns"`},
		"missing default":              {namespace: "gone", want: `annotation jobpolicy.dev/default-policy of namespace "ns" names the JobPolicy "gone", which does not exist in namespace "ns"`},
		"invalid":                      {annotation: "bad", want: "annotation jobpolicy.dev/policy names the JobPolicy \"bad\", which is invalid: spec.job.ttlSecondsAfterFailed: expected a whole number from 0 to 2147483647, found -1"},
		"no default":                   {annotation: "{}", namespace: "good", want: "0"},
		"no name":                      {annotation: "No Name", want: `annotation jobpolicy.dev/policy names the JobPolicy "No Name", which is no name of one: expected the name of a JobPolicy, or options in braces, as {job: {…}}`},
		"default with spaces":          {namespace: " good ", want: "1"},
		"no name of a default":         {namespace: "No Name", want: `annotation jobpolicy.dev/default-policy of namespace "ns" names the JobPolicy "No Name", which is no name of one: expected the name of a JobPolicy`},
		"an empty name is not no name": {annotation: " ", namespace: "good", want: `annotation jobpolicy.dev/policy names the JobPolicy " ", which is no name of one: expected the name of a JobPolicy, or options in braces, as {job: {…}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, testNamespace(tc.namespace))
				w.put(testPolicy("good", 1, ttl(1)))
				w.put(testPolicy("other", 1, ttl(2)))
				w.put(testPolicy("bad", 1, ttl(-1)))
				if got := w.options(tc.annotation); got != tc.want {
					t.Errorf("got\n%s\nwant\n%s", got, tc.want)
				}
			})
		})
	}
}

// Where the options of an object are is told to people, also if there is no such policy.
func TestWhereOptionsAre(t *testing.T) {
	cases := map[string]struct{ annotation, namespace, want string }{
		"nowhere":                  {},
		"named":                    {"one", "", "JobPolicy one"},
		"named, and a default":     {"one", "other", "JobPolicy one"},
		"default of the namespace": {"", "other", "JobPolicy other, the default of namespace ns"},
		"in itself, and a default": {"{}", "other", "the annotation jobpolicy.dev/policy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, testNamespace(tc.namespace))
				annotations := map[string]string{}
				if tc.annotation != "" {
					annotations[wire.Policy] = tc.annotation
				}
				if got := w.policies.Origin("ns", annotations); got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// Names of failure rules that are not as many as the Job has rules, wherever they are from, are a problem of this Job.
func TestOptionsMustFitTheJob(t *testing.T) {
	const misfit = "job.failureRuleNames: expected as many names as spec.podFailurePolicy has rules (1), or none, found 2"
	cases := map[string]struct{ annotation, namespace, want string }{
		"named":                    {annotation: "two", want: `annotation jobpolicy.dev/policy names the JobPolicy "two", which does not fit the Job: spec.` + misfit},
		"default of the namespace": {namespace: "two", want: `annotation jobpolicy.dev/default-policy of namespace "ns" names the JobPolicy "two", which does not fit the Job: spec.` + misfit},
		"in itself":                {annotation: "{job: {failureRuleNames: [a, b]}}", want: "annotation jobpolicy.dev/policy: " + misfit},
		"fits":                     {annotation: "one"},
		"nobody asks":              {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, testNamespace(tc.namespace))
				w.put(testPolicy("one", 1, map[string]any{"failureRuleNames": []any{"a"}}))
				w.put(testPolicy("two", 1, map[string]any{"failureRuleNames": []any{"a", "b"}}))
				job := testJob("job", tc.annotation)
				job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: make([]batchv1.PodFailurePolicyRule, 1)}
				got, problems := w.policies.OfJob(job)
				if strings.Join(problems, "\n") != tc.want || (got != nil) != (tc.annotation == "one") {
					t.Errorf("options %v, problems %q, want %q", got, problems, tc.want)
				}
			})
		})
	}
}

// A change tells those that use the policy, and nobody else.
func TestChangesTellTheUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cron := &batchv1.CronJob{ObjectMeta: testJob("cron", "a").ObjectMeta}
		elsewhere := testJob("elsewhere", "a")
		elsewhere.Namespace = "other"
		w := newWorld(t, nil, testNamespace(""), testJob("one", "a"), testJob("two", "b"), testJob("none", ""), testJob("inline", "{}"), cron, elsewhere)
		w.wantTold()
		w.put(testPolicy("a", 1, ttl(1)))
		w.wantTold("cron", "one")
		w.put(testPolicy("a", 2, ttl(2)))
		w.wantTold("cron", "one")
		if got := w.options("a"); got != "2" {
			t.Errorf("after the change the options are %s", got)
		}
		written := testPolicy("a", 2, ttl(2))
		written.Object["status"] = map[string]any{"jobs": int64(3)}
		w.put(written)
		w.wantTold() // Only the status has changed.

		for _, change := range []struct {
			name string
			told []string
		}{{"a ", []string{"none"}}, {"a", nil}} { // Spaces around the name make no other one.
			if _, err := w.client.CoreV1().Namespaces().Update(t.Context(), testNamespace(change.name), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			w.wantTold(change.told...)
		}
		w.put(testPolicy("a", 3, ttl(3)))
		w.wantTold("cron", "none", "one")
		if err := w.dynamic.Resource(Resource).Namespace("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.wantTold("cron", "none", "one")
	})
}

// JobPolicies that are not served keep nobody waiting but those who name one, and are found once they are served.
func TestPoliciesThatAreServedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		served := false
		w := newWorld(t, func(w *world, _ *Config) {
			w.dynamic.PrependReactor("list", "jobpolicies", func(clienttesting.Action) (bool, runtime.Object, error) {
				mu.Lock()
				defer mu.Unlock()
				return !served, nil, apierrors.NewNotFound(Resource.GroupResource(), "")
			})
		}, testNamespace(""), testJob("one", "a"), testJob("waits", "gone"), testJob("none", ""))
		time.Sleep(time.Minute)
		if !w.policies.Settled() {
			t.Error("not settled, although JobPolicies are not served")
		}
		if got, want := w.options("a"), `annotation jobpolicy.dev/policy names the JobPolicy "a", which the API server does not serve (is its CustomResourceDefinition installed?)`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := w.options(""); got != "none" {
			t.Errorf("who asks for nothing gets %s", got)
		}
		w.put(testPolicy("a", 1, ttl(1)))
		w.wantTold()
		mu.Lock()
		served = true
		mu.Unlock()
		time.Sleep(2 * time.Minute)
		w.wantTold("one", "waits")
		if got := w.options("a"); got != "1" {
			t.Errorf("once they are served, the options are %s", got)
		}
	})
}

// While the API server does not answer, nobody may conclude that a policy does not exist.
func TestNotSettledWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(w *world, _ *Config) {
			w.dynamic.PrependReactor("list", "jobpolicies", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewServiceUnavailable("starting")
			})
		})
		time.Sleep(time.Minute)
		if w.policies.Settled() {
			t.Error("settled without an answer of the API server")
		}
	})
}

// With namespaces of its own, the executor reads policies there, and no namespace's annotations.
func TestSomeNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ *world, cfg *Config) { cfg.Namespaces = []string{"ns"} }, testNamespace("a"), testJob("one", "a"))
		w.put(testPolicy("a", 1, ttl(1)))
		w.wantTold("one")
		if named, byDefault := w.options("a"), w.options(""); named != "1" || byDefault != "none" {
			t.Errorf("named %s, by default %s; want 1, none", named, byDefault)
		}
		for _, action := range w.client.Actions() {
			if action.GetResource().Resource == "namespaces" {
				t.Errorf("it asks for namespaces: %v", action)
			}
		}
	})
}

// That the policies of one namespace may not be read says nothing about those of another.
func TestUnreadableInOneNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		forbidden := apierrors.NewForbidden(Resource.GroupResource(), "", nil)
		lists := map[string]error{"ns": apierrors.NewServiceUnavailable("busy"), "other": forbidden}
		elsewhere := testJob("elsewhere", "a")
		elsewhere.Namespace = "other"
		w := newWorld(t, func(w *world, cfg *Config) {
			cfg.Namespaces = []string{"ns", "other"}
			w.dynamic.PrependReactor("list", "jobpolicies", func(action clienttesting.Action) (bool, runtime.Object, error) {
				mu.Lock()
				defer mu.Unlock()
				err := lists[action.GetNamespace()]
				return err != nil, nil, err
			})
		}, testJob("one", "a"), testJob("waits", "gone"), elsewhere)
		w.put(testPolicy("a", 1, ttl(1)))
		answer := func(err error) {
			mu.Lock()
			lists["ns"] = err
			mu.Unlock()
			time.Sleep(2 * time.Minute)
		}
		time.Sleep(time.Minute)
		if got := w.options("a"); w.policies.Settled() || strings.Contains(got, "may not read") {
			t.Errorf("before the policies are listed: settled %t, options %s", w.policies.Settled(), got)
		}
		answer(forbidden)
		if got := w.options("a"); !w.policies.Settled() || !strings.Contains(got, "may not read") {
			t.Errorf("without the right to list them: settled %t, options %s", w.policies.Settled(), got)
		}
		w.wantTold()
		answer(nil)
		w.wantTold("one", "waits")
		if got := w.options("a"); !w.policies.Settled() || got != "1" {
			t.Errorf("once they are listed: settled %t, options %s", w.policies.Settled(), got)
		}
		if _, problems := w.policies.Of("other", elsewhere.Annotations); len(problems) != 1 || !strings.Contains(problems[0], "may not read") {
			t.Errorf("problems where the right is still missing: %q", problems)
		}
	})
}

// The number of a group of the cluster is the operator's, wherever the options stand; that of a group of a namespace is not.
func TestNumbersOfGroupsOfTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ *world, cfg *Config) { cfg.ClusterGroups = options.ClusterGroups{"reports": 3} }, testNamespace(""))
		for _, group := range []string{"reports", "backups"} {
			policy := testPolicy(group, 1, nil)
			policy.Object["spec"] = map[string]any{"cronJob": map[string]any{"group": map[string]any{"name": group, "maxActiveRuns": int64(1)}}}
			w.put(policy)
		}
		for annotation, want := range map[string]int32{
			"reports": 3,
			"backups": 1,
			"{cronJob: {group: {name: reports, maxActiveRuns: 7}}}": 3,
			"{cronJob: {group: {name: backups, maxActiveRuns: 7}}}": 7,
			"{cronJob: {maxMissedRuns: 2}}":                         0,
		} {
			for range 2 { // The second time the annotation is known.
				spec, problems := w.policies.Of("ns", map[string]string{wire.Policy: annotation})
				if got := spec.GetCronJob().GetGroup().GetMaxActiveRuns(); got != want || len(problems) > 0 {
					t.Errorf("%s: %d runs, want %d; problems %q", annotation, got, want, problems)
				}
			}
		}
		var none *Policies
		if !w.policies.OfCluster("reports") || w.policies.OfCluster("backups") || none.OfCluster("reports") {
			t.Error("want that reports is a group of the cluster, and no other one, and none without policies")
		}
	})
}

// An operator's limits hold for policies and for what objects hold themselves.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ *world, cfg *Config) {
			cfg.Bounds = options.Bounds{}
			if err := cfg.Bounds.Set("job.ttlSecondsAfterFailed=60:"); err != nil {
				t.Fatal(err)
			}
		}, testNamespace(""))
		w.put(testPolicy("short", 1, ttl(1)))
		w.put(testPolicy("long", 1, ttl(60)))
		const problem = "job.ttlSecondsAfterFailed: expected a whole number of at least 60 (a limit of this cluster), found 1"
		for annotation, want := range map[string]string{
			"short":                               `annotation jobpolicy.dev/policy names the JobPolicy "short", which is invalid: spec.` + problem,
			"long":                                "60",
			"{job: {ttlSecondsAfterFailed: 1}}":   "annotation jobpolicy.dev/policy: " + problem,
			"{job: {ttlSecondsAfterFailed: 100}}": "100",
		} {
			if got := w.options(annotation); got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", annotation, got, want)
			}
		}
	})
}

// The operator's limits and groups hold for the last valid options of an annotation, as for those in the annotation Policy.
func TestTheLastValidOptionsHaveLimits(t *testing.T) {
	bounds, groups := options.Bounds{}, options.ClusterGroups{}
	if err := errors.Join(bounds.Set("job.ttlSecondsAfterFailed=5:"), bounds.Set("cronJob.staggerSeconds=:60"), bounds.Set("cronJob.group.maxActiveRuns=3:"), groups.Set("etl=2")); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		last string
		job  string // The time to live of a failed Job.
		cron string // How many runs of the group may be active.
	}{
		"within":             {last: `{"job":{"ttlSecondsAfterFailed":5},"cronJob":{"group":{"name":"etl","maxActiveRuns":9}}}`, job: "5", cron: "2"},
		"beyond a limit":     {last: `{"job":{"ttlSecondsAfterFailed":4}}`, job: "none", cron: "none"},
		"of CronJobs, too":   {last: `{"cronJob":{"staggerSeconds":61}}`, job: "none", cron: "none"},
		"unreadable":         {last: `{"job":{"ttl":5}}`, job: "none", cron: "none"},
		"none":               {job: "none", cron: "none"},
		"as they were kept":  {last: `{"cronJob":{"group":{"name":"etl","maxActiveRuns":2}}}`, job: "0", cron: "2"},
		"too few runs":       {last: `{"cronJob":{"group":{"name":"own","maxActiveRuns":2}}}`, job: "none", cron: "none"},
		"a group of its own": {last: `{"cronJob":{"group":{"name":"own","maxActiveRuns":9}}}`, job: "0", cron: "9"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(_ *world, cfg *Config) { cfg.Bounds, cfg.ClusterGroups = bounds, groups })
				job, cron := testJob("job", "gone"), &batchv1.CronJob{}
				if tc.last != "" {
					job.Annotations[wire.LastValidPolicy] = tc.last
				}
				cron.Annotations = job.Annotations
				ttl, runs := "none", "none"
				if o := w.policies.LastOfJob(job); o != nil {
					ttl = fmt.Sprint(o.GetTtlSecondsAfterFailed())
				}
				if o := w.policies.LastOfCronJob(cron); o != nil {
					runs = fmt.Sprint(o.GetGroup().GetMaxActiveRuns())
				}
				if ttl != tc.job || runs != tc.cron {
					t.Errorf("options of the Job %s, of the CronJob %s; want %s and %s", ttl, runs, tc.job, tc.cron)
				}
			})
		})
	}
}
