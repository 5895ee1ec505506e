package plugin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobpolicy.dev/services/internal/cli"
)

// An executorPod is the pod of an executor in the cluster, whose HTTP port kubectl
// forwards to this machine.
type executorPod struct {
	cli.IO
	cluster   clusterFlags
	namespace string
	lease     string
	pod       string
	podPort   int
	// passed are the flags that are passed on to kubectl.
	passed []string
}

func (e *executorPod) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&e.namespace, "executor-namespace", "jobpolicy-system", "`Namespace` of the executor.")
	fs.StringVar(&e.lease, "lease", "jobpolicy-executor", "`Lease` by which the executor's replicas elect a leader.")
	fs.StringVar(&e.pod, "pod", "", "`Pod` of the executor. Default: the one that holds the Lease.")
	fs.IntVar(&e.podPort, "pod-port", 8082, "HTTP `port` of the executor.")
	shared := pflag.NewFlagSet("", pflag.ContinueOnError)
	e.cluster.AddFlags(shared, true)
	fs.AddFlagSet(shared)
	cmd.PreRun = func(*cobra.Command, []string) {
		shared.VisitAll(func(f *pflag.Flag) {
			if f.Changed && f.Name != "namespace" {
				e.pass(f)
			}
		})
	}
}

// pass passes a flag on to kubectl, as often as the user gave it.
func (e *executorPod) pass(f *pflag.Flag) {
	values := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	}
	for _, value := range values {
		e.passed = append(e.passed, "--"+f.Name+"="+value)
	}
}

// forward finds the pod, and forwards a port of this machine to it until the context is
// done. Port 0 stands for any free port. It calls ready with the URL, and waits for it.
func (e *executorPod) forward(ctx context.Context, port int, ready func(base string)) error {
	for flag, port := range map[string]int{"--pod-port": e.podPort, "--port": port} {
		if port < 0 || port > 65535 {
			return cli.Usagef("%s must be a port, up to 65535, is %d", flag, port)
		}
	}
	if e.pod == "" {
		if err := e.findLeader(ctx); err != nil {
			return err
		}
	}
	local := ""
	if port != 0 {
		local = fmt.Sprint(port)
	}
	forward := e.kubectl(ctx, "port-forward", "--address=127.0.0.1", "pod/"+e.pod, fmt.Sprintf("%s:%d", local, e.podPort))
	out, err := forward.StdoutPipe()
	if err != nil {
		return err
	}
	if err := forward.Start(); err != nil {
		return notStarted(err)
	}
	announce(out, ready)
	if err := forward.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("kubectl port-forward: %w", err)
	}
	return nil
}

func (e *executorPod) kubectl(ctx context.Context, args ...string) *exec.Cmd {
	args = append(args, "--namespace="+e.namespace)
	cmd := exec.CommandContext(ctx, "kubectl", append(args, e.passed...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = e.Err
	return cmd
}

func notStarted(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("kubectl is needed for port-forward, and is not in the PATH: %w", err)
	}
	return err
}

// findLeader reads who holds the Lease. The holder is the name of a pod, followed by a part
// that differs for each process in it.
func (e *executorPod) findLeader(ctx context.Context) error {
	holder, err := e.kubectl(ctx, "get", "lease", e.lease, "--output=jsonpath={.spec.holderIdentity}").Output()
	if err != nil {
		return fmt.Errorf("no executor found: kubectl get lease %s -n %s: %w; --executor-namespace and --lease say where it is, or --pod names its pod", e.lease, e.namespace, notStarted(err))
	}
	if e.pod, _, _ = strings.Cut(strings.TrimSpace(string(holder)), "_"); e.pod == "" {
		return fmt.Errorf("nobody holds Lease %s in namespace %s: no executor leads", e.lease, e.namespace)
	}
	return nil
}

var forwarding = regexp.MustCompile(`^Forwarding from 127\.0\.0\.1:(\d+) `)

// announce calls ready when kubectl says that the port is forwarded, and returns when kubectl
// has ended and ready has returned. kubectl prints a line for each connection, and forwards
// nothing while nobody reads them, so announce goes on reading while ready runs.
func announce(out io.Reader, ready func(base string)) {
	var running sync.WaitGroup
	defer running.Wait()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := forwarding.FindStringSubmatch(lines.Text()); m != nil {
			running.Go(func() { ready("http://" + net.JoinHostPort("127.0.0.1", m[1])) })
		}
	}
}
