package cli_test

import (
	"bytes"
	"os"
	"testing"

	"jobpolicy.dev/services/internal/cli"
)

// Colours are for a terminal only, and not for a person who does not want them.
func TestColoursAreForTerminals(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal here: %v", err)
	}
	defer terminal.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	const plain, green = "Complete", "\x1b[32mComplete\x1b[0m"
	paint := func(what string, got, want string) {
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	paint("a terminal", cli.Paint(terminal, cli.Good, plain), green)
	paint("a terminal that gets no control characters", cli.Paint(cli.Printable(terminal), cli.Good, plain), green)
	paint("a file", cli.Paint(file, cli.Good, plain), plain)
	paint("a program", cli.Paint(&bytes.Buffer{}, cli.Good, plain), plain)
	t.Setenv("TERM", "dumb")
	paint("a terminal without colours", cli.Paint(terminal, cli.Good, plain), plain)
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	paint("a person who wants none", cli.Paint(terminal, cli.Good, plain), plain)
}
