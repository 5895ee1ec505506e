package operate

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"jobpolicy.dev/test/guide"
)

// openPage runs kubectl jobpolicy ui, which forwards a port with the real kubectl, and
// reads the page at the address that it prints.
func openPage(t *testing.T) {
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	readPage(t, guide.Shell{Dir: top, Env: env})
}

func readPage(t *testing.T, shell guide.Shell) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// The shell finds kubectl in the PATH of the environment.
	ui := exec.CommandContext(ctx, "bash", "-c", "exec kubectl jobpolicy ui --no-browser")
	ui.Dir, ui.Env, ui.Stderr = shell.Dir, shell.Env, os.Stderr
	ui.Cancel = func() error { return ui.Process.Signal(os.Interrupt) }
	out, err := ui.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ui.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address, _, _ := strings.Cut(line, " ")
	if err != nil {
		t.Fatalf("kubectl jobpolicy ui printed %q and no address: %v", line, err)
	}
	status, body := get(ctx, t, address)
	if status != http.StatusOK || !strings.Contains(body, "<title>jobpolicy") {
		t.Errorf("%s answers %d:\n%s", address, status, body)
	}
	_ = ui.Process.Signal(os.Interrupt)
	if err := ui.Wait(); err != nil && ctx.Err() != nil {
		t.Errorf("kubectl jobpolicy ui does not end with Ctrl-C: %v", err)
	}
}

func get(ctx context.Context, t *testing.T, address string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true // kubectl complains of a forwarded connection that is left open
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
