package namespaces

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"jobpolicy.dev/deploy/local/internal/cgroups"
)

// commands are the programs of this machine that a node runs, with what they
// are part of.
var commands = map[string]string{
	"ip":    "iproute2",
	"nft":   "nftables",
	"mount": "util-linux",
}

// Missing returns an error that names everything that this machine lacks for a
// cluster of its own, or nil.
func Missing() error {
	var missing []error
	if os.Geteuid() != 0 {
		missing = append(missing, errors.New("root: namespaces, mounts and control groups need it"))
	}
	for command, part := range commands {
		if _, err := exec.LookPath(command); err != nil {
			missing = append(missing, fmt.Errorf("the command %s (package %s)", command, part))
		}
	}
	hierarchies, err := cgroups.Hierarchies()
	if err != nil || len(hierarchies) == 0 {
		missing = append(missing, errors.New("control groups, mounted below /sys/fs/cgroup"))
	}
	controllers, err := cgroups.MissingControllers()
	if err != nil {
		missing = append(missing, fmt.Errorf("control groups: %w", err))
	}
	for _, name := range controllers {
		missing = append(missing, fmt.Errorf("the controller %s in /sys/fs/cgroup/cgroup.controllers", name))
	}
	missing = append(missing, missingFileSystems()...)
	if os.Geteuid() == 0 {
		missing = append(missing, missingNFT()...)
	}
	slices.SortFunc(missing, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(missing...)
}

// missingFileSystems: a file system that is a module appears in the list once it
// is loaded, which mounting it does.
func missingFileSystems() []error {
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return []error{err}
	}
	if slices.Contains(strings.Fields(string(known)), "overlay") || hasModule("overlay") {
		return nil
	}
	return []error{errors.New("the kernel's file system overlay")}
}

func hasModule(name string) bool {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return false
	}
	for _, list := range []string{"modules.dep", "modules.builtin"} {
		text, _ := os.ReadFile(filepath.Join("/lib/modules", strings.TrimSpace(string(release)), list))
		if strings.Contains(string(text), "/"+name+".ko") {
			return true
		}
	}
	return false
}

// missingNFT asks for a list of tables, which a kernel without nftables refuses.
func missingNFT() []error {
	if _, err := exec.LookPath("nft"); err != nil {
		return nil // said already
	}
	output, err := exec.Command("nft", "list", "tables").CombinedOutput()
	if err == nil {
		return nil
	}
	return []error{fmt.Errorf("nftables in the kernel: %s", strings.TrimSpace(string(output)))}
}
