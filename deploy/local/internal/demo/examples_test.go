package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/deploy/local/must"
)

// Each manifest of the folder is run, and says at its top how it ends.
func TestExamplesAreAllRunAndSayTheirEnd(t *testing.T) {
	t.Parallel()
	const dir = "../../../examples"
	examples, err := loadExamples(dir)
	must.Succeed(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	must.Succeed(t, err)
	there, run := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		there[strings.TrimSuffix(filepath.Base(file), ".yaml")] = true
	}
	for _, ex := range examples {
		run[ex.name] = true
		data, err := os.ReadFile(filepath.Join(dir, ex.name+".yaml"))
		must.Succeed(t, err)
		comment, _, _ := strings.Cut(string(data), "apiVersion:")
		end := ex.wants[0][strings.LastIndex(ex.wants[0], "(")+1:]
		if reason, _, ends := strings.Cut(end, ":"); ends && !strings.Contains(comment, reason) {
			t.Errorf("%s does not say that it ends with %s: %s", ex.name, reason, comment)
		}
		if end == "gone" && !strings.Contains(comment, "deleted") {
			t.Errorf("%s does not say that it is deleted: %s", ex.name, comment)
		}
	}
	if diff := cmp.Diff(there, run); diff != "" {
		t.Errorf("manifests (-there +run):\n%s", diff)
	}
}

// The observer tells Jobs apart by name, in all namespaces.
func TestEachJobHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	examples, err := loadExamples("../../../examples")
	must.Succeed(t, err)
	named := map[string]string{}
	for _, ex := range examples {
		if other, taken := named[ex.job.Name]; taken {
			t.Errorf("%s and %s have a Job %s each", other, ex.name, ex.job.Name)
		}
		named[ex.job.Name] = ex.name
	}
}

func TestCommandsNameAnotherNamespaceThanTheDefault(t *testing.T) {
	t.Parallel()
	const text = "kubectl annotate cronjob NAME a=b\n$ kubectl get cronjob NAME"
	for space, want := range map[string]string{
		namespace: "kubectl annotate cronjob x a=b\n$ kubectl get cronjob x",
		"red":     "kubectl -n red annotate cronjob x a=b\n$ kubectl -n red get cronjob x",
	} {
		ex := &example{job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: space}}}
		if got := ex.command(text, "x"); got != want {
			t.Errorf("in namespace %s: %q, want %q", space, got, want)
		}
	}
}

// A namespace is created once, with the quota of its example, and can hold pods when its Jobs are created.
func TestNamespacesOfExamplesAreCreated(t *testing.T) {
	t.Parallel()
	in := func(space, quota string) *example {
		return &example{quota: quota, job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: space}}}
	}
	client := fake.NewClientset(
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "red"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "crowded"}},
	)
	must.Succeed(t, createNamespaces(t.Context(), client, []*example{in(namespace, ""), in("red", ""), in("crowded", "full"), in("red", "")}))
	namespaces, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(namespaces.Items) != 2 {
		t.Errorf("%d namespaces, want 2; error %v", len(namespaces.Items), err)
	}
	quotas, err := client.CoreV1().ResourceQuotas(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(quotas.Items) != 1 || quotas.Items[0].Namespace != "crowded" || !quotas.Items[0].Spec.Hard.Pods().IsZero() {
		t.Errorf("quotas %v, want one without room in crowded; error %v", quotas.Items, err)
	}
}
