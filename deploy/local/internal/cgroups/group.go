package cgroups

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Parent is the name of the group that holds the groups of all clusters.
const Parent = "jobpolicy-local"

const root = "/sys/fs/cgroup"

// Names of the groups in a cluster's group. With version 2 a group has either
// processes or groups, so the cluster's own processes have a group, too.
const (
	ownGroup  = "cluster"
	podsGroup = "pods"
)

// Group is a cluster's control group, by its path below each hierarchy's root.
type Group string

// For returns the group of the cluster with that state directory.
func For(stateDir string) Group {
	sum := sha256.Sum256([]byte(stateDir))
	return Group(path.Join(Parent, hex.EncodeToString(sum[:6])))
}

// Pods returns the path of the group that is to hold the groups of pods.
func (g Group) Pods() string { return "/" + path.Join(string(g), podsGroup) }

// Hierarchies returns the roots of the mounted control group hierarchies: one
// for each controller or set of them with version 1, one with version 2. A
// machine may have both.
func Hierarchies() ([]string, error) {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer mounts.Close()
	return parseHierarchies(bufio.NewScanner(mounts))
}

// parseHierarchies reads lines of mountinfo (proc(5)).
func parseHierarchies(lines *bufio.Scanner) ([]string, error) {
	var hierarchies []string
	for lines.Scan() {
		before, after, found := strings.Cut(lines.Text(), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 5 || len(kind) == 0 {
			continue
		}
		mountPoint := fields[4]
		if mountPoint != root && !strings.HasPrefix(mountPoint, root+"/") {
			continue
		}
		if kind[0] == "cgroup" || kind[0] == "cgroup2" {
			hierarchies = append(hierarchies, mountPoint)
		}
	}
	return hierarchies, lines.Err()
}

// needed are the controllers by which kubelet and runc set the shares and limits
// that every container has.
var needed = []string{"cpu", "memory", "pids"}

// MissingControllers returns the controllers that containers need and that the
// machine does not have in version 2, if that is all it has. Version 1 has a
// hierarchy for each controller: one that is missing shows in Hierarchies.
func MissingControllers() ([]string, error) { return missingControllers(root) }

func missingControllers(hierarchy string) ([]string, error) {
	have, err := os.ReadFile(filepath.Join(hierarchy, "cgroup.controllers"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // version 1
	}
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, name := range needed {
		if !slices.Contains(strings.Fields(string(have)), name) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// Join makes the group, with a group for pods, and moves this process into it.
func (g Group) Join() error {
	hierarchies, err := Hierarchies()
	if err != nil {
		return fmt.Errorf("control groups: %w", err)
	}
	if len(hierarchies) == 0 {
		return errors.New("control groups: none are mounted below " + root)
	}
	for _, hierarchy := range hierarchies {
		if err := g.joinIn(hierarchy); err != nil {
			return fmt.Errorf("control group %s: %w", g, err)
		}
	}
	return nil
}

// joinIn tries more than once: between making a group and being in it, another
// cluster that starts may take it for abandoned and remove it.
func (g Group) joinIn(hierarchy string) error {
	var err error
	for range 10 {
		if err = g.tryJoin(hierarchy); !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return err
}

func (g Group) tryJoin(hierarchy string) error {
	own := filepath.Join(hierarchy, string(g), ownGroup)
	if err := makeGroup(hierarchy, filepath.Join(string(g), ownGroup)); err != nil {
		return err
	}
	if err := set(filepath.Join(own, "cgroup.procs"), "0"); err != nil { // 0 is whoever writes
		return err
	}
	return makeGroup(hierarchy, filepath.Join(string(g), podsGroup))
}

// set writes one of the files that the kernel has made in a group.
func set(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// makeGroup makes a group and those above it, and hands the controllers down to
// it: with version 1's cpuset and with version 2 a new group has none.
func makeGroup(hierarchy, group string) error {
	dir := hierarchy
	for name := range strings.SplitSeq(group, "/") {
		if err := enableControllers(dir); err != nil {
			return err
		}
		parent := dir
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := inheritCPUSet(parent, dir); err != nil {
			return err
		}
	}
	return nil
}

// enableControllers gives the groups in dir all controllers that dir has.
func enableControllers(dir string) error {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // version 1
	}
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(controllers)) {
		// Most controllers are not needed, and Missing has looked for the others.
		_ = set(filepath.Join(dir, "cgroup.subtree_control"), "+"+name)
	}
	return nil
}

// inheritCPUSet fills the two settings without which no process can be in a
// group of version 1's cpuset controller. With version 2, an empty setting means
// that of the parent, and the root has none.
func inheritCPUSet(parent, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.controllers")); err == nil {
		return nil // version 2
	}
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		have, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || strings.TrimSpace(string(have)) != "" {
			continue
		}
		want, err := os.ReadFile(filepath.Join(parent, name))
		if err != nil {
			return err
		}
		if err := set(filepath.Join(dir, name), string(want)); err != nil {
			return err
		}
	}
	return nil
}
