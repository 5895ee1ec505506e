package executor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// altering lets admission change each new pod as long as change says true. It returns how many were
// created, and how many existed at once at most.
func (s *server) altering(change func(*corev1.Pod) bool) (created, most *atomic.Int32) {
	created, most = new(atomic.Int32), new(atomic.Int32)
	s.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if change(action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)) {
			created.Add(1)
			most.Store(max(most.Load(), int32(len(s.podNames())+1)))
		}
		return false, nil, nil
	})
	return created, most
}

// newSwitch returns a switch that is on.
func newSwitch() *atomic.Bool {
	on := &atomic.Bool{}
	on.Store(true)
	return on
}

func (s *server) podNames() (names []string) {
	list, err := s.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod"), "ns")
	must(err)
	must(meta.EachListItem(list, func(o runtime.Object) error {
		names = append(names, o.(*corev1.Pod).Name)
		return nil
	}))
	return names
}

// wantingOne is an engine for a Job that wants one pod.
func wantingOne(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	switch until := deferredUntil(req, jobpolicyv1.Step_STEP_CREATE_PODS); {
	case req.GetPods().GetActive()+req.GetInFlight().GetCreates() > 0:
		return &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
	case later(until, req.GetNow()):
		return &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED, RequeueTime: until}, nil
	}
	create := &jobpolicyv1.CreatePods{Count: 1}
	if req.GetSpec().GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED {
		create.Indexes = &jobpolicyv1.IndexSet{Ranges: []*jobpolicyv1.IndexRange{{First: 3, Last: 3}}}
	}
	return &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY, Create: create}, nil
}

// failedCreates are the texts of the events FailedCreate, each once.
func failedCreates(t *testing.T, s *server) (texts []string) {
	list, err := s.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
	must(err)
	for _, ev := range list.Items {
		if ev.Reason == "FailedCreate" && ev.Type == corev1.EventTypeWarning {
			texts = append(texts, ev.Message)
		}
	}
	return texts
}

func limitedByIndex(job *batchv1.Job) {
	job.Spec.CompletionMode, job.Spec.Completions = new(batchv1.IndexedCompletion), new(int32(5))
	job.Spec.BackoffLimitPerIndex = new(int32(1))
}

// Admission changes something by which a pod is known as the Job's. The creation backs off like one
// that is refused, no pod stays, and the event says what was changed. The Job gets its pod when
// admission changes pods no more.
func TestAPodThatAdmissionChangesIsRefused(t *testing.T) {
	other := func(p *corev1.Pod) { p.OwnerReferences[0].UID = testUID(99) }
	for name, tc := range map[string]struct {
		change      func(*corev1.Pod)
		want, field string
	}{
		"another value of a label of the selector": {
			func(p *corev1.Pod) { p.Labels["job"] = "mesh" }, `metadata.labels[job] is "mesh", want "1"`, "labels",
		},
		"no labels": {func(p *corev1.Pod) { p.Labels = nil }, `metadata.labels[job] is missing, want "1"`, "labels"},
		"no owner":  {func(p *corev1.Pod) { p.OwnerReferences = nil }, `metadata.ownerReferences has no controller, want Job job`, "ownerReferences"},
		"an owner that is no controller": {
			func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }, `metadata.ownerReferences has no controller, want Job job`, "ownerReferences",
		},
		"another controller": {
			other, `metadata.ownerReferences names the controller Job job (UID 00000000-0000-0000-0000-000000000063), want Job job (UID 00000000-0000-0000-0000-000000000001)`, "ownerReferences",
		},
		"no tracking finalizer": {func(p *corev1.Pod) { p.Finalizers = nil }, `metadata.finalizers lacks batch.kubernetes.io/job-tracking`, "finalizers"},
		"another index": {
			func(p *corev1.Pod) { p.Annotations[batchv1.JobCompletionIndexAnnotation] = "4" },
			`metadata.annotations[batch.kubernetes.io/job-completion-index] is "4", want "3"`, "annotations",
		},
		"no count of failures": {
			func(p *corev1.Pod) { delete(p.Annotations, batchv1.JobIndexFailureCountAnnotation) },
			`metadata.annotations[batch.kubernetes.io/job-index-failure-count] is missing, want "0"`, "annotations",
		},
		"several": {
			func(p *corev1.Pod) { other(p); p.Finalizers = []string{"example.com/f"} },
			`metadata.ownerReferences names the controller Job job (UID 00000000-0000-0000-0000-000000000063), want Job job (UID 00000000-0000-0000-0000-000000000001); metadata.finalizers lacks batch.kubernetes.io/job-tracking`, "ownerReferences",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, changing := newServer(testJob(limitedByIndex)), newSwitch()
			created, most := server.altering(func(pod *corev1.Pod) bool {
				if changing.Load() {
					tc.change(pod)
				}
				return changing.Load()
			})
			cfg := testConfig(server, &script{Otherwise: wantingOne})
			cfg.APIBackoff, cfg.MaxAPIBackoff, cfg.Registerer = time.Second, time.Minute, prometheus.NewRegistry()
			inBubble(t, cfg, nil, func(t *testing.T, e *Executor) {
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if created.Load() != 7 || most.Load() != 1 {
					t.Errorf("%d pods were created, %d at once; want 7, each after a delay that doubles, 1 at once", created.Load(), most.Load())
				}
				if left := server.podNames(); len(left) > 0 {
					t.Errorf("pods %v are left", left)
				}
				if diff := cmp.Diff([]string{"Error creating: admission changed the new pod: " + tc.want}, failedCreates(t, server)); diff != "" {
					t.Errorf("events FailedCreate (-want +got):\n%s", diff)
				}
				if o, _, _ := e.Job(testUID(1), 0); len(o.Refusals) != 1 || !strings.Contains(o.Refusals[0].Why, tc.want) {
					t.Errorf("the refusals are %v, want one with %q", o.Refusals, tc.want)
				}
				counted := samples(t, cfg.Registerer.(*prometheus.Registry), "jobpolicy_altered_objects_total")
				if n := counted["{field="+tc.field+" kind=pod}"]; n != 7 {
					t.Errorf("counted %v, want 7 of %s", counted, tc.field)
				}
				changing.Store(false)
				time.Sleep(time.Minute)
				synctest.Wait()
				if o, pods, _ := e.Job(testUID(1), 9); pods.Known != 1 || len(o.Refusals) > 0 {
					t.Errorf("afterwards the Job has %d pods and the refusals %v, want 1 and none", pods.Known, o.Refusals)
				}
			})
		})
	}
}

// The API server also refuses to delete the pod. There is never a second one, and it goes when the
// API server permits it.
func TestNoPodIsCreatedBeforeTheLastAlteredOneIsDeleted(t *testing.T) {
	for _, refused := range []string{"delete pods", "patch pods"} {
		server, changing := newServer(testJob()), newSwitch()
		created, _ := server.altering(func(pod *corev1.Pod) bool {
			if changing.Load() {
				pod.Labels = nil
			}
			return changing.Load()
		})
		server.Failures[refused] = func(int) error {
			if changing.Load() {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("policy says no"))
			}
			return nil
		}
		cfg := testConfig(server, &script{Otherwise: wantingOne})
		cfg.APIBackoff, cfg.MaxAPIBackoff = time.Second, time.Minute
		inBubble(t, cfg, nil, func(t *testing.T, e *Executor) {
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			o, pods, _ := e.Job(testUID(1), 9)
			if created.Load() != 1 || pods.Known != 0 || !strings.Contains(fmt.Sprint(o.Refusals), "policy says no") {
				t.Errorf("%s: %d pods were created, %d count, the refusals are %v; want 1, 0, and the policy's", refused, created.Load(), pods.Known, o.Refusals)
			}
			if n := server.Tries(refused); n < 10 || n > 20 {
				t.Errorf("%s was tried %d times, want 10 to 20", refused, n)
			}
			changing.Store(false)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if _, pods, _ := e.Job(testUID(1), 9); pods.Known != 1 || len(server.podNames()) != 1 {
				t.Errorf("%s: afterwards the Job has %d pods of %v, want 1", refused, pods.Known, server.podNames())
			}
		})
	}
}

// Somebody takes each pod from the Job before the watch shows it, so that no answer tells of it. The
// Job stands still for an hour, and says so once. A pod that is seen ends that.
func TestAJobWhosePodsAreNeverSeenStandsStill(t *testing.T) {
	server, changing := newServer(testJob()), newSwitch()
	var created atomic.Int32
	server.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !changing.Load() {
			return false, nil, nil
		}
		server.Lock()
		defer server.Unlock()
		created.Add(1)
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		server.Stamp(pod)
		taken := pod.DeepCopy()
		taken.Labels, taken.OwnerReferences, taken.Finalizers = nil, nil, nil
		must(server.Server.Tracker().Add(taken))
		return true, pod, nil
	})
	cfg := testConfig(server, &script{Otherwise: wantingOne})
	cfg.MaxUnseenPods, cfg.Registerer = 3, prometheus.NewRegistry()
	lists := server.Count("list", "pods")
	inBubble(t, cfg, nil, func(t *testing.T, e *Executor) {
		for hour, want := range []int32{3, 6} {
			time.Sleep(50 * time.Minute)
			synctest.Wait()
			o, _, _ := e.Job(testUID(1), 0)
			if created.Load() != want || !strings.HasPrefix(o.Standstill.Why, "3 pods were created for the Job, and none of them was seen as its own; no pod is created until 2000-01-01T0") {
				t.Errorf("hour %d: %d pods were created, and the standstill is %q; want %d", hour, created.Load(), o.Standstill.Why, want)
			}
			time.Sleep(10*time.Minute + 30*time.Second)
			synctest.Wait()
		}
		told := slices.DeleteFunc(server.Events(t), func(reason string) bool { return reason != "RunawayCreation" })
		if counted := samples(t, cfg.Registerer.(*prometheus.Registry), "jobpolicy_runaway_creations_total"); len(told) != 2 || counted["{}"] != 2 || lists() != 2 {
			t.Errorf("events %v, counted %v, %d lists; want one of each for each standstill", told, counted, lists())
		}
		changing.Store(false)
		time.Sleep(time.Hour)
		synctest.Wait()
		if o, pods, _ := e.Job(testUID(1), 9); pods.Known != 1 || o.Standstill.Why != "" {
			t.Errorf("afterwards the Job has %d pods and the standstill %q, want 1 and none", pods.Known, o.Standstill.Why)
		}
	})
}

// The watch shows no pods for long. The list shows them, so the Job does not stand still.
func TestAJobWhosePodsAreListedDoesNotStandStill(t *testing.T) {
	server := newServer(testJob())
	quiet := &script{Otherwise: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		if missing := 20 - req.GetPods().GetActive(); missing > 0 && !later(deferredUntil(req, jobpolicyv1.Step_STEP_CREATE_PODS), req.GetNow()) {
			return &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY, Create: &jobpolicyv1.CreatePods{Count: missing}}, nil
		}
		return &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
	}}
	server.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) { return true, watch.NewFake(), nil })
	cfg := testConfig(server, quiet)
	cfg.MaxUnseenPods = 3
	inBubble(t, cfg, nil, func(t *testing.T, e *Executor) {
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, pods, _ := e.Job(testUID(1), 99); pods.Known != 20 {
			t.Errorf("the Job has %d pods, want 20", pods.Known)
		}
		if slices.Contains(server.Events(t), "RunawayCreation") {
			t.Error("an event says that the Job stands still")
		}
	})
}

// The built-in controller makes no pod from a template without labels.
func TestAJobWhoseTemplateHasNoLabelsGetsItsPods(t *testing.T) {
	s := newServer(testJob(func(job *batchv1.Job) {
		job.Spec.ManualSelector, job.Spec.Selector, job.Spec.Template.Labels = new(true), &metav1.LabelSelector{}, nil
	}))
	inBubble(t, testConfig(s, &script{Otherwise: wantingOne}), nil, func(t *testing.T, _ *Executor) {
		time.Sleep(time.Minute)
		pods, err := s.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(pods.Items) != 1 || len(pods.Items[0].Labels) > 0 {
			t.Errorf("pods %v (%v), want one without labels", pods.Items, err)
		}
	})
}
