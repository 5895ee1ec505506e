package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statusv1 "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/proto/conformance"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/decisionlog"
	"jobpolicy.dev/services/internal/refusal"
)

const replayLong = `Decides the requests of a decision log again, with the engine that is built in, another
engine, or other settings, and says which answers differ and by which rule. Explanations
are not compared. The exit code is 0 if no answer differs, and 1 if one does.

An executor writes such a log with --decision-log. Both of its formats are read.`

const replayExample = `  # What would the next version decide?
  kubectl jobpolicy replay decisions.log --engine localhost:8443 --engine-ca-file ca.crt

  # What if failed pods were replaced after 5 s?
  kubectl jobpolicy replay decisions.log --settings '{"podFailureBackoff": "5s"}'

  # Look at one, and keep it as a case for the conformance kit.
  kubectl jobpolicy replay decisions.log --show 17
  kubectl jobpolicy replay decisions.log --case 17 >> cases.jsonl`

type replayCommand struct {
	cli.IO
	engine   engineFlags
	output   *cli.Output
	settings string
	show     int
	asCase   int
}

func newReplay(streams cli.IO) *cobra.Command {
	c := &replayCommand{IO: streams}
	cmd := &cobra.Command{
		Use: "replay FILE", Short: "Decide the requests of a decision log again", Long: replayLong, Example: replayExample,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&c.settings, "settings", "", "Settings of the engine, as `JSON` of jobpolicy.v1.Settings; they replace those of each request about a Job.")
	fs.IntVar(&c.show, "show", 0, "Print the record with this `number`, from 1, and how it is decided now.")
	fs.IntVar(&c.asCase, "case", 0, "Print the record with this `number` as a case of the conformance kit.")
	c.engine.addFlags(fs)
	c.output = cli.AddOutput(cmd, "wide")
	return cmd
}

func (c *replayCommand) run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("expected one FILE, the decision log (- is standard input), got %d arguments", len(args))
	}
	if c.show < 0 || c.asCase < 0 || (c.show > 0 && c.asCase > 0) {
		return cli.Usagef("expected at most one of --show and --case, each the number of a record, from 1")
	}
	if err := c.engine.validate(); err != nil {
		return err
	}
	settings, err := c.readSettings()
	if err != nil {
		return err
	}
	file, err := c.open(args[0])
	if err != nil {
		return err
	}
	defer file.Close()
	asked, err := c.engine.ask(ctx)
	if err != nil {
		return err
	}
	defer asked.close()
	log, engine := decisionlog.Read(file), decisionlog.Engine{Job: withStatus(asked.job), CronJob: withStatus(asked.cronJob), Settings: settings}
	switch {
	case c.show > 0:
		return c.showRecord(log, engine)
	case c.asCase > 0:
		return c.printCase(log)
	}
	result, err := decisionlog.Replay(log, engine)
	if err == nil {
		return c.print(result)
	}
	if result.Same+result.Skipped+len(result.Differences) > 0 {
		// The log is cut off, as after a kill, or the engine is gone: what comes before counts.
		if err := c.print(result); err != nil && !errors.Is(err, cli.ErrNo) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", args[0], err)
}

// withStatus converts the errors of the built-in engine to the gRPC errors that a service
// returns.
func withStatus[Q, A any](decide func(Q) (A, error)) func(Q) (A, error) {
	return func(req Q) (A, error) {
		answer, err := decide(req)
		if _, ok := status.FromError(err); !ok {
			err = refusal.FromEngine(err)
		}
		return answer, err
	}
}

func (c *replayCommand) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.In), nil
	}
	return os.Open(name)
}

func (c *replayCommand) readSettings() (*decisionlog.Settings, error) {
	if c.settings == "" {
		return nil, nil
	}
	settings, err := decisionlog.ParseSettings(c.settings)
	if err != nil {
		// The library varies the space after its prefix on purpose.
		text := strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0")
		return nil, cli.Usagef("--settings: expected JSON of jobpolicy.v1.Settings, such as {\"podFailureBackoff\": \"5s\"}: %s", text)
	}
	return settings, nil
}

func (c *replayCommand) print(r decisionlog.Result) error {
	if r.Differences == nil {
		r.Differences = []decisionlog.Difference{} // [] in JSON, not null
	}
	done, err := c.output.Machine(c.Out, r)
	if !done && err == nil {
		err = c.printText(r)
	}
	if err == nil && len(r.Differences) > 0 {
		return cli.ErrNo
	}
	return err
}

func (c *replayCommand) printText(r decisionlog.Result) error {
	fmt.Fprintf(c.Out, "%d decided again: %d the same, %d different. %d skipped: they have no answer, or the decision depends on a redacted name.\n",
		r.Same+len(r.Differences), r.Same, len(r.Differences), r.Skipped)
	if len(r.Differences) == 0 {
		return nil
	}
	fmt.Fprintln(c.Out)
	if c.output.Format == "wide" {
		return c.printEach(r.Differences)
	}
	rows := [][]string{{"COUNT", "THEN", "NOW", "DIFFERENT FIELDS", "FIRST RECORD", "ITS OBJECT"}}
	for _, g := range groups(r.Differences) {
		first := g[0]
		rows = append(rows, []string{strconv.Itoa(len(g)), first.Then, first.Now, strings.Join(first.Fields, ", "), strconv.Itoa(first.Record), first.Object})
	}
	return cli.Table(c.Out, rows)
}

// printEach prints one line for each difference.
func (c *replayCommand) printEach(all []decisionlog.Difference) error {
	rows := [][]string{{"RECORD", "OBJECT", "THEN", "NOW", "DIFFERENT FIELDS"}}
	for _, d := range all {
		rows = append(rows, []string{strconv.Itoa(d.Record), d.Object, d.Then, d.Now, strings.Join(d.Fields, ", ")})
	}
	return cli.Table(c.Out, rows)
}

// groups puts differences of the same kind together, the most frequent kind first.
func groups(all []decisionlog.Difference) [][]decisionlog.Difference {
	var out [][]decisionlog.Difference
	kinds := map[string]int{}
	for _, d := range all {
		kind := d.Then + "\x00" + d.Now + "\x00" + strings.Join(d.Fields, ",")
		i, ok := kinds[kind]
		if !ok {
			i, out = len(out), append(out, nil)
			kinds[kind] = i
		}
		out[i] = append(out[i], d)
	}
	slices.SortStableFunc(out, func(a, b []decisionlog.Difference) int { return len(b) - len(a) })
	return out
}

// find returns the record with a number.
func find(log iter.Seq2[*jobpolicyv1.DecisionRecord, error], n int) (*jobpolicyv1.DecisionRecord, error) {
	count := 0
	for record, err := range log {
		if err != nil {
			return nil, err
		}
		if count++; count == n {
			return record, nil
		}
	}
	return nil, fmt.Errorf("the log has %d records, and no record %d", count, n)
}

func (c *replayCommand) showRecord(log iter.Seq2[*jobpolicyv1.DecisionRecord, error], engine decisionlog.Engine) error {
	record, err := find(log, c.show)
	if err != nil {
		return err
	}
	now, err := engine.Decide(record)
	fmt.Fprintf(c.Out, "Record %d\n%s\n\nDecided now\n", c.show, pretty(record))
	if err != nil {
		_, err = fmt.Fprintln(c.Out, err)
		return err
	}
	_, err = fmt.Fprintln(c.Out, pretty(now))
	return err
}

// pretty is a message as JSON. protojson varies its spaces on purpose.
func pretty(m proto.Message) string {
	text, err := protojson.Marshal(m)
	if err != nil {
		return err.Error()
	}
	var parsed any
	if err := json.Unmarshal(text, &parsed); err != nil {
		return err.Error()
	}
	out, err := json.MarshalIndent(parsed, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// printCase prints a record as a line of a file of cases.
func (c *replayCommand) printCase(log iter.Seq2[*jobpolicyv1.DecisionRecord, error]) error {
	record, err := find(log, c.asCase)
	if err != nil {
		return err
	}
	request, response := decisionlog.Exchanged(record)
	one := conformance.Case{}
	if response != nil {
		one.Response, err = protojson.Marshal(conformance.Comparable(response))
	} else if one.Error = refused(record.GetError()); one.Error == nil {
		err = fmt.Errorf("record %d: expected one with a response or with INVALID_ARGUMENT; the call failed: %s", c.asCase, record.GetError().GetMessage())
	}
	if err != nil {
		return err
	}
	if one.Request, err = protojson.Marshal(request); err != nil {
		return err
	}
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "%s\n", line)
	return err
}

// refused is the refusal of an invalid request. It is nil if the call failed for another
// reason, because then the same request may succeed later.
func refused(s *statusv1.Status) *conformance.Error {
	st := status.FromProto(s)
	if st.Code() != codes.InvalidArgument {
		return nil
	}
	out := &conformance.Error{Code: code.Code(st.Code()).String()}
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			out.Reason = d.GetReason()
		case *errdetails.BadRequest:
			if violations := d.GetFieldViolations(); len(violations) > 0 {
				out.Field = violations[0].GetField()
			}
		}
	}
	return out
}
