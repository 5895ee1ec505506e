package telemetry

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"jobpolicy.dev/test/kit/objects"
	"jobpolicy.dev/test/node/cluster/shared"
)

const (
	collectorNamespace = "telemetry"
	collectorName      = "collector"
	collectorEndpoint  = "http://" + collectorName + "." + collectorNamespace + ".svc:4317"
	collectorConfig    = `
receivers: {otlp: {protocols: {grpc: {endpoint: "0.0.0.0:4317"}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [debug]}}
`
)

// startCollector runs the OpenTelemetry collector in a pod behind a Service. It writes what it receives to its log.
func startCollector(t *testing.T) {
	t.Helper()
	client := shared.Client()
	labels := map[string]string{"app": collectorName}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: collectorName},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 4317}}},
	}
	objects.Create(t, client.CoreV1().Services(collectorNamespace), service)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: collectorName, Labels: labels},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, // its log is one
			Containers: []corev1.Container{{ReadinessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(4317)}},
				PeriodSeconds: 1,
			}}},
			TerminationGracePeriodSeconds: new(int64(0)),
		},
	}
	program(t, &pod.Spec, "otelcol", "--config=yaml:"+collectorConfig)
	objects.Create(t, client.CoreV1().Pods(collectorNamespace), pod)
	shared.Eventually(t, "the collector", func() error {
		pod, err := client.CoreV1().Pods(collectorNamespace).Get(t.Context(), collectorName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("its pod is %s: %v", pod.Status.Phase, pod.Status.ContainerStatuses)
	})
}

func collectorLog(t *testing.T) string {
	t.Helper()
	return logOf(t, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: collectorNamespace, Name: collectorName}})
}

// traces are the IDs of the traces to which each service has sent spans.
type traces map[string][]string

// A line of the collector's log that names the service that sent the spans below it, or the trace of a span.
var serviceOrTrace = regexp.MustCompile(`(?m)^\s+-> service\.name: Str\((.+)\)$|^\s+Trace ID\s+: ([0-9a-f]{32})$`)

func tracesOf(log string) traces {
	found, service := traces{}, ""
	for _, match := range serviceOrTrace.FindAllStringSubmatch(log, -1) {
		if match[1] != "" {
			service = match[1]
		} else if !slices.Contains(found[service], match[2]) {
			found[service] = append(found[service], match[2])
		}
	}
	return found
}

// shared reports whether both services have sent spans of one trace.
func (found traces) shared(one, other string) bool {
	return slices.ContainsFunc(found[one], func(id string) bool { return slices.Contains(found[other], id) })
}
