package statedir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestOpenMakesAPrivateDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d := open(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := second.Clear(); err != nil {
		t.Fatal(err)
	}
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
	if err := first.Keep(); err != nil {
		t.Fatal(err)
	}
	first.Close()
	if !open(t, path).Kept() {
		t.Error("the next run does not know that the directory was kept")
	}
}

func TestRemoveDeletesTheDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d := open(t, path)
	write(t, d.Path("logs", "etcd.log"))
	if err := d.Remove(); err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		write(t, d.Path("etcd", "db"))
		if err := giveUp(d); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(d.Path(marker), old, old); err != nil {
			t.Fatal(err)
		}
	}
	made("jobpolicy-killed", (*Dir).Close)
	made("jobpolicy-failed", (*Dir).Leave)
	made("jobpolicy-kept", func(d *Dir) error { return errors.Join(d.Keep(), d.Close()) })
	made("jobpolicy-runs", func(d *Dir) error { t.Cleanup(func() { d.Close() }); return nil })
	made("named-by-its-owner", (*Dir).Close)
	write(t, filepath.Join(parent, "jobpolicy-foreign", "thesis.tex"))
	made("jobpolicy-young", (*Dir).Close)
	now := time.Now()
	if err := os.Chtimes(filepath.Join(parent, "jobpolicy-young", marker), now, now); err != nil {
		t.Fatal(err)
	}

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
	if err := open(t, path).Leave(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path)
	if err := again.Clear(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(again.Path(marker)); err != nil || len(text) > 0 {
		t.Errorf("the marker says %q, %v; want nothing", text, err)
	}
}
