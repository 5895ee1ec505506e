package hostnode

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	certutil "k8s.io/client-go/util/cert"

	"jobpolicy.dev/deploy/local/internal/pki"
	"jobpolicy.dev/deploy/local/must"
)

// newKeys are the keys of a control plane that lives for a test.
func newKeys(t *testing.T) pki.Files {
	t.Helper()
	files, err := pki.Ensure(t.TempDir(), pki.Node{Name: "test"})
	must.Succeed(t, err)
	return files
}

// clientOf is an HTTP client that trusts keys and shows a certificate of shown, if not nil.
func clientOf(t *testing.T, keys pki.Files, shown *pki.Files) *http.Client {
	t.Helper()
	pool, err := certutil.NewPool(keys.KubeletCA)
	must.Succeed(t, err)
	config := &tls.Config{RootCAs: pool}
	if shown != nil {
		pair, err := tls.LoadX509KeyPair(shown.KubeletClient.Cert, shown.KubeletClient.Key)
		must.Succeed(t, err)
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
}

// servedWith is a configuration with these keys.
func servedWith(keys pki.Files) Config {
	return Config{ClientCAFile: keys.KubeletCA, ServingCertFile: keys.KubeletServer.Cert, ServingKeyFile: keys.KubeletServer.Key}
}

// startAPI serves the kubelet API of an agent with the given pods, and returns its URL.
func startAPI(t *testing.T, keys pki.Files, pods *agent) string {
	t.Helper()
	config, err := servedWith(keys).tlsConfig()
	must.Succeed(t, err)
	server := httptest.NewUnstartedServer((&api{agent: pods, layout: pods.runner.layout, logger: pods.logger}).handler())
	server.TLS = config
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	response, err := c.Get(url)
	must.Succeed(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must.Succeed(t, err)
	return response.StatusCode, string(body)
}

func TestAPIDemandsACertificateOfItsAuthority(t *testing.T) {
	ours, theirs := newKeys(t), newKeys(t)
	pods, _ := startAgent(t, fake.NewClientset())
	url := startAPI(t, ours, pods) + "/healthz"
	if code, body := get(t, clientOf(t, ours, &ours), url); code != 200 || body != "ok" {
		t.Errorf("with a certificate: %d %q", code, body)
	}
	for name, shown := range map[string]*pki.Files{"without a certificate": nil, "with a stranger's": &theirs} {
		if response, err := clientOf(t, ours, shown).Get(url); err == nil {
			response.Body.Close()
			t.Errorf("%s: answered with %s", name, response.Status)
		}
	}
}

func TestAPIAnswers(t *testing.T) {
	twice := podObject("twice", "u-2", shell("c", "n=$(ls $JOBPOLICY_POD_DIR/logs/c | wc -l); echo run $n; [ $n = 2 ]"))
	twice.Spec.RestartPolicy = onFailure
	stuck := shell("c", "true")
	stuck.Env = []corev1.EnvVar{{Name: "V", ValueFrom: configMapKey("none", "k", false)}}
	client := fake.NewClientset(
		podObject("done", "u-1", shell("c", "echo one; echo two; printf three")), twice, podObject("stuck", "u-3", stuck))
	pods, _ := startAgent(t, client)
	awaitPhase(t, client, "done", corev1.PodSucceeded)
	awaitPhase(t, client, "twice", corev1.PodSucceeded)
	eventually(t, "stuck says why", func() bool {
		s := awaitPhase(t, client, "stuck", corev1.PodPending).Status.ContainerStatuses
		return len(s) == 1 && s[0].State.Waiting.Reason == waitingConfigError
	})
	keys := newKeys(t)
	url, http := startAPI(t, keys, pods), clientOf(t, keys, &keys)
	cases := map[string]struct {
		path     string
		wantCode int
		want     string
	}{
		"a whole log":                     {"/containerLogs/ns/done/c", 200, "one\ntwo\nthree"},
		"the last lines":                  {"/containerLogs/ns/done/c?tailLines=2", 200, "two\nthree"},
		"the first bytes":                 {"/containerLogs/ns/done/c?limitBytes=5", 200, "one\nt"},
		"nothing since the future":        {"/containerLogs/ns/done/c?sinceTime=2999-01-01T00:00:00Z", 200, ""},
		"following what has ended":        {"/containerLogs/ns/done/c?follow=true", 200, "one\ntwo\nthree"},
		"the last run":                    {"/containerLogs/ns/twice/c", 200, "run 2\n"},
		"the run before":                  {"/containerLogs/ns/twice/c?previous=true", 200, "run 1\n"},
		"no run before":                   {"/containerLogs/ns/done/c?previous=true", 400, "previous terminated container \"c\" in pod \"done\" not found\n"},
		"a container that waits":          {"/containerLogs/ns/stuck/c", 400, "container \"c\" in pod \"stuck\" is waiting to start: CreateContainerConfigError\n"},
		"an unknown container":            {"/containerLogs/ns/done/x", 400, "container \"x\" in pod \"done\" is not available\n"},
		"an unknown pod":                  {"/containerLogs/ns/none/c", 404, "pod \"none\" does not exist in namespace \"ns\" on this node\n"},
		"a number that is none":           {"/containerLogs/ns/done/c?tailLines=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax\n"},
		"one stream alone":                {"/containerLogs/ns/done/c?stream=Stderr", 400, "stream \"Stderr\": both streams are kept as one here, only All can be asked for\n"},
		"exec":                            {"/exec/ns/done/c?command=ls", 501, "exec is not available: a host-process node runs ordinary processes, use this machine's own tools on them\n"},
		"what no part of the node serves": {"/stats/summary", 501, "a host-process node does not serve /stats/summary\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, body := get(t, http, url+tc.path)
			if code != tc.wantCode {
				t.Errorf("code is %d, want %d", code, tc.wantCode)
			}
			must.Equal(t, "body", tc.want, body)
		})
	}

	code, body := get(t, http, url+"/pods")
	var list corev1.PodList
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != 200 || list.Kind != "PodList" || len(list.Items) != 3 {
		t.Errorf("pods: %d, %d items of %q, %v", code, len(list.Items), list.Kind, err)
	}
}

func TestFollowedLogArrivesWhileItIsWritten(t *testing.T) {
	client := fake.NewClientset(podObject("p", "u-1", shell("c", `echo first; while [ ! -e "$JOBPOLICY_POD_DIR/go" ]; do sleep 0.01; done; echo last`)))
	pods, _ := startAgent(t, client)
	awaitPhase(t, client, "p", corev1.PodRunning)
	keys := newKeys(t)
	response, err := clientOf(t, keys, &keys).Get(startAPI(t, keys, pods) + "/containerLogs/ns/p/c?follow=true")
	must.Succeed(t, err)
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); err != nil || line != "first\n" {
		t.Fatalf("read %q, %v", line, err)
	}
	must.Succeed(t, os.WriteFile(filepath.Join(pods.runner.layout.pod("u-1"), "go"), nil, 0o600))
	rest, err := io.ReadAll(lines)
	if err != nil || string(rest) != "last\n" {
		t.Errorf("the rest is %q, %v; want it to end with the container", rest, err)
	}
}

func TestUnusableCertificateFilesAreNamed(t *testing.T) {
	good := servedWith(newKeys(t))
	noKey, noCA, notPEM := good, good, good
	noKey.ServingKeyFile, noCA.ClientCAFile = "none", "none"
	notPEM.ClientCAFile = good.ServingKeyFile
	for field, cfg := range map[string]Config{"ServingKeyFile: ": noKey, "ClientCAFile: open": noCA, "ClientCAFile: no certificate": notPEM} {
		if _, err := cfg.tlsConfig(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error %v does not contain %q", err, field)
		}
	}
}
