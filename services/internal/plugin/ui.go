package plugin

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"jobpolicy.dev/services/internal/cli"
)

const uiLong = `Opens the executor's page: Jobs with live state and reason, the life of one Job, CronJobs as
a calendar, health of engine and queues.

Runs kubectl port-forward to the executor's pod that leads, prints the page's address and
opens the browser, until Ctrl-C. The page is read-only. It needs the rights to get the Lease
and pods, and to create pods/portforward, in the executor's namespace.`

// pagePath is where the executor serves its page: page.Path. The plugin does not import that
// package, which would make it larger by half.
const pagePath = "/debug/page/"

type uiCommand struct {
	executorPod
	port      int
	noBrowser bool
}

func newUI(streams cli.IO) *cobra.Command {
	c := &uiCommand{executorPod: executorPod{IO: streams}}
	cmd := &cobra.Command{
		Use: "ui", Short: "Open the executor's page in the browser", Long: uiLong, Args: noArgument,
		Example: "  kubectl jobpolicy ui\n  kubectl jobpolicy ui --no-browser --port 8000",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntVar(&c.port, "port", 0, "`Port` on this machine. Default: any that is free.")
	fs.BoolVar(&c.noBrowser, "no-browser", false, "Only print the address.")
	c.addFlags(cmd)
	return cmd
}

func (c *uiCommand) run(ctx context.Context) error {
	return c.forward(ctx, c.port, func(base string) {
		fmt.Fprintf(c.Out, "%s (pod %s; Ctrl-C ends it)\n", base+pagePath, c.pod)
		if !c.noBrowser {
			c.open(base + pagePath)
		}
	})
}

// open starts the browser. A user without one has the printed address.
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
	go func() { _ = browser.Wait() }() // it may keep running, or fail without a screen
}
