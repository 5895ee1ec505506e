package kubectl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/must"
)

// A request is what an API server sees of the first request of a command.
type request struct {
	Server, Path, ServerName, Certificate string
	Header                                http.Header
	// GivenUp: the client did not wait for the answer.
	GivenUp bool
}

// An apiServer keeps the first request, and knows no object.
type apiServer struct {
	name string
	*httptest.Server

	// requests are those under way.
	requests sync.WaitGroup

	mu    sync.Mutex
	first *request
}

// slow is the namespace of which the server says nothing for long.
const slow = "slow"

func startServer(t *testing.T, name string) *apiServer {
	t.Helper()
	s := &apiServer{name: name}
	s.Server = httptest.NewUnstartedServer(s)
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// startProxy returns the address of a proxy that leads to one server, whatever it is asked for.
func startProxy(t *testing.T, to *apiServer) string {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		server, err := net.Dial("tcp", to.Listener.Addr().String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusOK)
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			server.Close()
			return
		}
		pass := func(to, from net.Conn) {
			_, _ = io.Copy(to, from) // it ends when either side closes
			to.Close()
		}
		go pass(server, client)
		go pass(client, server)
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

func (s *apiServer) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = nil
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	defer s.requests.Done()
	seen := &request{Server: s.name, Path: r.URL.Path, ServerName: r.TLS.ServerName, Header: http.Header{}}
	for name, values := range r.Header {
		if name == "Authorization" || name == "Accept-Encoding" || strings.HasPrefix(name, "Impersonate-") {
			seen.Header[name] = values
		}
	}
	if len(r.TLS.PeerCertificates) > 0 {
		seen.Certificate = r.TLS.PeerCertificates[0].SerialNumber.String()
	}
	if strings.Contains(r.URL.Path, "/namespaces/"+slow+"/") {
		select {
		case <-r.Context().Done():
			seen.GivenUp = true
		case <-time.After(20 * time.Second):
		}
	}
	s.mu.Lock()
	if s.first == nil {
		s.first = seen
	}
	s.mu.Unlock()
	http.NotFound(w, r)
}

// seen is the first request of those that the servers got; nil if there is none.
func seen(servers ...*apiServer) *request {
	for _, s := range servers {
		s.requests.Wait()
		s.mu.Lock()
		first := s.first
		s.mu.Unlock()
		if first != nil {
			return first
		}
	}
	return nil
}

// kubeconfigText has two of everything, and a cluster whose certificate nobody vouches for.
const kubeconfigText = `apiVersion: v1
kind: Config
clusters:
- {name: one, cluster: {server: %[1]q, certificate-authority: %[3]q}}
- {name: two, cluster: {server: %[2]q, certificate-authority: %[3]q}}
- {name: unknown, cluster: {server: %[1]q}}
users:
- {name: jane, user: {token: jane}}
- {name: john, user: {token: john}}
contexts:
- {name: one, context: {cluster: one, user: jane, namespace: first}}
- {name: two, context: {cluster: two, user: john, namespace: second}}
- {name: unknown, context: {cluster: unknown, user: jane}}
current-context: %[4]s
`

// A flagCase tries a flag: with it, another request is made than without it.
type flagCase struct {
	// before are the flags without which this one says nothing.
	before, flag []string
}

// TestFlagsMeanWhatTheyMeanToKubectl compares the request of a command with that of a
// client that cli-runtime configures, for each flag.
func TestFlagsMeanWhatTheyMeanToKubectl(t *testing.T) {
	one, two := startServer(t, "one"), startServer(t, "two")
	dir := buildPlugin(t)
	files := writeFiles(t, one, two)
	cases := map[string]flagCase{
		"kubeconfig":               {nil, []string{"--kubeconfig=" + files.other}},
		"cluster":                  {nil, []string{"--cluster=two"}},
		"user":                     {nil, []string{"--user=john"}},
		"context":                  {nil, []string{"--context=two"}},
		"namespace":                {nil, []string{"--namespace=third"}},
		"server":                   {nil, []string{"--server=" + two.URL}},
		"tls-server-name":          {nil, []string{"--tls-server-name=example.com"}},
		"insecure-skip-tls-verify": {[]string{"--context=unknown"}, []string{"--insecure-skip-tls-verify"}},
		"certificate-authority":    {[]string{"--context=unknown"}, []string{"--certificate-authority=" + files.authority}},
		"client-certificate":       {nil, []string{"--client-certificate=" + files.certificate, "--client-key=" + files.key}},
		"client-key":               {nil, []string{"--client-certificate=" + files.certificate, "--client-key=" + files.key}},
		"token":                    {nil, []string{"--token=other"}},
		"as":                       {nil, []string{"--as=jack"}},
		"as-uid":                   {[]string{"--as=jack"}, []string{"--as-uid=1"}},
		"as-group":                 {[]string{"--as=jack"}, []string{"--as-group=a", "--as-group=b,c"}},
		"as-user-extra":            {[]string{"--as=jack"}, []string{"--as-user-extra=k=1", "--as-user-extra=k=2=3"}},
		"request-timeout":          {nil, []string{"--namespace=" + slow, "--request-timeout=2s"}},
		"disable-compression":      {nil, []string{"--disable-compression"}},
		"proxy-url":                {nil, []string{"--proxy-url=" + startProxy(t, two)}},
	}
	for name := range configFlags() {
		if _, ok := cases[name]; !ok && differences["* --"+name] == "" {
			t.Errorf("--%s is not tried", name)
		}
	}
	command := func(args []string) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl-jobpolicy"), append([]string{"wait", "job/x"}, args...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+files.kubeconfig)
		_ = cmd.Run() // no server knows the Job
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ask := func(with func([]string), args []string) *request {
				one.reset()
				two.reset()
				with(args)
				return seen(one, two)
			}
			client := func(args []string) { getJob(t, files.kubeconfig, args) }
			without, with := ask(client, tc.before), ask(client, slices.Concat(tc.before, tc.flag))
			if cmp.Equal(without, with) {
				t.Errorf("the flag changes nothing in the request of cli-runtime: %+v", with)
			}
			if diff := cmp.Diff(without, ask(command, tc.before)); diff != "" {
				t.Errorf("without the flag (-cli-runtime +command):\n%s", diff)
			}
			if diff := cmp.Diff(with, ask(command, slices.Concat(tc.before, tc.flag))); diff != "" {
				t.Errorf("with the flag (-cli-runtime +command):\n%s", diff)
			}
		})
	}
}

// getJob reads a Job with the flags of cli-runtime.
func getJob(t *testing.T, kubeconfig string, args []string) {
	t.Helper()
	t.Setenv("KUBECONFIG", kubeconfig)
	flags, fs := genericclioptions.NewConfigFlags(true), pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.AddFlags(fs)
	must.Succeed(t, fs.Parse(args))
	cfg, err := flags.ToRESTConfig()
	must.Succeed(t, err)
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	must.Succeed(t, err)
	client, err := kubernetes.NewForConfig(cfg)
	must.Succeed(t, err)
	_, _ = client.BatchV1().Jobs(namespace).Get(context.Background(), "x", metav1.GetOptions{})
}

type files struct{ kubeconfig, other, authority, certificate, key string }

// writeFiles writes what the flags name. The servers have one certificate, which vouches
// for itself; the client proves itself with the same.
func writeFiles(t *testing.T, one, two *apiServer) files {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.WriteFile(path, data, 0o600))
		return path
	}
	pair := one.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must.Succeed(t, err)
	f := files{
		authority:   write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Certificate().Raw})),
		certificate: write("client.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})),
		key:         write("client.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	}
	f.kubeconfig = write("kubeconfig", fmt.Appendf(nil, kubeconfigText, one.URL, two.URL, f.authority, "one"))
	f.other = write("other", fmt.Appendf(nil, kubeconfigText, one.URL, two.URL, f.authority, "two"))
	return f
}
