package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/objects"
)

func TestPodsDieGracefully(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, client kubernetes.Interface) {
		pods := client.CoreV1().Pods("default")
		create(t, client, "unscheduled")
		scheduled := newPod("scheduled")
		scheduled.Spec.NodeName = "node"
		objects.Create(t, pods, scheduled)
		for _, name := range []string{"unscheduled", "scheduled"} {
			must.Succeed(t, pods.Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
		if _, there := s.Get("pods", key("unscheduled")); there {
			t.Error("a pod without a node waits for a kubelet")
		}
		pod, there := s.Get("pods", key("scheduled"))
		if !there || pod.(*corev1.Pod).DeletionTimestamp == nil || *pod.(*corev1.Pod).DeletionGracePeriodSeconds != 30 {
			t.Errorf("a pod on a node does not wait for its kubelet: %+v", pod)
		}
		if !s.Delete("kubelet", "pods", key("scheduled"), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}) {
			t.Error("the pod was gone before its kubelet deleted it")
		}
		if _, there := s.Get("pods", key("scheduled")); there {
			t.Error("the kubelet's deletion is not the last")
		}
	})
}

// family makes a Job and a pod of it.
func family(t *testing.T, client kubernetes.Interface) *batchv1.Job {
	t.Helper()
	job := objects.Create(t, client.BatchV1().Jobs("default"), newJob("job"))
	pod := newPod("pod")
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
	objects.Create(t, client.CoreV1().Pods("default"), pod)
	return job
}

func collectAll(s *Server) {
	for s.CollectGarbage() {
	}
}

func TestGarbage(t *testing.T) {
	cases := map[metav1.DeletionPropagation]struct{ job, dying, owned bool }{
		metav1.DeletePropagationBackground: {job: false, dying: true, owned: true},
		metav1.DeletePropagationForeground: {job: true, dying: true, owned: true},
		metav1.DeletePropagationOrphan:     {job: false, dying: false, owned: false},
	}
	for policy, want := range cases {
		t.Run(string(policy), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *Server, client kubernetes.Interface) {
				family(t, client)
				options := metav1.DeleteOptions{PropagationPolicy: &policy}
				must.Succeed(t, client.BatchV1().Jobs("default").Delete(t.Context(), "job", options))
				collectAll(s)
				_, job := s.Get("jobs", key("job"))
				pod, _ := s.Get("pods", key("pod"))
				m, err := meta.Accessor(pod)
				must.Succeed(t, err)
				if job != want.job || (m.GetDeletionTimestamp() != nil) != want.dying || (len(m.GetOwnerReferences()) > 0) != want.owned {
					t.Errorf("the Job is there: %t; its pod: %+v", job, m)
				}
				s.Update("controller", "pods", "", key("pod"), func(obj runtime.Object) { obj.(*corev1.Pod).Finalizers = nil })
				collectAll(s)
				_, job = s.Get("jobs", key("job"))
				if _, pod := s.Get("pods", key("pod")); job || pod != !want.dying {
					t.Errorf("in the end the Job is there: %t, its pod: %t", job, pod)
				}
			})
		})
	}
}

// An object whose owner the collector removes in one pass is not deleted in the same pass
// because it has no owner.
func TestOrphansAreKept(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, client kubernetes.Interface) {
		job := family(t, client)
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config"}} // Its table comes after that of the Jobs.
		config.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
		objects.Create(t, client.CoreV1().ConfigMaps("default"), config)
		policy := metav1.DeletePropagationOrphan
		must.Succeed(t, client.BatchV1().Jobs("default").Delete(t.Context(), "job", metav1.DeleteOptions{PropagationPolicy: &policy}))
		collectAll(s)
		if _, there := s.Get("configmaps", key("config")); !there {
			t.Error("the orphan is gone")
		}
	})
}

func TestQuotaIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *Server, client kubernetes.Interface) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}}
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
		objects.Create(t, client.CoreV1().ResourceQuotas("default"), quota)
		create(t, client, "a")
		_, err := client.CoreV1().Pods("default").Create(t.Context(), newPod("b"), metav1.CreateOptions{})
		want := `pods "b" is forbidden: exceeded quota: quota, requested: pods=1, used: pods=1, limited: pods=1`
		if !errors.IsForbidden(err) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		must.Succeed(t, client.CoreV1().Pods("default").Delete(t.Context(), "a", metav1.DeleteOptions{}))
		create(t, client, "b")
	})
}

func TestNamespaceEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, client kubernetes.Interface) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short"}}
		objects.Create(t, client.CoreV1().Namespaces(), namespace)
		job := newJob("job")
		job.Namespace = "short"
		objects.Create(t, client.BatchV1().Jobs("short"), job)
		must.Succeed(t, client.CoreV1().Namespaces().Delete(t.Context(), "short", metav1.DeleteOptions{}))
		job.Name = "late"
		_, err := client.BatchV1().Jobs("short").Create(t.Context(), job, metav1.CreateOptions{})
		if !errors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || !errors.IsForbidden(err) {
			t.Errorf("a Job in a namespace that ends: %v", err)
		}
		collectAll(s)
		if _, there := s.Get("namespaces", types.NamespacedName{Name: "short"}); there || len(s.List("jobs", "short")) > 0 {
			t.Error("the namespace does not end")
		}
		_, err = client.BatchV1().Jobs("short").Create(t.Context(), job, metav1.CreateOptions{})
		if !errors.IsNotFound(err) {
			t.Errorf("a Job in a namespace that is gone: %v", err)
		}
	})
}

// logOf plays the same requests on a new server and returns the writes.
func logOf(t *testing.T) []string {
	t.Helper()
	var lines []string
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Observe: func(w Write) {
			lines = append(lines, fmt.Sprintln(w.Time.UTC(), w.ResourceVersion, w.By, w.Verb, w.Resource, w.Subresource, w.Key, w.UID, w.Old != nil, w.New != nil))
		}})
		client := clientOf(s, "user", true)
		family(t, client)
		pod := newPod("")
		pod.GenerateName = "made-"
		for range 3 {
			objects.Create(t, client.CoreV1().Pods("default"), pod)
		}
		s.Update("kubelet", "pods", "status", key("pod"), func(obj runtime.Object) { obj.(*corev1.Pod).Status.Phase = corev1.PodFailed })
		policy := metav1.DeletePropagationBackground
		must.Succeed(t, client.BatchV1().Jobs("default").Delete(t.Context(), "job", metav1.DeleteOptions{PropagationPolicy: &policy}))
		collectAll(s)
	})
	return lines
}

func TestSameRequestsSameWrites(t *testing.T) {
	first, second := logOf(t), logOf(t)
	if !slices.Equal(first, second) {
		t.Errorf("%s\n\nand then\n\n%s", strings.Join(first, "\n"), strings.Join(second, "\n"))
	}
	want := []string{"user create jobs", "user create pods", "kubelet update pods status", "user delete jobs", "garbage-collector collect pods"}
	for _, part := range want {
		if !slices.ContainsFunc(first, func(line string) bool { return strings.Contains(spaced(line), part) }) {
			t.Errorf("nobody wrote %q in\n%s", part, strings.Join(first, "\n"))
		}
	}
}

func spaced(line string) string { return strings.Join(strings.Fields(line), " ") }

func TestWhatChangesNothingIsNotWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, client kubernetes.Interface) {
		pod := create(t, client, "a")
		before := s.version
		again := objects.Update(t, client.CoreV1().Pods("default"), pod)
		if s.version != before || again.ResourceVersion != pod.ResourceVersion {
			t.Errorf("version %d after %d", s.version, before)
		}
	})
}

// Some rules for Jobs are only declared in the API's types: that a gang needs at least one pod is one.
func TestDeclaredRulesAreKept(t *testing.T) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate,
		featuregatetesting.FeatureOverrides{features.GenericWorkload: true, features.WorkloadWithJob: true})
	inBubble(t, func(t *testing.T, _ *Server, client kubernetes.Interface) {
		for minCount, valid := range map[int32]bool{0: false, 1: true} {
			job := newJob(fmt.Sprintf("gang-of-%d", minCount))
			job.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{
				Gang: &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{MinCount: &minCount},
			}}
			if _, err := client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); errors.IsInvalid(err) == valid {
				t.Errorf("a gang of at least %d pods: %v, want it refused as invalid: %t", minCount, err, !valid)
			}
		}
	})
}
