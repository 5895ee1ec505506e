package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/deploy/local/internal/pki"
)

// probe asks once whether a component is ready; the error says why it is not.
type probe func(ctx context.Context) error

// probeTimeout bounds one question. A server that is starting on a busy machine
// may accept a connection long before it answers.
const probeTimeout = 10 * time.Second

// serverProbe is ready when a path of a listener answers 200. The port may be chosen
// after the call. For plain HTTP caFile is empty; client is empty for servers that ask
// for no certificate.
func (l *layout) serverProbe(listener, path, caFile string, client pki.Pair) probe {
	scheme := "https://"
	if caFile == "" {
		scheme = "http://"
	}
	return func(ctx context.Context) error {
		return askHTTP(ctx, scheme+l.ports.address(listener)+path, caFile, client)
	}
}

// askHTTP takes a connection of its own, which a later probe of a restarted
// component cannot inherit.
func askHTTP(ctx context.Context, url, caFile string, client pki.Pair) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAFile: caFile, CertFile: client.Cert, KeyFile: client.Key,
	}})
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	return fmt.Errorf("%s answers %s: %s", url, response.Status, failedChecks(string(body)))
}

// failedChecks picks from a Kubernetes health answer the lines of the checks
// that fail, which start with "[-]". Another text is returned on one line.
func failedChecks(body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "[-]"); ok {
			failed = append(failed, name)
		}
	}
	if len(failed) > 0 {
		return strings.Join(failed, ", ")
	}
	return strings.Join(strings.Fields(body), " ")
}

// nodeProbe is ready when the node's API accepts connections and its Node
// object says Ready.
func (l *layout) nodeProbe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.ports.address(portKubelet))
	if err != nil {
		return err
	}
	conn.Close()
	client, err := l.client()
	if err != nil {
		return err
	}
	node, err := client.CoreV1().Nodes().Get(ctx, l.opts.NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return nodeReady(node)
}

func nodeReady(node *corev1.Node) error {
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if condition.Status == corev1.ConditionTrue {
			return nil
		}
		return fmt.Errorf("node %s is not ready: %s", node.Name, condition.Message)
	}
	return fmt.Errorf("node %s has no Ready condition yet", node.Name)
}

// usableProbe is ready when a pod in the namespace default could be created,
// and, with a node and a scheduler, placed: the controller manager has made the
// service account and has lifted the taints of a node that is starting.
func usableProbe(client func() (kubernetes.Interface, error), opts Options) probe {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		c, err := client()
		if err != nil {
			return err
		}
		_, err = c.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if opts.WithoutNode {
			return nil
		}
		node, err := c.CoreV1().Nodes().Get(ctx, opts.NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := nodeReady(node); err != nil {
			return err
		}
		return nodeUntainted(node)
	}
}

func nodeUntainted(node *corev1.Node) error {
	for _, taint := range node.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule {
			return fmt.Errorf("node %s still has the taint %s", node.Name, taint.ToString())
		}
	}
	return nil
}
