package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/deploy/local/must"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/executables"
	"jobpolicy.dev/test/kit/objects"
)

// Names of the manifests in deploy/kubernetes/coexist.
const (
	installNamespace = "jobpolicy-system"
	engineName       = "jobpolicy-engine." + installNamespace + ".svc"
	executorAccount  = "system:serviceaccount:" + installNamespace + ":jobpolicy-executor"
)

// Certificates expire sooner than in a cluster, and files are updated faster.
const (
	certificatePropagation = 6 * time.Second
	certificateLife        = 30 * time.Second
	fileDelay              = time.Second
)

// The executor starts with empty Secrets and the rights of the manifests, and makes the
// certificates with which it and the engine authenticate each other. While authorities
// change again and again, every call succeeds: the executor's, and those of a caller
// that makes a new connection for each call and sees the Secret late.
func TestCertificatesRotateUnderLoad(t *testing.T) {
	t.Parallel()
	in := install(t)
	secrets := in.client.CoreV1().Secrets(installNamespace)
	executorPort := freeport.PortFor(t)
	enginePort := freeport.PortFor(t)
	engineAddress := freeport.AddressFor(t)
	in.startExecutor(t, engineAddress, executorPort)
	files := in.mountSecret(t, "jobpolicy-engine-tls")
	in.start(t, cluster.EngineBinary, "--grpc-address="+engineAddress, "--http-address=127.0.0.1:"+enginePort,
		"--tls-cert-file="+files+"/tls.crt", "--tls-private-key-file="+files+"/tls.key", "--client-ca-file="+files+"/ca.crt",
		"--authorized-callers-file="+in.callersFile(t), "--max-connection-age=1s")
	eventually(t, "the executor reaches the engine", func() (bool, string) {
		code, body := get("http://127.0.0.1:" + executorPort + "/readyz")
		return code == 200, body
	})
	calls := in.callAnew(t, engineAddress)
	errorsBefore := engineErrors(t, executorPort)

	jobs := 0
	for round := range 2 {
		before := signerOf(t, in.secret(t, "jobpolicy-engine-tls"))
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"jobpolicy.dev/rotate":"round %d"}}}`, round)
		objects.Patch(t, secrets, "jobpolicy-authority", patch)
		for changed := false; !changed; jobs++ {
			in.runJob(t, fmt.Sprintf("under-load-%d", jobs))
			changed = signerOf(t, in.secret(t, "jobpolicy-engine-tls")) != before
		}
		if n := bytes.Count(in.secret(t, "jobpolicy-engine-tls").Data["ca.crt"], []byte("BEGIN")); n < 2 {
			t.Errorf("round %d: the authority before is trusted no more at once: %d authorities", round, n)
		}
	}
	eventually(t, "authorities without valid certificates are forgotten", func() (bool, string) {
		n := bytes.Count(in.secret(t, "jobpolicy-executor-tls").Data["ca.crt"], []byte("BEGIN"))
		return n == 1, fmt.Sprint(n)
	})
	in.runJob(t, "afterwards")
	made, failed := calls()
	if made < 50 || len(failed) > 0 {
		t.Errorf("%d of %d calls failed: %v", len(failed), made, failed)
	}
	if now := engineErrors(t, executorPort); now != errorsBefore {
		t.Errorf("calls of the executor failed: %s; before the changes: %s", now, errorsBefore)
	}
	t.Logf("%d calls over connections of their own and %d Jobs, none failed", made, jobs+1)
	watched, _ := watchedMetrics(t)
	if missing := missingMetrics(t, watched, "http://127.0.0.1:"+executorPort, "http://127.0.0.1:"+enginePort); len(missing) > 0 {
		t.Errorf("of the metrics %v, which the dashboard and the alerts ask for, %v are missing", watched, missing)
	}
	in.checkRights(t)
}

// An installed is a control plane with the objects of the manifests, but no
// Deployments. The test starts the services itself, with their service account.
type installed struct {
	plane      *cluster.Cluster
	client     *kubernetes.Clientset
	binaries   string
	kubeconfig string
	audit      string
	objects    []*unstructured.Unstructured
}

func install(t *testing.T) *installed {
	t.Helper()
	binaries := executables.MustDir(t)
	log, args, err := auditArgs(t.TempDir(), executorAccount)
	must.Succeed(t, err)
	in := &installed{binaries: binaries, audit: log, objects: kustomize(t, "../../../deploy/kubernetes/coexist")}
	in.plane = controlplane.Start(t, cluster.Options{
		WithoutEngine: true, WithoutExecutor: true,
		ExtraArgs: map[string][]string{cluster.APIServer: args},
	})
	in.client = kubernetes.NewForConfigOrDie(in.plane.RESTConfig())
	in.apply(t)
	in.kubeconfig = in.accountKubeconfig(t)
	return in
}

// apply creates the objects, namespaces first.
func (in *installed) apply(t *testing.T) {
	t.Helper()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(in.client.Discovery()))
	kinds := dynamic.NewForConfigOrDie(in.plane.RESTConfig())
	for _, object := range in.objects {
		if object.GetKind() == "Deployment" {
			continue
		}
		mapping, err := mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		must.Succeed(t, err)
		resource := dynamic.ResourceInterface(kinds.Resource(mapping.Resource))
		if ns := object.GetNamespace(); ns != "" {
			resource = kinds.Resource(mapping.Resource).Namespace(ns)
		}
		if _, err := resource.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// accountKubeconfig gives access to the API server as a pod of the executor has it.
func (in *installed) accountKubeconfig(t *testing.T) string {
	t.Helper()
	hours := int64(7200)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hours}}
	token, err := in.client.CoreV1().ServiceAccounts(installNamespace).CreateToken(t.Context(), "jobpolicy-executor", request, metav1.CreateOptions{})
	must.Succeed(t, err)
	config := in.plane.RESTConfig()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthority: config.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"a": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "a"}},
		CurrentContext: "x",
	}, file)
	must.Succeed(t, err)
	return file
}

// startExecutor starts the executor with the arguments of the manifests, except those
// that need a pod's network.
func (in *installed) startExecutor(t *testing.T, engineAddress, httpPort string) {
	t.Helper()
	var args []string
	for _, arg := range in.executorArgs(t) {
		switch flag, _, _ := strings.Cut(arg, "="); flag {
		case "--engine", "--http-address":
		default:
			args = append(args, strings.ReplaceAll(arg, "$(POD_NAMESPACE)", installNamespace))
		}
	}
	in.start(t, cluster.ExecutorBinary, append(args, "--kubeconfig="+in.kubeconfig, "--http-address=127.0.0.1:"+httpPort,
		"--engine="+engineAddress, "--engine-server-name="+engineName, "--kube-api-qps=100", "--kube-api-burst=200",
		"--certificate-propagation="+certificatePropagation.String(), "--certificate-duration="+certificateLife.String(),
		"--certificate-authority-duration=1h")...)
}

func (in *installed) executorArgs(t *testing.T) []string {
	t.Helper()
	for _, object := range in.objects {
		if object.GetKind() == "Deployment" && object.GetName() == "jobpolicy-executor" {
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			args, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
			return args
		}
	}
	t.Fatal("the manifests have no executor")
	return nil
}

// callersFile is the list of the engine's callers that the manifests have.
func (in *installed) callersFile(t *testing.T) string {
	t.Helper()
	list := objects.Get(t, in.client.CoreV1().ConfigMaps(installNamespace), "jobpolicy-engine-callers")
	file := filepath.Join(t.TempDir(), "callers.yaml")
	must.Succeed(t, os.WriteFile(file, []byte(list.Data["callers.yaml"]), 0o600))
	return file
}

// start runs a program until the end of the test.
func (in *installed) start(t *testing.T, program string, args ...string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(in.binaries, program), args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	must.Succeed(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("%s %v:\n%s", program, args, log.String())
		}
	})
}

func (in *installed) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	return objects.Get(t, in.client.CoreV1().Secrets(installNamespace), name)
}

// mountSecret does the kubelet's part: it waits until the Secret has all three files,
// and later updates them in the folder, late, and all at once.
func (in *installed) mountSecret(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	var now *corev1.Secret
	eventually(t, "the Secret "+name+" is filled", func() (bool, string) {
		now = in.secret(t, name)
		return now.Data["tls.crt"] != nil && now.Data["tls.key"] != nil && now.Data["ca.crt"] != nil, fmt.Sprint(slices.Sorted(maps.Keys(now.Data)))
	})
	write := func(version int) error {
		folder := filepath.Join(dir, fmt.Sprint(version))
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
		for key, value := range now.Data {
			if err := os.WriteFile(filepath.Join(folder, key), value, 0o600); err != nil {
				return err
			}
		}
		if err := os.Symlink(folder, filepath.Join(dir, "new")); err != nil {
			return err
		}
		return os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "tls"))
	}
	must.Succeed(t, write(0))
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go func() {
		for version := 1; ctx.Err() == nil; version++ {
			time.Sleep(fileDelay)
			next, err := in.client.CoreV1().Secrets(installNamespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil && next.ResourceVersion != now.ResourceVersion {
				now = next
				err = write(version)
			}
			if err != nil && ctx.Err() == nil {
				t.Errorf("kubelet: %v", err)
			}
		}
	}()
	return filepath.Join(dir, "tls")
}

// callAnew calls the engine again and again, each time over a new connection and with
// what the executor's Secret contained a moment ago. The function that it returns ends
// this, and returns how many calls there were and which failed.
func (in *installed) callAnew(t *testing.T, address string) func() (made int, failed []string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	made, failed, ended := 0, []string(nil), make(chan struct{})
	secret, read := in.secret(t, "jobpolicy-executor-tls"), time.Now()
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; made++ {
			if time.Since(read) > fileDelay {
				if next, err := in.client.CoreV1().Secrets(installNamespace).Get(ctx, secret.Name, metav1.GetOptions{}); err == nil {
					secret, read = next, time.Now()
				}
			}
			if err := ask(address, secret.Data); err != nil {
				failed = append(failed, err.Error())
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() (int, []string) {
		stop()
		<-ended
		return made, failed
	}
}

func ask(address string, data map[string][]byte) error {
	pair, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data["ca.crt"])
	config := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: engineName}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = jobpolicyv1grpc.NewPolicyServiceClient(conn).GetServerInfo(ctx, &jobpolicyv1.GetServerInfoRequest{})
	return err
}

func (in *installed) runJob(t *testing.T, name string) {
	t.Helper()
	createJobOn(t, in.client, "default", name, batchv1.JobSpec{
		ManagedBy: new(ours), Completions: new(int32(2)), Parallelism: new(int32(2)), Template: shell("true", corev1.RestartPolicyNever),
	})
	waitJobOn(t, in.client, "default", name, "complete", func(job *batchv1.Job) bool { return isComplete(job) && job.Status.Succeeded == 2 })
}

// checkRights compares what the executor requested with the Role in its namespace.
func (in *installed) checkRights(t *testing.T) {
	t.Helper()
	role := objects.Get(t, in.client.RbacV1().Roles(installNamespace), "jobpolicy-executor")
	a, err := readAudit(in.audit)
	must.Succeed(t, err)
	for _, problem := range a.check(namedGrants(role.Rules), map[string]string{
		"coordination.k8s.io/leases create":    "only if somebody deletes the Lease of the manifests",
		"/secrets list jobpolicy-executor-tls": "API servers before v1.34, and those under pressure, do not stream lists into watches",
	}) {
		t.Error(problem)
	}
}

// signerOf returns the key of the authority that signed the certificate in a Secret.
func signerOf(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	must.Succeed(t, err)
	return string(pair.Leaf.AuthorityKeyId)
}

var engineErrorLine = regexp.MustCompile(`(?m)^jobpolicy_engine_errors_total.*$`)

// engineErrors is the number of failed calls in the executor's metrics.
func engineErrors(t *testing.T, port string) string {
	t.Helper()
	code, body := get("http://127.0.0.1:" + port + "/metrics")
	if code != 200 {
		t.Fatalf("/metrics: %d %s", code, body)
	}
	return strings.Join(engineErrorLine.FindAllString(body, -1), "\n")
}
