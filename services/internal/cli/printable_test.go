package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"

	"jobpolicy.dev/services/internal/cli"
)

// Texts of others, such as messages of pods, must not move a terminal's cursor or clear it.
func TestControlCharactersArePrinted(t *testing.T) {
	var out bytes.Buffer
	w := cli.Printable(&out)
	text := "plain ± \x1b[32mgreen\x1b[0m\tline\n\x1b[2J \x1b]0;title\x07 a\rb \u009b2J \x7f"
	if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("written %d of %d, error %v", n, len(text), err)
	}
	if want := "plain ± \x1b[32mgreen\x1b[0m\tline\n^[[2J ^[]0;title^G a^Mb ^[[2J ^?"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// A command whose output is lost has failed, also if it does not look.
func TestLostOutputIsAnError(t *testing.T) {
	var errs bytes.Buffer
	streams := cli.IO{Out: cli.Printable(fullDisk{}), Err: &errs}
	cmd := &cobra.Command{Use: "say", RunE: func(*cobra.Command, []string) error {
		fmt.Fprintln(streams.Out, "answer")
		return nil
	}}
	if code := cli.Run(context.Background(), cmd, nil, streams); code != cli.ExitFailed || errs.String() != "error: no space left\n" {
		t.Errorf("exit code %d, output %q", code, errs.String())
	}
}
