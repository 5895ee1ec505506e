package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"jobpolicy.dev/deploy/local/cluster"
)

// contendersGroup is the group of all service accounts in the namespace of the upstream
// controllers' accounts. Contenders have their accounts there, too: so the API server gives
// their requests the same priority as those of the built-in controllers.
const contendersGroup = "system:serviceaccounts:" + metav1.NamespaceSystem

// auditPolicy records each request of contenders once, and no other requests.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: [` + contendersGroup + `]
- level: None
`

// A plane is the control plane that contenders take turns on, with the simulated
// kubelet and the observer of Jobs. These two run in this process; all else runs in
// processes of its own.
type plane struct {
	*cluster.Cluster
	admin    *rest.Config
	client   kubernetes.Interface
	kubelet  *kubelet
	observer *observer
	audit    *auditLog
	binaries string

	stopFollowing context.CancelFunc
	following     sync.WaitGroup
}

// startPlane starts etcd and the API server. The engine runs only while its
// contender does, and no controller runs otherwise.
func startPlane(ctx context.Context, dir, binaries string, say func(string, ...any)) (*plane, error) {
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	log := filepath.Join(dir, "audit.log")
	say("control plane: starting")
	c, err := cluster.Start(ctx, cluster.Options{
		StateDir: filepath.Join(dir, "plane"), BinDir: binaries,
		WithoutExecutor: true, WithoutNode: true, WithoutScheduler: true,
		ControllerManagerControllers: "serviceaccount-controller",
		ExtraArgs: map[string][]string{
			// Events of 100,000 pods, and each version of them, stay until compaction.
			cluster.Etcd:   {"--quota-backend-bytes=17179869184"},
			cluster.Engine: {"--profiling"},
			cluster.APIServer: {
				"--audit-policy-file=" + policy, "--audit-log-path=" + log, "--audit-log-maxsize=1000000",
				// Pods do without service accounts, which namespaces would have to get first.
				"--disable-admission-plugins=ServiceAccount",
				"--delete-collection-workers=16",
			},
		},
	})
	if err != nil {
		return nil, err
	}
	p := &plane{Cluster: c, binaries: binaries, audit: newAuditLog(log)}
	if err := p.prepare(ctx); err != nil {
		_ = c.Stop(context.WithoutCancel(ctx)) // the first error says more
		return nil, err
	}
	return p, nil
}

// prepare stops components that are not measured, and starts to follow pods and Jobs.
func (p *plane) prepare(ctx context.Context) error {
	for _, component := range []string{cluster.ControllerManager, cluster.Engine} {
		if _, err := p.StopComponent(ctx, component); err != nil {
			return err
		}
	}
	p.admin = p.RESTConfig()
	p.admin.ContentType = runtime.ContentTypeProtobuf
	var err error
	if p.client, err = kubernetes.NewForConfig(p.admin); err != nil {
		return err
	}
	_, err = p.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bench-contenders"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: contendersGroup}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("rights of the contenders: %w", err)
	}
	p.kubelet, p.observer = newKubelet(p.client), newObserver(p.client)
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stopFollowing = stop
	p.following.Go(func() { p.kubelet.run(following) })
	p.following.Go(func() { p.observer.run(following) })
	return nil
}

// surroundings is the CPU time of the processes that serve all contenders alike.
type surroundings struct {
	// server is that of etcd and the API server. kubelet is that of this process, which is
	// also the observer.
	server, kubelet time.Duration
	// serverPeak is the most memory that the API server has had, in bytes.
	serverPeak float64
}

func (p *plane) surroundings() (surroundings, error) {
	own, err := usageOf(os.Getpid())
	s := surroundings{kubelet: own.cpu}
	for _, name := range []string{cluster.Etcd, cluster.APIServer} {
		pid, pidErr := p.PID(name)
		used, usageErr := usageOf(pid)
		s.server += used.cpu
		if name == cluster.APIServer {
			s.serverPeak = used.peak
		}
		err = errors.Join(err, pidErr, usageErr)
	}
	return s, err
}

// stop ends everything and deletes all files of the control plane.
func (p *plane) stop() error {
	p.stopFollowing()
	p.following.Wait()
	return p.Stop(context.Background())
}

// credentials makes a service account and writes a kubeconfig file for it.
func (p *plane) credentials(ctx context.Context, name string) (string, error) {
	accounts := p.client.CoreV1().ServiceAccounts(metav1.NamespaceSystem)
	_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("service account: %w", err)
	}
	seconds := int64((24 * time.Hour).Seconds())
	token, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: p.admin.Host, CertificateAuthority: p.admin.CAFile}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	file := filepath.Join(p.StateDir(), name+".kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}

// user is the name under which the API server knows the account.
func user(account string) string {
	return "system:serviceaccount:" + metav1.NamespaceSystem + ":" + account
}

// open makes a namespace and sets the script of its pods.
func (p *plane) open(ctx context.Context, namespace string, s script) error {
	p.kubelet.play(namespace, s)
	_, err := p.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("namespace %s: %w", namespace, err)
	}
	return nil
}

// clear deletes all Jobs and pods of a namespace, so that later contenders do not
// keep them in memory. No contender runs meanwhile, so none reacts.
func (p *plane) clear(ctx context.Context, namespace string) error {
	p.kubelet.forget(namespace)
	p.observer.forget(namespace)
	now, background := int64(0), metav1.DeletePropagationBackground
	opts := metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background}
	if err := p.client.BatchV1().Jobs(namespace).DeleteCollection(ctx, opts, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete jobs: %w", err)
	}
	for {
		err := p.client.CoreV1().Pods(namespace).DeleteCollection(ctx, opts, metav1.ListOptions{Limit: 1000})
		if err != nil && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) {
			return fmt.Errorf("delete pods: %w", err)
		}
		left, err := p.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return fmt.Errorf("delete pods: %w", err)
		}
		if len(left.Items) == 0 {
			return p.client.CoreV1().Events(namespace).DeleteCollection(ctx, opts, metav1.ListOptions{})
		}
	}
}
