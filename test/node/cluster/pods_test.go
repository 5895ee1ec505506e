package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/executables"
	"jobpolicy.dev/test/kit/objects"
	"jobpolicy.dev/test/node/cluster/shared"
)

// podRange is where the addresses of pods come from.
var podRange = netip.MustParsePrefix("10.244.0.0/16")

// job returns a Job with one pod that runs a command.
func job(name, image string, command ...string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers:                    []corev1.Container{{Name: "main", Image: image, Command: command}},
				RestartPolicy:                 corev1.RestartPolicyNever,
				TerminationGracePeriodSeconds: new(int64(0)),
			}},
		},
	}
}

func create(t *testing.T, namespace string, job *batchv1.Job) {
	t.Helper()
	objects.Create(t, shared.Client().BatchV1().Jobs(namespace), job)
}

// podOf waits until the Job's only pod fulfils a condition, and returns it.
func podOf(t *testing.T, namespace, job string, fulfils func(corev1.Pod) bool) corev1.Pod {
	t.Helper()
	var found corev1.Pod
	shared.Eventually(t, "the pod of Job "+job, func() error {
		pods, err := shared.Client().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{
			LabelSelector: batchv1.JobNameLabel + "=" + job,
		})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("there are %d", len(pods.Items))
		}
		if found = pods.Items[0]; !fulfils(found) {
			return fmt.Errorf("its status is %v", found.Status)
		}
		return nil
	})
	return found
}

func succeeded(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }
func runs(pod corev1.Pod) bool      { return pod.Status.Phase == corev1.PodRunning }

// logOf returns what the pod's container has written.
func logOf(t *testing.T, pod corev1.Pod) string {
	t.Helper()
	text, err := shared.Client().CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	must.Succeed(t, err)
	return string(text)
}

func TestAJobCompletesInAContainerWithAnAddress(t *testing.T) {
	namespace := shared.Namespace(t)
	create(t, namespace, job("addressed", "busybox", "sh", "-c", "hostname -i; cat /proc/1/comm; true"))
	shared.Eventually(t, "the Job", func() error {
		job, err := shared.Client().BatchV1().Jobs(namespace).Get(t.Context(), "addressed", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if job.Status.Succeeded != 1 || job.Status.CompletionTime == nil {
			return fmt.Errorf("its status is %v", job.Status)
		}
		return nil
	})
	pod := podOf(t, namespace, "addressed", succeeded)
	address, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil || !podRange.Contains(address) {
		t.Errorf("the pod's address is %q, want one of %v", pod.Status.PodIP, podRange)
	}
	// The command is the first process of its container, which knows its address.
	if got, want := logOf(t, pod), pod.Status.PodIP+"\nsh\n"; got != want {
		t.Errorf("the pod wrote %q, want %q", got, want)
	}
}

// askAPIServer asks for the pod's own namespace with the token of its service
// account, by the names and the authority that every pod gets.
const askAPIServer = `
import socket, ssl, urllib.request, urllib.error
print(socket.getaddrinfo("kubernetes.default.svc", 443)[0][4][0])
files = "/var/run/secrets/kubernetes.io/serviceaccount/"
request = urllib.request.Request("https://kubernetes.default.svc/api/v1/namespaces")
request.add_header("Authorization", "Bearer " + open(files + "token").read())
try:
    urllib.request.urlopen(request, context=ssl.create_default_context(cafile=files + "ca.crt"))
except urllib.error.HTTPError as e:
    print(e.code, e.read().decode())
`

func TestAPodReachesTheAPIServerByItsName(t *testing.T) {
	namespace := shared.Namespace(t)
	create(t, namespace, job("ask", "python", "python3", "-c", askAPIServer))
	got := logOf(t, podOf(t, namespace, "ask", succeeded))
	address, answer, _ := strings.Cut(got, "\n")
	if address != "10.96.0.1" {
		t.Errorf("kubernetes.default.svc is %q, want the service's address 10.96.0.1", address)
	}
	// The API server knows who asks, and that it may not.
	if want := "system:serviceaccount:" + namespace + ":default"; !strings.HasPrefix(answer, "403 ") || !strings.Contains(answer, want) {
		t.Errorf("the API server answers %q, want 403 for %s", answer, want)
	}
}

func TestPodsReachEachOtherByService(t *testing.T) {
	namespace, client := shared.Namespace(t), shared.Client()
	server := job("server", "busybox", "sh", "-c", "echo it answers > /tmp/index.html; exec httpd -f -p 8080 -h /tmp")
	server.Spec.Template.Labels = map[string]string{"app": "server"}
	create(t, namespace, server)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "server"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "server"},
			Ports:    []corev1.ServicePort{{Port: 8080}},
		},
	}
	objects.Create(t, client.CoreV1().Services(namespace), service)
	create(t, namespace, job("asks", "busybox", "sh", "-c", "until wget -qO- http://server:8080; do sleep 0.2; done"))
	if got := logOf(t, podOf(t, namespace, "asks", succeeded)); !strings.HasSuffix(got, "it answers\n") {
		t.Errorf("the server says %q", got)
	}
}

func TestKubectlReadsLogsAndRunsCommands(t *testing.T) {
	namespace := shared.Namespace(t)
	create(t, namespace, job("talks", "busybox", "sh", "-c", "echo it runs; exec sleep 600"))
	podOf(t, namespace, "talks", runs)
	shared.Eventually(t, "its log", func() error { return says(t, "it runs\n", "logs", "-n", namespace, "job/talks") })
	if err := says(t, "sleep\n", "exec", "-n", namespace, "job/talks", "--", "cat", "/proc/1/comm"); err != nil {
		t.Error(err)
	}
}

// says runs kubectl and compares what it prints.
func says(t *testing.T, want string, args ...string) error {
	t.Helper()
	output, err := kubectl(t.Context(), shared.Cluster().Kubeconfig(), args...)
	if err != nil {
		return err
	}
	if output != want {
		return fmt.Errorf("kubectl %s: got %q, want %q", strings.Join(args, " "), output, want)
	}
	return nil
}

// kubectl runs the kubectl that was built with the node.
func kubectl(ctx context.Context, kubeconfig string, args ...string) (string, error) {
	dir, err := executables.Dir()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, filepath.Join(dir, "node", "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}
