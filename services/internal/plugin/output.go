package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// output is the flag -o.
type output struct {
	format string
	known  []string
}

// addOutput adds -o with json, yaml and what else a command has.
func addOutput(cmd *cobra.Command, more ...string) *output {
	o := &output{known: append([]string{"json", "yaml"}, more...)}
	cmd.Flags().VarP(o, "output", "o", "Output `format`: "+strings.Join(o.known, ", ")+". Default: text for people.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.known, cobra.ShellCompDirectiveNoFileComp))
	return o
}

// Set is for pflag.
func (o *output) Set(s string) error {
	if !slices.Contains(o.known, s) {
		return fmt.Errorf("expected one of %s", strings.Join(o.known, ", "))
	}
	o.format = s
	return nil
}

// String and Type are for pflag.
func (o *output) String() string { return o.format }

// Type names what is expected.
func (o *output) Type() string { return "format" }

// machine prints v as JSON or YAML, if that is asked for.
func (o *output) machine(w io.Writer, v any) (done bool, err error) {
	switch o.format {
	case "json":
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return true, e.Encode(v)
	case "yaml":
		text, err := yaml.Marshal(v)
		if err == nil {
			_, err = w.Write(text)
		}
		return true, err
	}
	return false, nil
}

// separate stands between two objects, before the one with index i.
func (o *output) separate(w io.Writer, i int) {
	switch {
	case i == 0 || o.format == "json":
	case o.format == "yaml":
		fmt.Fprintln(w, "---")
	default:
		fmt.Fprintln(w)
	}
}

// table prints rows in columns.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// A style is how a word looks on a terminal.
type style string

const (
	good   style = "\x1b[32m"
	bad    style = "\x1b[31m"
	notice style = "\x1b[33m"
	strong style = "\x1b[1m"
)

// paint gives a text a style, if it goes to a terminal.
func paint(w io.Writer, s style, text string) string {
	if !terminal(w) {
		return text
	}
	return string(s) + text + "\x1b[0m"
}
