package cgroups

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/must"
)

func TestParseHierarchies(t *testing.T) {
	cases := map[string]struct {
		mounts string
		want   []string
	}{
		"version 2 alone": {
			mounts: "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
			want:   []string{"/sys/fs/cgroup"},
		},
		"version 1, and version 2 beside it": {
			mounts: "41 40 0:29 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
				"42 41 0:30 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n" +
				"43 41 0:31 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
			want: []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"},
		},
		"one that is mounted elsewhere is somebody else's": {
			mounts: "44 41 0:32 / /sys/fs/cgroups rw - cgroup2 cgroup2 rw\n45 41 0:33 / /mnt/cpu rw - cgroup cgroup rw,cpu\n",
		},
		"a line that is cut short": {mounts: "46 41 0:34\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseHierarchies(bufio.NewScanner(strings.NewReader(tc.mounts)))
			must.Succeed(t, err)
			must.Equal(t, "hierarchies", tc.want, got)
		})
	}
}

func TestMissingControllers(t *testing.T) {
	cases := map[string]struct {
		files map[string]string
		want  []string
	}{
		"version 2 with all":              {files: map[string]string{"cgroup.controllers": "cpuset cpu io memory hugetlb pids rdma misc\n"}},
		"version 2 beside version 1":      {files: map[string]string{"cgroup.controllers": "hugetlb cpuset\n"}, want: []string{"cpu", "memory", "pids"}},
		"a name that begins like another": {files: map[string]string{"cgroup.controllers": "cpuset memory pids\n"}, want: []string{"cpu"}},
		"version 1":                       {files: map[string]string{"cpu/cpu.shares": "1024\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hierarchy := t.TempDir()
			write(t, hierarchy, tc.files)
			got, err := missingControllers(hierarchy)
			must.Succeed(t, err)
			must.Equal(t, "missing controllers", tc.want, got)
		})
	}
}

func TestGroupsOfDifferentStateDirectoriesDiffer(t *testing.T) {
	if a, b := For("/tmp/a"), For("/tmp/b"); a == b || a != For("/tmp/a") {
		t.Errorf("groups %s and %s: want two, and the same for the same directory", a, b)
	}
}

// write makes files and the directories that they are in, by their paths below a
// directory that stands for a hierarchy.
func write(t *testing.T, hierarchy string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(hierarchy, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.Succeed(t, os.WriteFile(file, []byte(text), 0o644))
	}
}

func TestAGroupIsInUseWhileAProcessIsAnywhereInIt(t *testing.T) {
	cpu, memory := t.TempDir(), t.TempDir()
	write(t, cpu, map[string]string{
		"jobpolicy-local/cgroup.procs":                 "",
		"jobpolicy-local/dead/cgroup.procs":            "",
		"jobpolicy-local/dead/pods/a/cgroup.procs":     "",
		"jobpolicy-local/lives/cgroup.procs":           "",
		"jobpolicy-local/lives/cluster/cgroup.procs":   "",
		"jobpolicy-local/dying/pods/x/y/cgroup.procs":  "17\n",
		"somebody-else/cgroup.procs":                   "",
		"somebody-else/jobpolicy-local/x/cgroup.procs": "",
	})
	write(t, memory, map[string]string{
		"jobpolicy-local/lives/cluster/cgroup.procs": "42\n",
		"jobpolicy-local/other/cgroup.procs":         "",
	})
	hierarchies := []string{cpu, memory}
	got := map[Group]bool{}
	for _, g := range clusters(hierarchies) {
		got[g] = g.inUse(hierarchies)
	}
	want := map[Group]bool{
		"jobpolicy-local/dead": false, "jobpolicy-local/lives": true, "jobpolicy-local/dying": true, "jobpolicy-local/other": false,
	}
	must.Equal(t, "groups and whether they are in use", want, got)
}

func TestANewGroupHasThePartsOfTheMachineThatItsParentHas(t *testing.T) {
	hierarchy := t.TempDir()
	files := map[string]string{"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n"}
	write(t, hierarchy, files)
	// The kernel makes these files with the group.
	for _, dir := range []string{"a", "a/b"} {
		write(t, filepath.Join(hierarchy, dir), map[string]string{"cpuset.cpus": "\n", "cpuset.mems": "\n"})
	}
	must.Succeed(t, makeGroup(hierarchy, "a/b"))
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(hierarchy, "a/b", name))
		if err != nil || string(got) != want {
			t.Errorf("%s of the group is %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestANewGroupOfVersion2HasTheControllersOfItsParentAndNoSettings(t *testing.T) {
	hierarchy := t.TempDir()
	// The root has no cpuset.cpus.
	write(t, hierarchy, map[string]string{"cgroup.controllers": "pids\n", "cgroup.subtree_control": ""})
	for _, dir := range []string{"a", "a/b"} {
		write(t, filepath.Join(hierarchy, dir), map[string]string{
			"cgroup.controllers": "pids\n", "cgroup.subtree_control": "", "cpuset.cpus": "\n", "cpuset.mems": "\n",
		})
	}
	must.Succeed(t, makeGroup(hierarchy, "a/b"))
	for name, want := range map[string]string{
		"cgroup.subtree_control": "+pids", "a/cgroup.subtree_control": "+pids", "a/b/cgroup.subtree_control": "", "a/b/cpuset.cpus": "\n",
	} {
		got, err := os.ReadFile(filepath.Join(hierarchy, name))
		if err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
}
