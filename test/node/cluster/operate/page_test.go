package operate

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/documents/guide"
	"jobpolicy.dev/test/kit/objects"
	"jobpolicy.dev/test/node/cluster/shared"
)

// openPage runs kubectl jobpolicy ui and decisions -w, which forward a port of the leader
// with the real kubectl.
func openPage(t *testing.T) {
	env, err := environment()
	must.Succeed(t, err)
	shell := guide.Shell{Dir: top, Env: env}
	readPage(t, shell)
	watchDecisions(t, shell)
}

// readPage reads the page at the address that kubectl jobpolicy ui prints, and finds the Job
// that fails in the data of the page.
func readPage(t *testing.T, shell guide.Shell) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ui := start(ctx, t, shell, "exec kubectl jobpolicy ui --no-browser")
	line := ui.next(t)
	address, _, _ := strings.Cut(line, " ")
	status, body := get(ctx, t, address)
	if status != http.StatusOK || !strings.Contains(body, "<title>jobpolicy") {
		t.Errorf("%s answers %d:\n%s", address, status, body)
	}
	awaitRow(ctx, t, address, shownRow{Name: "fails", State: "BackingOff"})
	ui.interrupt(ctx, t)
}

// watchDecisions sees a decision of kubectl jobpolicy decisions -w that is made while it
// runs.
func watchDecisions(t *testing.T, shell guide.Shell) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	watch := start(ctx, t, shell, "exec kubectl jobpolicy decisions --watch --namespace default")
	watch.until(t, "default/fails")
	jobs := shared.Client().BatchV1().Jobs("default")
	pod := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: shellImage}}}
	objects.Create(t, jobs, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "seen"},
		Spec:       batchv1.JobSpec{ManagedBy: new(ours), Suspend: new(true), Template: corev1.PodTemplateSpec{Spec: pod}},
	})
	t.Log(watch.until(t, "default/seen"))
	watch.interrupt(ctx, t)
	if err := jobs.Delete(ctx, "seen", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// A program is a command that runs until Ctrl-C.
type program struct {
	*exec.Cmd
	out *bufio.Reader
}

// start starts a command. The shell finds kubectl in the PATH of the environment.
func start(ctx context.Context, t *testing.T, shell guide.Shell, command string) *program {
	t.Helper()
	p := &program{Cmd: exec.CommandContext(ctx, "bash", "-c", command)}
	p.Dir, p.Env, p.Stderr = shell.Dir, shell.Env, os.Stderr
	p.Cancel = func() error { return p.Process.Signal(os.Interrupt) }
	out, err := p.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, p.Start())
	p.out = bufio.NewReader(out)
	return p
}

// next is the next line that the program prints.
func (p *program) next(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %v after %q", p.Args, err, line)
	}
	return line
}

// until is the first line that has a text.
func (p *program) until(t *testing.T, text string) string {
	t.Helper()
	for {
		if line := p.next(t); strings.Contains(line, text) {
			return line
		}
	}
}

// interrupt does what Ctrl-C does: the program ends, and says that all is well.
func (p *program) interrupt(ctx context.Context, t *testing.T) {
	t.Helper()
	_ = p.Process.Signal(os.Interrupt)
	_, _ = io.Copy(io.Discard, p.out)
	if err := p.Wait(); err != nil {
		t.Errorf("%v does not end well with Ctrl-C: %v, %v", p.Args, err, ctx.Err())
	}
}

// A shownRow is what the page's list shows of a Job.
type shownRow struct{ Name, State string }

// awaitRow reads the page's events until one has the row.
func awaitRow(ctx context.Context, t *testing.T, page string, want shownRow) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page+"events", nil)
	must.Succeed(t, err)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	must.Succeed(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var event struct{ Jobs []shownRow }
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		if slices.Contains(event.Jobs, want) {
			return
		}
	}
	t.Fatalf("the page's events end without %+v: %v", want, lines.Err())
}

func get(ctx context.Context, t *testing.T, address string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	must.Succeed(t, err)
	req.Close = true // kubectl complains of a forwarded connection that is left open
	resp, err := http.DefaultClient.Do(req)
	must.Succeed(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must.Succeed(t, err)
	return resp.StatusCode, string(text)
}
