package namespaces

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// privatePlaces are written to by the container runtime, the kubelet and CNI
// plugins, by paths that they know by heart.
var privatePlaces = []string{"/var/lib", "/var/log", "/opt"}

// kernelSettings are what the kubelet wants of the kernel of the whole machine,
// and would set. Inside, it finds them as it wants them; outside, they stay as
// they are.
var kernelSettings = map[string]string{
	"/proc/sys/vm/overcommit_memory":      "1",
	"/proc/sys/vm/panic_on_oom":           "0",
	"/proc/sys/kernel/panic":              "10",
	"/proc/sys/kernel/panic_on_oops":      "1",
	"/proc/sys/kernel/keys/root_maxkeys":  "1000000",
	"/proc/sys/kernel/keys/root_maxbytes": "25000000",
}

// mount gives the inside a file tree that is the machine's, without what would
// leave traces there or let the cluster see other programs: processes, sockets
// (/run), and the places where programs keep their data.
func (c Config) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	visible, err := openAll(c.Visible)
	if err != nil {
		return err
	}
	defer visible.close()
	steps := []func() error{
		func() error { return mountNew("proc", "/proc") },
		func() error { return mountNew("tmpfs", "/run") },
		c.mountPrivatePlaces,
		visible.mount,
		c.mountKernelSettings,
		// Volumes may ask for mounts that propagate; not beyond this namespace.
		func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "") },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("mounts: %w", err)
		}
	}
	return nil
}

func mountNew(kind, target string) error {
	return pathError("mount", target, unix.Mount(kind, target, kind, unix.MS_NOSUID|unix.MS_NODEV, ""))
}

func bind(source, target string) error {
	return pathError("bind", target, unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""))
}

func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: path, Err: err}
}

func (c Config) mountPrivatePlaces() error {
	for _, place := range privatePlaces {
		source := filepath.Join(c.Root, place)
		if err := os.MkdirAll(source, 0o755); err != nil {
			return err
		}
		if _, err := os.Stat(place); err != nil {
			continue // nobody can write there
		}
		if err := bind(source, place); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) mountKernelSettings() error {
	for setting, value := range kernelSettings {
		file := filepath.Join(c.Root, setting)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := bind(file, setting); err != nil {
			return err
		}
	}
	return nil
}

// directories are held open by their paths, to be mounted there again after
// something else has covered them.
type directories map[string]*os.File

func openAll(paths []string) (directories, error) {
	d := directories{}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			d.close()
			return nil, err
		}
		d[path] = f
	}
	return d, nil
}

func (d directories) close() {
	for _, f := range d {
		f.Close()
	}
}

// mount covers again only those directories that are not where they were.
func (d directories) mount() error {
	for path, f := range d {
		if sameFile(path, f) {
			continue
		}
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
		if err := bind(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), path); err != nil {
			return err
		}
	}
	return nil
}

func sameFile(path string, f *os.File) bool {
	there, err := os.Stat(path)
	if err != nil {
		return false
	}
	open, err := f.Stat()
	return err == nil && os.SameFile(there, open)
}
