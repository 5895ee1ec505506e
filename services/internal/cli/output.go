package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Output is the flag -o.
type Output struct {
	Format string
	known  []string
}

// AddOutput adds -o with the values json, yaml and more.
func AddOutput(cmd *cobra.Command, more ...string) *Output {
	o := &Output{known: append([]string{"json", "yaml"}, more...)}
	cmd.Flags().VarP(o, "output", "o", "Output `format`: "+strings.Join(o.known, ", ")+". Default: text for people.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.known, cobra.ShellCompDirectiveNoFileComp))
	return o
}

// Set is for pflag.
func (o *Output) Set(s string) error {
	if !slices.Contains(o.known, s) {
		return fmt.Errorf("expected one of %s", strings.Join(o.known, ", "))
	}
	o.Format = s
	return nil
}

// String is for pflag.
func (o *Output) String() string { return o.Format }

// Type is the word for the value in the help.
func (o *Output) Type() string { return "format" }

// Machine prints v as JSON or YAML, if that is asked for.
func (o *Output) Machine(w io.Writer, v any) (done bool, err error) {
	switch o.Format {
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

// Separate prints the separator between two objects. It is called before the one with
// index i.
func (o *Output) Separate(w io.Writer, i int) {
	switch {
	case i == 0 || o.Format == "json":
	case o.Format == "yaml":
		fmt.Fprintln(w, "---")
	default:
		fmt.Fprintln(w)
	}
}

// Table prints rows in columns.
func Table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// A Style is how a word looks on a terminal.
type Style string

// Styles.
const (
	Good   Style = "\x1b[32m"
	Bad    Style = "\x1b[31m"
	Notice Style = "\x1b[33m"
	Strong Style = "\x1b[1m"
)

// plain ends a style.
const plain = "\x1b[0m"

// Paint gives a text a style, if it goes to a terminal.
func Paint(w io.Writer, s Style, text string) string {
	if !terminal(w) {
		return text
	}
	return string(s) + text + plain
}

// terminal reports whether text goes to a person who may see colours.
func terminal(w io.Writer) bool {
	if p, ok := w.(*printable); ok {
		w = p.w
	}
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
