package cluster

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"jobpolicy.dev/deploy/local/internal/pki"
	"jobpolicy.dev/deploy/local/must"
)

func TestHTTPProbe(t *testing.T) {
	cases := map[string]struct {
		status int
		body   string
		want   string
	}{
		"ready": {status: http.StatusOK, body: "ok"},
		"an answer that names checks": {
			status: http.StatusInternalServerError,
			body:   "[+]ping ok\n[-]etcd failed: reason withheld\n[-]hook failed\nreadyz check failed\n",
			want:   "500 Internal Server Error: etcd failed: reason withheld, hook failed",
		},
		"an answer without checks is shown on one line": {
			status: http.StatusServiceUnavailable,
			body:   "engine\n  does not answer\n",
			want:   "503 Service Unavailable: engine does not answer",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				w.Write([]byte(tc.body))
			}))
			defer server.Close()
			err := askHTTP(t.Context(), server.URL, authorityFile(t, server), pki.Pair{})
			got := ""
			if err != nil {
				_, got, _ = strings.Cut(err.Error(), " answers ")
			}
			must.Equal(t, "answer", tc.want, got)
		})
	}
}

func authorityFile(t *testing.T, server *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	must.Succeed(t, os.WriteFile(file, text, 0o600))
	return file
}

func TestHTTPProbeDistrustsAForeignServer(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it reports the refused handshake
	server.StartTLS()
	defer server.Close()
	keys, err := pki.Ensure(t.TempDir(), pki.Node{Name: DefaultNodeName})
	must.Succeed(t, err)
	err = askHTTP(t.Context(), server.URL, keys.ClusterCA, keys.Admin)
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, want a complaint about the certificate", err)
	}
}

func TestUsable(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
	node := func(ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n"},
			Spec:       corev1.NodeSpec{Taints: taints},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: ready, Message: "because"},
			}},
		}
	}
	taint := corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}
	cases := map[string]struct {
		opts    Options
		objects []runtime.Object
		want    string
	}{
		"a ready node and a service account": {objects: []runtime.Object{account, node("True")}},
		"no service account yet": {
			objects: []runtime.Object{node("True")},
			want:    `serviceaccounts "default" not found`,
		},
		"no node yet": {
			objects: []runtime.Object{account},
			want:    `nodes "n" not found`,
		},
		"a node that is not ready": {
			objects: []runtime.Object{account, node("False")},
			want:    "node n is not ready: because",
		},
		"a node with a taint": {
			objects: []runtime.Object{account, node("True", taint)},
			want:    "node n still has the taint node.kubernetes.io/not-ready:NoSchedule",
		},
		"a node without conditions": {
			objects: []runtime.Object{account, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}},
			want:    "node n has no Ready condition yet",
		},
		"no node is wanted": {
			opts:    Options{WithoutNode: true},
			objects: []runtime.Object{account},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.opts.NodeName = "n"
			client := fake.NewClientset(tc.objects...)
			err := usableProbe(func() (kubernetes.Interface, error) { return client, nil }, tc.opts)(t.Context())
			got := ""
			if err != nil {
				got = err.Error()
			}
			must.Equal(t, "answer", tc.want, got)
		})
	}
}
