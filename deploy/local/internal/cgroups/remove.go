package cgroups

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// removeTimeout is how long a group may stay busy after its last process.
const removeTimeout = 10 * time.Second

// Remove removes the group with all groups in it. No process may be left there.
func (g Group) Remove() error {
	hierarchies, err := Hierarchies()
	if err != nil {
		return fmt.Errorf("control groups: %w", err)
	}
	var errs []error
	for _, hierarchy := range hierarchies {
		dir := filepath.Join(hierarchy, string(g))
		err := removeTree(dir)
		for end := time.Now().Add(removeTimeout); err != nil && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
			err = removeTree(dir)
		}
		errs = append(errs, err)
		_ = os.Remove(filepath.Dir(dir)) // Parent, when this was the last cluster
	}
	return errors.Join(errs...)
}

// removeTree removes a group that holds no process, deepest groups first.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveAbandoned removes the groups of clusters that have no process any more.
// A group that cannot be removed does no harm, and the next call tries again.
func RemoveAbandoned() error {
	hierarchies, err := Hierarchies()
	if err != nil {
		return fmt.Errorf("control groups: %w", err)
	}
	for _, g := range clusters(hierarchies) {
		if g.inUse(hierarchies) {
			continue
		}
		for _, hierarchy := range hierarchies {
			_ = removeTree(filepath.Join(hierarchy, string(g)))
		}
	}
	return nil
}

// clusters lists the groups below Parent.
func clusters(hierarchies []string) []Group {
	var groups []Group
	for _, hierarchy := range hierarchies {
		entries, _ := os.ReadDir(filepath.Join(hierarchy, Parent))
		for _, entry := range entries {
			g := Group(path.Join(Parent, entry.Name()))
			if entry.IsDir() && !slices.Contains(groups, g) {
				groups = append(groups, g)
			}
		}
	}
	return groups
}

// inUse reports whether a process is in the group or in one below it.
func (g Group) inUse(hierarchies []string) bool {
	return slices.ContainsFunc(hierarchies, func(hierarchy string) bool {
		return hasProcess(filepath.Join(hierarchy, string(g)))
	})
}

func hasProcess(dir string) bool {
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err == nil && len(procs) > 0 {
		return true
	}
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		return entry.IsDir() && hasProcess(filepath.Join(dir, entry.Name()))
	})
}
