package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/views"
)

// kubectl stands for the real one: it answers for the Lease, forwards nothing, and writes
// down how it was called.
const kubectl = `#!/bin/sh
echo "$@" >> "$CALLS"
case $1 in
get) echo "$HOLDER" ;;
port-forward)
	echo 'Forwarding from 127.0.0.1:43210 -> 8082'
	echo 'Forwarding from [::1]:43210 -> 8082' ;;
esac
`

func runUI(t *testing.T, holder string, args ...string) (code int, out, calls string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "calls")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("CALLS", log)
	t.Setenv("HOLDER", holder)
	// kubectl writes to standard error by itself.
	code, out, errors := runApart(t, append([]string{"ui", "--no-browser"}, args...)...)
	text, err := os.ReadFile(log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return code, out + errors, string(text)
}

func TestUIForwardsToTheLeader(t *testing.T) {
	code, out, calls := runUI(t, "jobpolicy-executor-abc_1234", "--context=there", "--executor-namespace=batch-system", "--port=8000")
	if want := "http://127.0.0.1:43210" + views.PagePath + " (pod jobpolicy-executor-abc; Ctrl-C ends it)\n"; code != cli.ExitOK || out != want {
		t.Errorf("exit code %d, output %q, want %q", code, out, want)
	}
	want := `get lease jobpolicy-executor --output=jsonpath={.spec.holderIdentity} --namespace=batch-system --context=there
port-forward --address=127.0.0.1 pod/jobpolicy-executor-abc 8000:8082 --namespace=batch-system --context=there
`
	if calls != want {
		t.Errorf("kubectl was called with\n%swant\n%s", calls, want)
	}
}

func TestUIWithAPodAsksForNoLease(t *testing.T) {
	if _, _, calls := runUI(t, "", "--pod=mine"); calls != "port-forward --address=127.0.0.1 pod/mine :8082 --namespace=jobpolicy-system\n" {
		t.Errorf("kubectl was called with %q", calls)
	}
}

// Flags of kubectl are passed on as they were given.
func TestUIPassesFlagsOn(t *testing.T) {
	_, _, calls := runUI(t, "", "--pod=mine", "--as=jane", "--as-group=a", "--as-group=b,c", "--as-user-extra=k=1", "--as-user-extra=k=2", "-s=http://there", "-n=ignored")
	if want := "port-forward --address=127.0.0.1 pod/mine :8082 --namespace=jobpolicy-system --as=jane --as-group=a --as-group=b,c --as-user-extra=k=1 --as-user-extra=k=2 --server=http://there\n"; calls != want {
		t.Errorf("kubectl was called with\n%swant\n%s", calls, want)
	}
}

func TestUISaysWhatIsWrong(t *testing.T) {
	cases := map[string]struct {
		args     []string
		wantCode int
		want     string
	}{
		"nobody leads":   {wantCode: cli.ExitFailed, want: "nobody holds Lease jobpolicy-executor in namespace jobpolicy-system"},
		"an argument":    {args: []string{"job/a"}, wantCode: cli.ExitUsage, want: `expected no argument, got "job/a"`},
		"no port at all": {args: []string{"--port=70000"}, wantCode: cli.ExitUsage, want: "--port must be a port, up to 65535, is 70000"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if code, out, _ := runUI(t, "", tc.args...); code != tc.wantCode || !strings.Contains(out, tc.want) {
				t.Errorf("exit code %d, output %q, want %d and %q", code, out, tc.wantCode, tc.want)
			}
		})
	}
}

func TestUIOpensWhereThePageIs(t *testing.T) {
	if pagePath != views.PagePath {
		t.Errorf("the plugin opens %s, the executor serves %s", pagePath, views.PagePath)
	}
}
