// Package statedir owns the directory in which one local control plane keeps
// everything that it writes. A directory belongs to at most one running control
// plane, and is deleted only when it carries this package's marker: a mistyped
// path never costs anybody their files.
//
// Weighed against gofrs/flock v0.13, which would save five lines: it locks files, and
// neither marks nor deletes a directory.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// marker is the file that says what the directory is. An advisory lock on it is
// held while the control plane runs; the kernel drops the lock with the process,
// however it ends.
const marker = "jobpolicy-local.lock"

// The marker's content says why the directory stays when its control plane has
// ended: after [Dir.Keep], and after [Dir.Leave]. It is empty otherwise.
const (
	keptMark = "kept\n"
	leftMark = "left for its logs\n"
)

// Errors that [Open] wraps.
var (
	// ErrInUse: another running control plane holds the directory.
	ErrInUse = errors.New("in use by another control plane that is running")
	// ErrForeign: the directory has content and no marker.
	ErrForeign = errors.New("not empty and not made by jobpolicy-local")
)

// Dir is an open state directory.
type Dir struct {
	path string
	lock *os.File
}

// Open makes the directory if it does not exist, readable by its owner only,
// and locks it. Content from an earlier run stays.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := claim(path); err != nil {
		return nil, fmt.Errorf("state directory %s: %w", path, err)
	}
	lock, err := os.OpenFile(filepath.Join(path, marker), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, fmt.Errorf("state directory %s: %w", path, err)
	}
	return &Dir{path: path, lock: lock}, nil
}

// claim makes path a directory of ours, or refuses one that is somebody else's.
func claim(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return os.Chmod(path, 0o700)
	}
	_, err = os.Stat(filepath.Join(path, marker))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrForeign
	}
	return err
}

// Path returns the absolute path of the directory, or of the file or folder
// below it that elem names.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Kept reports whether an earlier run called Keep.
func (d *Dir) Kept() bool {
	text, err := os.ReadFile(d.Path(marker))
	return err == nil && strings.HasPrefix(string(text), keptMark)
}

// Keep records that the content is to survive.
func (d *Dir) Keep() error {
	_, err := d.lock.WriteAt([]byte(keptMark), 0)
	return err
}

// Leave gives the directory up, like Close, and records that somebody may want to
// read what is in it.
func (d *Dir) Leave() error {
	_, err := d.lock.WriteAt([]byte(leftMark), 0)
	return errors.Join(err, d.Close())
}

// Clear deletes what an earlier run left and keeps the directory open.
func (d *Dir) Clear() error {
	if err := d.lock.Truncate(0); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == marker {
			continue
		}
		if err := os.RemoveAll(d.Path(entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Close gives the directory up; its content stays.
func (d *Dir) Close() error { return d.lock.Close() }

// Remove deletes the directory with all its content and gives it up. The marker
// goes last, so a removal that is cut short can be repeated.
func (d *Dir) Remove() error {
	if err := d.Clear(); err != nil {
		return err
	}
	if err := os.RemoveAll(d.path); err != nil {
		return err
	}
	return d.lock.Close()
}

// pattern matches the temporary directories that control planes are given.
const pattern = "jobpolicy-*"

// leastAge is how old a directory without an owner must be: a younger one may be about to
// be locked by the process that made it.
const leastAge = time.Minute

// RemoveAbandoned deletes the state directories in the folder parent whose control
// planes were killed. It leaves alone what lacks the marker, belongs to a running
// control plane, or is to stay. A directory that it cannot delete does no harm.
func RemoveAbandoned(parent string) {
	markers, _ := filepath.Glob(filepath.Join(parent, pattern, marker)) // only a bad pattern is an error
	for _, path := range markers {
		info, err := os.Lstat(path)
		if err != nil || info.Size() > 0 || time.Since(info.ModTime()) < leastAge {
			continue
		}
		if dir, err := Open(filepath.Dir(path)); err == nil {
			_ = dir.Remove()
		}
	}
}
