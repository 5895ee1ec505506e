package telemetry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"os"
	"regexp"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/objects"
	"jobpolicy.dev/test/node/cluster/shared"
)

const (
	callerNamespace = "queueing"
	callerService   = "queueing-controller"
	clientSecret    = fullname + "-client-caller"
	engineTarget    = "dns:///" + fullname + "-engine." + installNamespace + ".svc:8443"
	managedBy       = "jobpolicy.dev/executor"
)

// call runs the caller in a Job of ours, with the files of a Secret or only some of them, and returns its pod when the
// Job has ended.
func call(t *testing.T, name, secret string, files ...string) corev1.Pod {
	t.Helper()
	request, err := os.ReadFile("../../../../deploy/examples/snapshots/second-failure.json")
	must.Succeed(t, err)
	source := &corev1.SecretVolumeSource{SecretName: secret}
	if len(files) == 0 {
		files = []string{"ca.crt", "tls.crt", "tls.key"} // the pod waits until all are there
	}
	for _, file := range files {
		source.Items = append(source.Items, corev1.KeyToPath{Key: file, Path: file})
	}
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Volumes:       []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: source}}},
		Containers: []corev1.Container{{
			Env: []corev1.EnvVar{
				{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: collectorEndpoint},
				{Name: "OTEL_SERVICE_NAME", Value: callerService},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "tls", MountPath: "/tls", ReadOnly: true}},
		}},
	}
	program(t, &pod, "enginecaller", "--engine="+engineTarget, "--timeout=10s", "--request="+string(request))
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)), ManagedBy: new(managedBy), Template: corev1.PodTemplateSpec{Spec: pod},
		},
	}
	objects.Create(t, shared.Client().BatchV1().Jobs(callerNamespace), job)
	return endedPod(t, name)
}

// endedPod waits until a Job has ended, and returns its pod.
func endedPod(t *testing.T, name string) corev1.Pod {
	t.Helper()
	client := shared.Client()
	shared.Eventually(t, "the end of Job "+name, func() error {
		job, err := client.BatchV1().Jobs(callerNamespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range job.Status.Conditions {
			if condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed {
				return nil
			}
		}
		return fmt.Errorf("its status is %v", job.Status)
	})
	pods, err := client.CoreV1().Pods(callerNamespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: batchv1.JobNameLabel + "=" + name,
	})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("Job %s: want one pod, got %d, %v", name, len(pods.Items), err)
	}
	return pods.Items[0]
}

// refusal is how the end of a handshake reads to a caller: the engine's alert, or that the connection is closed, if
// the caller was writing to it.
var refusal = regexp.MustCompile(`remote error: tls: |connection reset by peer|broken pipe`)

// refused checks that the engine has answered a caller with the end of the connection.
func refused(t *testing.T, caller corev1.Pod) {
	t.Helper()
	if log := logOf(t, caller); caller.Status.Phase != corev1.PodFailed || !refusal.MatchString(log) {
		t.Errorf("pod %s: the engine should refuse it; it is %s and says %q", caller.Name, caller.Status.Phase, log)
	}
}

// foreignSecret is the client's Secret with a certificate that it has issued to itself.
func foreignSecret(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "caller"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must.Succeed(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must.Succeed(t, err)
	secrets := shared.Client().CoreV1().Secrets(callerNamespace)
	ours := objects.Get(t, secrets, clientSecret)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other-authority"}, Data: maps.Clone(ours.Data)}
	foreign.Data["tls.crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	foreign.Data["tls.key"] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	objects.Create(t, secrets, foreign)
	return foreign.Name
}
