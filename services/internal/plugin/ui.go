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
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobpolicy.dev/services/internal/cluster"
)

const uiLong = `Opens the executor's page: Jobs with live state and reason, the life of one Job, CronJobs as
a calendar, health of engine and queues.

Runs kubectl port-forward to the executor's pod that leads, prints the page's address and
opens the browser, until Ctrl-C. The page is read-only. It needs the rights to get the Lease
and to create pods/portforward in the executor's namespace.`

// PagePath is where the executor serves its page: page.Path. That package is not used here,
// because it would make the plugin half as large again.
const PagePath = "/debug/page/"

type uiCommand struct {
	IO
	cluster   cluster.Flags
	namespace string
	lease     string
	pod       string
	podPort   int
	port      int
	noBrowser bool
	// passed are the flags that kubectl gets, too.
	passed []string
}

func newUI(streams IO) *cobra.Command {
	c := &uiCommand{IO: streams}
	cmd := &cobra.Command{
		Use: "ui", Short: "Open the executor's page in the browser", Long: uiLong,
		Example: "  kubectl jobpolicy ui\n  kubectl jobpolicy ui --no-browser --port 8000",
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&c.namespace, "executor-namespace", "jobpolicy-system", "`Namespace` of the executor.")
	fs.StringVar(&c.lease, "lease", "jobpolicy-executor", "`Lease` by which the executor's replicas elect a leader.")
	fs.StringVar(&c.pod, "pod", "", "`Pod` of the executor. Default: the one that holds the Lease.")
	fs.IntVar(&c.podPort, "pod-port", 8082, "HTTP `port` of the executor.")
	fs.IntVar(&c.port, "port", 0, "`Port` on this machine. Default: any that is free.")
	fs.BoolVar(&c.noBrowser, "no-browser", false, "Only print the address.")
	shared := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.cluster.AddFlags(shared, true)
	fs.AddFlagSet(shared)
	cmd.PreRun = func(*cobra.Command, []string) {
		shared.VisitAll(func(f *pflag.Flag) {
			if f.Changed && f.Name != "namespace" {
				c.passed = append(c.passed, "--"+f.Name+"="+f.Value.String())
			}
		})
	}
	return cmd
}

func (c *uiCommand) run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		return usagef("expected no argument, got %q", args[0])
	}
	for flag, port := range map[string]int{"--pod-port": c.podPort, "--port": c.port} {
		if port < 0 || port > 65535 {
			return usagef("%s must be a port, up to 65535, is %d", flag, port)
		}
	}
	if c.pod == "" {
		if err := c.findLeader(ctx); err != nil {
			return err
		}
	}
	port := ""
	if c.port != 0 {
		port = fmt.Sprint(c.port)
	}
	forward := c.kubectl(ctx, "port-forward", "--address=127.0.0.1", "pod/"+c.pod, fmt.Sprintf("%s:%d", port, c.podPort))
	out, err := forward.StdoutPipe()
	if err != nil {
		return err
	}
	if err := forward.Start(); err != nil {
		return notStarted(err)
	}
	c.announce(out)
	if err := forward.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("kubectl port-forward: %w", err)
	}
	return nil
}

func (c *uiCommand) kubectl(ctx context.Context, args ...string) *exec.Cmd {
	args = append(args, "--namespace="+c.namespace)
	cmd := exec.CommandContext(ctx, "kubectl", append(args, c.passed...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = c.Err
	return cmd
}

func notStarted(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("kubectl is needed for port-forward, and is not in the PATH: %w", err)
	}
	return err
}

// findLeader reads who holds the Lease: the name of a pod, and something that tells two
// processes in it apart.
func (c *uiCommand) findLeader(ctx context.Context) error {
	holder, err := c.kubectl(ctx, "get", "lease", c.lease, "--output=jsonpath={.spec.holderIdentity}").Output()
	if err != nil {
		return fmt.Errorf("read Lease %s in namespace %s (--lease, --executor-namespace, or --pod): %w", c.lease, c.namespace, notStarted(err))
	}
	if c.pod, _, _ = strings.Cut(strings.TrimSpace(string(holder)), "_"); c.pod == "" {
		return fmt.Errorf("nobody holds Lease %s in namespace %s: no executor leads", c.lease, c.namespace)
	}
	return nil
}

var forwarding = regexp.MustCompile(`^Forwarding from 127\.0\.0\.1:(\d+) `)

// announce waits until the port is forwarded, says where, and reads on, so that kubectl
// never waits for a reader.
func (c *uiCommand) announce(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		m := forwarding.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		url := "http://" + net.JoinHostPort("127.0.0.1", m[1]) + PagePath
		fmt.Fprintf(c.Out, "%s (pod %s; Ctrl-C ends it)\n", url, c.pod)
		if !c.noBrowser {
			c.open(url)
		}
	}
}

// open starts the browser. Who has none has the address.
func (c *uiCommand) open(url string) {
	command := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if command == nil {
		command = []string{"xdg-open"}
	}
	browser := exec.Command(command[0], append(command[1:], url)...)
	if err := browser.Start(); err != nil {
		fmt.Fprintf(c.Err, "the browser was not opened: %v\n", err)
		return
	}
	go func() { _ = browser.Wait() }() // it may run on, or fail without a screen
}
