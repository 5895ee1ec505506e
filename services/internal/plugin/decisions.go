package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobpolicy.dev/executor/writes"
	"jobpolicy.dev/services/internal/cli"
)

const decisionsLong = `Lists the last decision on each Job that an executor of the cluster manages: when, by which
rule, and why. With --watch, each new one is printed as it is made, until Ctrl-C.

Runs kubectl port-forward to the executor's pod that leads; with --url, it asks an executor
that can be reached directly. The port-forward needs the rights to get the Lease and pods, and
to create pods/portforward, in the executor's namespace.

It asks once a second. Of several decisions on one Job within a second only the last is seen;
executor --decision-log writes them all.`

const decisionsExample = `  kubectl jobpolicy decisions
  kubectl jobpolicy decisions -w -n nightly
  kubectl jobpolicy decisions -w --url http://127.0.0.1:8082 -o json`

// decisionsPath is where the executor lists its last decisions.
const decisionsPath = "/debug/decisions"

// maxDecisions is how many decisions the executor lists at most: maxListed of package views.
const maxDecisions = 5000

// decisionsEvery is how often --watch asks.
const decisionsEvery = time.Second

// decisionsTimeout is how long the executor may send nothing of an answer; a variable for tests.
var decisionsTimeout = 10 * time.Second

type decisionsCommand struct {
	executorPod
	output *cli.Output
	watch  bool
	url    string
	only   func() string // a namespace; empty: all
	// told holds, by the UID of a Job, what was printed last.
	told map[string]news
	// cutTold: the user knows that the executor may have left decisions out.
	cutTold bool
}

// A decision is one element of the executor's list.
type decision struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	Time      time.Time `json:"time"`
	Rule      string    `json:"rule"`
	Reason    string    `json:"reason"`
	Waiting   bool      `json:"waiting"`
	// Refused are the writes that the API server refuses. Hindered are the pods that cannot start.
	Refused  []refusedWrites `json:"refused,omitempty"`
	Hindered *hindered       `json:"hindered,omitempty"`
}

// refusedWrites are those of one kind.
type refusedWrites struct {
	Write   writes.Kind `json:"write"`
	Since   time.Time   `json:"since"`
	Objects int         `json:"objects"`
	Why     string      `json:"why"`
}

// hindered counts pods that cannot start, by the reason of most of them.
type hindered struct {
	Pods   int32  `json:"pods"`
	Reason string `json:"reason"`
}

// news holds the values by which follow notices that something about a Job is new.
type news struct {
	at       time.Time
	refused  string
	hindered hindered
}

func (d *decision) news() news {
	n := news{at: d.Time.UTC(), refused: d.refused()}
	if d.Hindered != nil {
		n.hindered = *d.Hindered
	}
	return n
}

// refused says in words what the API server refuses.
func (d *decision) refused() (text string) {
	for _, r := range d.Refused {
		text += fmt.Sprintf("; since %s the API server refuses to %s: %s", r.Since.UTC().Format(time.RFC3339), r.Write.Words(), r.Why)
	}
	return text
}

func newDecisions(streams cli.IO) *cobra.Command {
	c := &decisionsCommand{executorPod: executorPod{IO: streams}, told: map[string]news{}}
	cmd := &cobra.Command{
		Use: "decisions", Short: "List the executor's last decision on each Job; with -w, live", Long: decisionsLong, Example: decisionsExample, Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVarP(&c.watch, "watch", "w", false, "Print each new decision, until Ctrl-C.")
	fs.StringVar(&c.url, "url", "", "The `address` of an executor's HTTP port, in the place of a port-forward.")
	c.output = cli.AddOutput(cmd, "wide")
	c.addFlags(cmd)
	c.only = func() string { return fs.Lookup("namespace").Value.String() }
	return cmd
}

func (c *decisionsCommand) run(ctx context.Context) error {
	if c.url != "" {
		if at, err := url.Parse(c.url); err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			return cli.Usagef("--url: expected an address such as http://127.0.0.1:8082, got %q", c.url)
		}
		return c.follow(ctx, strings.TrimRight(c.url, "/"))
	}
	forwarded, done := context.WithCancel(ctx)
	defer done()
	var answered error
	err := c.forward(forwarded, 0, func(base string) {
		defer done()
		answered = c.follow(forwarded, base)
	})
	return cmp.Or(answered, err)
}

// follow prints new decisions, once or until the context is done.
func (c *decisionsCommand) follow(ctx context.Context, base string) error {
	tick := time.NewTicker(decisionsEvery)
	defer tick.Stop()
	address := base + decisionsPath
	if namespace := c.only(); namespace != "" {
		// The executor selects before it cuts the list.
		address += "?" + url.Values{"namespace": {namespace}}.Encode()
	}
	for {
		if err := c.tell(ctx, address); err != nil && ctx.Err() == nil {
			return err
		}
		if !c.watch {
			c.none()
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// none says on standard error that nothing was listed, as kubectl does.
func (c *decisionsCommand) none() {
	switch {
	case len(c.told) > 0:
	case c.only() != "":
		fmt.Fprintf(c.Err, "No decisions found in namespace %s: the executor manages no Job there.\n", c.only())
	default:
		fmt.Fprintln(c.Err, "No decisions found: the executor manages no Job.")
	}
}

// tell prints the decisions that were not printed yet, by time.
func (c *decisionsCommand) tell(ctx context.Context, address string) error {
	all, err := readDecisions(ctx, address)
	if err != nil {
		return err
	}
	if len(all) >= maxDecisions && !c.cutTold {
		c.cutTold = true
		fmt.Fprintf(c.Err, "The executor lists only the newest %d decisions; -n selects those of one namespace.\n", maxDecisions)
	}
	c.forget(all)
	slices.SortStableFunc(all, func(a, b decision) int { return a.Time.Compare(b.Time) })
	for _, d := range all {
		if c.told[d.UID] == d.news() || c.only() != "" && c.only() != d.Namespace {
			continue
		}
		c.told[d.UID] = d.news()
		if err := c.print(d); err != nil {
			return err
		}
	}
	return nil
}

// forget forgets the Jobs that the executor no longer lists. A list that may be cut does not
// say which ones these are.
func (c *decisionsCommand) forget(all []decision) {
	if len(all) >= maxDecisions {
		return
	}
	listed := map[string]bool{}
	for _, d := range all {
		listed[d.UID] = true
	}
	maps.DeleteFunc(c.told, func(uid string, _ news) bool { return !listed[uid] })
}

// print prints a decision as a line, or as a YAML document.
func (c *decisionsCommand) print(d decision) error {
	switch c.output.Format {
	case "json":
		return json.NewEncoder(c.Out).Encode(d)
	case "yaml":
		fmt.Fprintln(c.Out, "---")
		_, err := c.output.Machine(c.Out, d)
		return err
	}
	more := ""
	if d.Rule != "" {
		more = " [" + d.Rule + "]"
	}
	if d.Hindered != nil {
		more += fmt.Sprintf("; pods that cannot start: %d (%s)", d.Hindered.Pods, d.Hindered.Reason)
	}
	more += d.refused()
	at := d.Time.UTC().Format("15:04:05.000")
	if c.output.Format == "wide" {
		at = d.Time.UTC().Format("2006-01-02T15:04:05.000Z") + "  " + d.UID
	}
	_, err := fmt.Fprintf(c.Out, "%s  %s  %s%s\n", at, cli.Paint(c.Out, cli.Strong, d.Namespace+"/"+d.Name), d.Reason, more)
	return err
}

// readDecisions asks for the list. It waits for a long list while parts of it keep arriving.
func readDecisions(ctx context.Context, address string) ([]decision, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(decisionsTimeout, func() { cancel(fmt.Errorf("the executor sent nothing for %s", decisionsTimeout)) })
	defer silence.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, cli.UsageError{Err: err}
	}
	req.Close = true // kubectl complains of a forwarded connection that is left open
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", address, resp.Status)
	}
	var all []decision
	if err := json.NewDecoder(timedReader{resp.Body, silence}).Decode(&all); err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return all, nil
}

// A timedReader starts a timer anew before each read.
type timedReader struct {
	io.Reader
	timer *time.Timer
}

func (r timedReader) Read(p []byte) (int, error) {
	r.timer.Reset(decisionsTimeout)
	return r.Reader.Read(p)
}
