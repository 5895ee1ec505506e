package statedir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/must"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	must.Succeed(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func write(t *testing.T, path string) {
	t.Helper()
	must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Succeed(t, os.WriteFile(path, []byte("content"), 0o600))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestOpenMakesAPrivateDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d := open(t, path)
	info, err := os.Stat(path)
	must.Succeed(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode is %s", info.Mode())
	}
	if got := d.Path("x", "y"); got != filepath.Join(path, "x", "y") {
		t.Errorf("Path gives %s", got)
	}
}

func TestOpenRefusesWhatIsNotItsOwn(t *testing.T) {
	cases := map[string]struct {
		prepare func(t *testing.T, path string)
		want    error
	}{
		"a directory with somebody's files": {
			prepare: func(t *testing.T, path string) { write(t, filepath.Join(path, "thesis.tex")) },
			want:    ErrForeign,
		},
		"a directory that a running control plane holds": {
			prepare: func(t *testing.T, path string) { open(t, path) },
			want:    ErrInUse,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			tc.prepare(t, path)
			_, err := Open(path)
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestReopenKeepsContentUntilCleared(t *testing.T) {
	path := t.TempDir()
	first := open(t, path)
	write(t, first.Path("etcd", "db"))
	first.Close()

	second := open(t, path)
	if !exists(second.Path("etcd", "db")) {
		t.Fatal("opening again lost content")
	}
	must.Succeed(t, second.Clear())
	if exists(second.Path("etcd")) {
		t.Error("Clear left content")
	}
	if _, err := Open(path); !errors.Is(err, ErrInUse) {
		t.Errorf("Clear gave up the lock: %v", err)
	}
}

func TestKeepIsRemembered(t *testing.T) {
	path := t.TempDir()
	first := open(t, path)
	if first.Kept() {
		t.Error("a new directory counts as kept")
	}
	must.Succeed(t, first.Keep())
	first.Close()
	if !open(t, path).Kept() {
		t.Error("the next run does not know that the directory was kept")
	}
}

func TestRemoveDeletesTheDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d := open(t, path)
	write(t, d.Path("logs", "etcd.log"))
	must.Succeed(t, d.Remove())
	if exists(path) {
		t.Error("the directory is still there")
	}
	open(t, path) // and the path is free again
}

func TestOnlyAbandonedDirectoriesAreRemoved(t *testing.T) {
	parent := t.TempDir()
	old := time.Now().Add(-2 * leastAge)
	// made makes a directory with a file, gives it up, and lets it be old.
	made := func(name string, giveUp func(*Dir) error) {
		t.Helper()
		d, err := Open(filepath.Join(parent, name))
		must.Succeed(t, err)
		write(t, d.Path("etcd", "db"))
		must.Succeed(t, giveUp(d))
		must.Succeed(t, os.Chtimes(d.Path(marker), old, old))
	}
	made("jobpolicy-killed", (*Dir).Close)
	made("jobpolicy-failed", (*Dir).Leave)
	made("jobpolicy-kept", func(d *Dir) error { return errors.Join(d.Keep(), d.Close()) })
	made("jobpolicy-runs", func(d *Dir) error { t.Cleanup(func() { d.Close() }); return nil })
	made("named-by-its-owner", (*Dir).Close)
	write(t, filepath.Join(parent, "jobpolicy-foreign", "thesis.tex"))
	made("jobpolicy-young", (*Dir).Close)
	now := time.Now()
	must.Succeed(t, os.Chtimes(filepath.Join(parent, "jobpolicy-young", marker), now, now))

	RemoveAbandoned(parent)

	for name, want := range map[string]bool{
		"jobpolicy-killed": false, "jobpolicy-failed": true, "jobpolicy-kept": true, "jobpolicy-runs": true,
		"named-by-its-owner": true, "jobpolicy-foreign": true, "jobpolicy-young": true,
	} {
		if got := exists(filepath.Join(parent, name)); got != want {
			t.Errorf("%s exists: %t, want %t", name, got, want)
		}
	}
}

func TestADirectoryThatIsUsedAgainIsNoLongerLeftForItsLogs(t *testing.T) {
	path := t.TempDir()
	must.Succeed(t, open(t, path).Leave())
	again := open(t, path)
	must.Succeed(t, again.Clear())
	if text, err := os.ReadFile(again.Path(marker)); err != nil || len(text) > 0 {
		t.Errorf("the marker says %q, %v; want nothing", text, err)
	}
}
